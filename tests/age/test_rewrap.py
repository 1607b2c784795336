"""A new header for the same payload: who opens the file changes, what is in it does not."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence
from io import BytesIO, RawIOBase
from typing import Any

import pytest

from archiver import age
from archiver.age import header as headers
from archiver.age import hints
from archiver.age.container import open_header
from archiver.age.feed import Feed
from archiver.age.header import Stanza
from archiver.errors import (
    HeaderError,
    HeaderMacError,
    KeyUnavailableError,
    LimitExceededError,
    UsageError,
)

ANNA, BERT, CARL = age.generate(), age.generate(), age.generate()
PHRASE = "three small words"
SIZES = (0, 1, 65_536, 65_537, 3_000_000)


def locked(phrase: str = PHRASE) -> age.ScryptRecipient:
    return age.ScryptRecipient(phrase, age.WorkFactor.TEST_ONLY)


def rewrapped(
    identities: Sequence[age.Identity], recipients: Sequence[age.Recipient], data: bytes, **named: Any
) -> bytes:
    return b"".join(age.rewrap(identities, recipients, BytesIO(data), **named).blocks())


def payload_of(data: bytes) -> bytes:
    return data[len(age.read_header(BytesIO(data)).marshal()) :]


@pytest.mark.parametrize("size", SIZES)
def test_the_payload_stays_and_its_readers_change(sealed, released, size: int) -> None:
    plain = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
    old = sealed([ANNA.recipient, BERT.recipient], plain)
    new = rewrapped([ANNA, CARL], [BERT.recipient, CARL.recipient], old)
    assert payload_of(new) == payload_of(old)
    assert age.payload_digest(BytesIO(new)) == age.payload_digest(BytesIO(old))
    assert released([CARL], new) == (plain, None)
    assert released([BERT], new) == (plain, None)
    with pytest.raises(KeyUnavailableError) as caught:
        age.unseal([ANNA], BytesIO(new))
    assert caught.value.fingerprints == (BERT.fingerprint, CARL.fingerprint)


def test_it_says_who_could_open_it_and_what_it_copied(sealed) -> None:
    old = sealed([ANNA.recipient, BERT.recipient], b"state" * 100_000)
    made = age.rewrap([BERT], [BERT.recipient, BERT.recipient], BytesIO(old))
    assert made.before == (ANNA.fingerprint, BERT.fingerprint)
    assert made.fingerprints == (BERT.fingerprint,)
    new = b"".join(made.blocks())
    assert made.payload == age.payload_digest(BytesIO(old))
    assert len(age.read_header(BytesIO(new)).stanzas) == 2


def test_a_passphrase_for_keys_and_back(sealed, released) -> None:
    phrase = age.ScryptIdentity(PHRASE)
    file = sealed([locked()], b"state")
    to_keys = rewrapped([phrase, ANNA], [ANNA.recipient], file)
    assert released([ANNA], to_keys) == (b"state", None)
    back = rewrapped([ANNA, phrase], [locked()], to_keys)
    assert released([phrase], back) == (b"state", None)
    assert [stanza.type for stanza in age.read_header(BytesIO(back)).stanzas] == ["scrypt"]


def test_post_quantum_keys_for_ordinary_ones_and_back(sealed, released) -> None:
    quantum = age.HybridIdentity.generate()
    hybrid = rewrapped([ANNA, quantum], [quantum.recipient], sealed([ANNA.recipient], b"state"))
    assert released([quantum], hybrid) == (b"state", None)
    with age.unseal([quantum], BytesIO(hybrid)) as opened:
        assert (opened.fingerprints, opened.unnamed) == ((quantum.fingerprint,), 0)
    assert released([ANNA], rewrapped([quantum, ANNA], [ANNA.recipient], hybrid)) == (b"state", None)
    with pytest.raises(UsageError, match="may not share a file"):
        rewrapped([quantum], [quantum.recipient, ANNA.recipient], hybrid)


def test_labels_count_as_when_sealing(sealed) -> None:
    data = sealed([ANNA.recipient], b"state")
    with pytest.raises(UsageError, match="may not share a file"):
        rewrapped([ANNA], [ANNA.recipient, locked()], data)
    with pytest.raises(UsageError, match="no recipient"):
        rewrapped([ANNA], [], data)


def test_a_header_past_its_limits_is_refused(sealed) -> None:
    class Many:
        fingerprint = "f" * 32
        kind = "many"
        labels = ANNA.recipient.labels

        def wrap(self, file_key: bytes) -> list[Stanza]:
            return [Stanza("example.com/many", (), b"")] * 1024

    with pytest.raises(LimitExceededError):
        rewrapped([ANNA], [ANNA.recipient, Many()], sealed([ANNA.recipient], b""))


def test_nobody_locks_a_file_away_from_himself(sealed) -> None:
    data = sealed([ANNA.recipient], b"state")
    with pytest.raises(
        KeyUnavailableError, match="bundle 7 would be locked to keys that you cannot"
    ) as caught:
        age.rewrap([ANNA], [BERT.recipient], BytesIO(data), name="bundle 7")
    assert caught.value.fingerprints == (BERT.fingerprint,)
    assert caught.value.remedy


def test_a_recipient_that_wraps_another_key_is_found_out(sealed) -> None:
    """What it makes would open for nobody, and the old header would be gone."""

    class Wrong:
        fingerprint = ANNA.fingerprint
        kind = "wrong"
        labels = ANNA.recipient.labels

        def wrap(self, file_key: bytes) -> list[Stanza]:
            return ANNA.recipient.wrap(bytes(16))

    with pytest.raises(KeyUnavailableError):
        age.rewrap([ANNA], [Wrong()], BytesIO(sealed([ANNA.recipient], b"state")))


def test_what_cannot_be_opened_is_not_rewritten(sealed) -> None:
    data = sealed([ANNA.recipient], b"state")
    with pytest.raises(KeyUnavailableError, match="bundle 7: the identity given does not open it"):
        age.rewrap([BERT], [BERT.recipient], BytesIO(data), name="bundle 7")
    with pytest.raises(HeaderError, match="bundle 7 is not a canonical age file"):
        age.rewrap([ANNA], [ANNA.recipient], BytesIO(data[:100]), name="bundle 7")


def test_a_changed_header_is_not_made_authentic(sealed) -> None:
    """Rewriting it would launder a stanza that somebody put there."""
    data = sealed([ANNA.recipient], b"state")
    old = age.read_header(BytesIO(data))
    added = headers.Header((*old.stanzas, *BERT.recipient.wrap(bytes(16))), old.mac)
    with pytest.raises(HeaderMacError):
        age.rewrap([ANNA], [ANNA.recipient], BytesIO(added.marshal() + payload_of(data)))


def test_a_key_that_the_hint_does_not_name_is_counted(sealed) -> None:
    """Whoever has the file key can add a stanza of his own and leave the hint as it was."""
    data = sealed([ANNA.recipient], b"state")
    old, file_key, *_ = open_header(Feed(BytesIO(data)), [ANNA], "file")
    forged = headers.make((*old.stanzas, *BERT.recipient.wrap(file_key)), file_key)
    assert hints.hint(forged) == hints.hint(old)
    with age.unseal([BERT], BytesIO(forged.marshal() + payload_of(data))) as opened:
        assert (opened.read(), opened.unnamed) == (b"state", 1)
    for file in (data, rewrapped([BERT], [BERT.recipient], forged.marshal() + payload_of(data))):
        with age.unseal([ANNA, BERT], BytesIO(file)) as opened:
            assert opened.unnamed == 0
    with age.unseal([age.ScryptIdentity(PHRASE)], BytesIO(sealed([locked()], b""))) as opened:
        assert opened.unnamed == 0


class Endless(RawIOBase):
    """A header, and after it many zeros that nobody holds in memory."""

    def __init__(self, data: bytes, zeros: int) -> None:
        self._data = data
        self._zeros = zeros

    def read(self, size: int = -1) -> bytes:
        assert 0 < size <= 1 << 20
        given, self._data = self._data[:size], self._data[size:]
        if not given:
            given = bytes(min(size, self._zeros))
            self._zeros -= len(given)
        return given


def test_memory_does_not_grow_with_the_payload(sealed) -> None:
    source: Any = Endless(sealed([ANNA.recipient], b""), zeros=200 << 20)
    tracemalloc.start()
    made = age.rewrap([ANNA], [ANNA.recipient], source)
    length = sum(map(len, made.blocks()))
    assert tracemalloc.get_traced_memory()[1] < 8 << 20
    tracemalloc.stop()
    assert length > 200 << 20
