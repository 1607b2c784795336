"""Sealing and opening: who may share a file, who opens it, and what is said to those who cannot."""

from __future__ import annotations

import hashlib
from io import BytesIO

import pytest

from archiver import age
from archiver.age.header import Stanza
from archiver.errors import HeaderError, KeyUnavailableError, LimitExceededError, UsageError

ANNA, BERT, CARL = age.generate(), age.generate(), age.generate()
PHRASE = "three small words"


def locked(phrase: str = PHRASE) -> age.ScryptRecipient:
    return age.ScryptRecipient(phrase, age.WorkFactor.TEST_ONLY)


def test_each_of_several_recipients_opens_the_file(sealed, released) -> None:
    data = sealed([ANNA.recipient, BERT.recipient], b"state")
    assert released([ANNA], data) == (b"state", None)
    assert released([CARL, BERT], data) == (b"state", None)


def test_the_header_hints_at_the_recipients(sealed) -> None:
    header = age.read_header(BytesIO(sealed([ANNA.recipient, BERT.recipient], b"")))
    first = header.stanzas[0]
    assert (first.type, first.body) == ("checkpoint.archiver/hint", b"")
    assert first.arguments == (ANNA.fingerprint, BERT.fingerprint) == age.hint(header)
    assert ANNA.fingerprint == hashlib.sha256(str(ANNA.recipient).encode()).hexdigest()[:32]
    assert [stanza.type for stanza in header.stanzas[1:]] == ["X25519", "X25519"]


def test_a_passphrase_stands_alone_without_a_hint(sealed, released) -> None:
    data = sealed([locked()], b"state")
    assert [stanza.type for stanza in age.read_header(BytesIO(data)).stanzas] == ["scrypt"]
    assert released([ANNA, age.ScryptIdentity(PHRASE)], data) == (b"state", None)


def test_the_standard_work_factor(sealed) -> None:
    stanza = age.ScryptRecipient(PHRASE).wrap(bytes(16))[0]
    assert stanza.arguments[1] == "18"
    assert age.ScryptIdentity(PHRASE).unwrap([stanza]) == bytes(16)


def test_a_work_factor_over_the_limit_is_refused(sealed) -> None:
    with pytest.raises(HeaderError, match="over 9"):
        age.unseal([age.ScryptIdentity(PHRASE, max_work_factor=9)], BytesIO(sealed([locked()], b"")))


def test_a_work_factor_of_many_digits_is_no_stray_error() -> None:
    """Python refuses to turn more than 4,300 digits into a number, by a `ValueError`."""
    (stanza,) = locked().wrap(bytes(16))
    endless = Stanza("scrypt", (stanza.arguments[0], "1" * 5000), stanza.body)
    with pytest.raises(HeaderError, match="over 22"):
        age.ScryptIdentity(PHRASE).unwrap([endless])


@pytest.mark.parametrize("others", [[ANNA.recipient], [locked()], [locked("another")]])
def test_a_passphrase_takes_no_company(others: list[age.Recipient], sealed) -> None:
    for recipients in ([locked(), *others], [*others, locked()]):
        with pytest.raises(UsageError, match="may not share a file"):
            sealed(recipients, b"")


def test_post_quantum_recipients_stand_beside_their_like_only(sealed, released) -> None:
    one, two = age.HybridIdentity.generate(), age.HybridIdentity.generate()
    data = sealed([one.recipient, two.recipient], b"state")
    assert released([ANNA, two], data) == (b"state", None)
    assert age.hint(age.read_header(BytesIO(data))) == (one.fingerprint, two.fingerprint)
    for other in (ANNA.recipient, locked()):
        with pytest.raises(UsageError, match="may not share a file") as caught:
            sealed([other, one.recipient], b"")
        assert f"post-quantum {one.fingerprint}" in str(caught.value)
        assert f"{other.kind} {other.fingerprint}" in str(caught.value)
        assert "never stand beside X25519" in (caught.value.remedy or "")


def test_nobody_is_no_recipient(sealed) -> None:
    with pytest.raises(UsageError, match="no recipient"):
        sealed([], b"")


def test_a_recipient_named_twice_gets_one_stanza(sealed) -> None:
    header = age.read_header(BytesIO(sealed([ANNA.recipient, ANNA.recipient], b"")))
    assert len(header.stanzas) == 2
    assert age.hint(header) == (ANNA.fingerprint,)


def test_too_many_recipients_are_refused_on_write(sealed) -> None:
    class Many:
        fingerprint = "f" * 32
        kind = "many"
        labels = ANNA.recipient.labels

        def wrap(self, file_key: bytes) -> list[Stanza]:
            return [Stanza("example.com/many", (), b"")] * 1024

    with pytest.raises(LimitExceededError):
        sealed([Many()], b"")


def test_two_files_share_no_secret(sealed) -> None:
    one, two = (sealed([ANNA.recipient], b"state") for _ in range(2))
    headers = [age.read_header(BytesIO(data)) for data in (one, two)]
    assert headers[0].stanzas[1] != headers[1].stanzas[1]
    assert headers[0].mac != headers[1].mac
    assert one[-16 - 5 - 16 :] != two[-16 - 5 - 16 :]


def refusal(identities: list[age.Identity], data: bytes) -> KeyUnavailableError:
    with pytest.raises(KeyUnavailableError) as caught:
        age.unseal(identities, BytesIO(data), name="records/a/00000001.age")
    assert caught.value.remedy
    assert str(caught.value).startswith("records/a/00000001.age")
    return caught.value


def test_a_wrong_key_hears_which_keys_would_open(sealed) -> None:
    data = sealed([ANNA.recipient, BERT.recipient], b"state")
    error = refusal([CARL], data)
    assert error.fingerprints == (ANNA.fingerprint, BERT.fingerprint)
    assert f"one of the keys {ANNA.fingerprint}, {BERT.fingerprint}" in str(error)
    assert "the identity given does not open it" in str(error)
    assert "none of the 2 identities given" in str(refusal([CARL, age.generate()], data))
    assert "no identity was given" in str(refusal([], data))


def test_a_passphrase_for_a_file_with_keys(sealed) -> None:
    error = refusal([age.ScryptIdentity(PHRASE)], sealed([ANNA.recipient], b""))
    assert "not with a passphrase" in str(error)
    assert error.fingerprints == (ANNA.fingerprint,)


def test_a_key_for_a_file_with_a_passphrase(sealed) -> None:
    error = refusal([ANNA], sealed([locked()], b""))
    assert "locked with a passphrase: no passphrase was given" in str(error)
    assert error.fingerprints == ("scrypt",)


def test_a_wrong_passphrase(sealed) -> None:
    error = refusal([age.ScryptIdentity("other")], sealed([locked()], b""))
    assert "the passphrase given does not open it" in str(error)


def test_a_long_list_of_keys_is_shortened_in_the_message_only(sealed) -> None:
    error = refusal([CARL], sealed([age.generate().recipient for _ in range(12)], b""))
    assert len(error.fingerprints) == 12
    assert error.fingerprints[7] in str(error)
    assert error.fingerprints[8] not in str(error)


def test_a_damaged_header_names_the_object(sealed) -> None:
    with pytest.raises(HeaderError, match="bundle 9 is not a canonical age file: the file does not begin"):
        age.unseal([ANNA], BytesIO(b"PK\3\4\n"), name="bundle 9")
