"""The header: one spelling for each meaning, and bounds."""

from __future__ import annotations

from io import BytesIO

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from archiver import age
from archiver.age import encoding, header, hints
from archiver.age.feed import Feed
from archiver.age.header import Header, Stanza
from archiver.errors import HeaderError, LimitExceededError, UsageError

WORDS = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1, max_size=70)
STANZAS = st.builds(Stanza, WORDS, st.lists(WORDS, max_size=3).map(tuple), st.binary(max_size=200))
HEADERS = st.builds(
    Header, st.lists(STANZAS, min_size=1, max_size=4).map(tuple), st.binary(min_size=32, max_size=32)
)


class Dribble(BytesIO):
    """A source that gives one byte for each read, as a slow pipe may."""

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(min(1, -1 if size is None else size))


def parse(raw: bytes) -> Header:
    return age.read_header(BytesIO(raw))


@given(HEADERS)
@example(Header((Stanza("a", (), bytes(48)),), bytes(32)))
def test_what_is_written_is_read(made: Header) -> None:
    feed = Feed(BytesIO(made.marshal() + b"payload"))
    assert header.read(feed) == made
    assert feed.take(100) == b"payload"


@given(HEADERS, st.data())
@settings(max_examples=300)
def test_what_is_read_is_written_the_same(made: Header, draw: st.DataObject) -> None:
    """Change, drop or add one byte: what still parses has another meaning and marshals to its own bytes."""
    raw = made.marshal()
    at = draw.draw(st.integers(0, len(raw) - 1))
    new = draw.draw(st.one_of(st.just(b""), st.binary(min_size=1, max_size=2)))
    keep = draw.draw(st.sampled_from([0, 1]))
    changed = raw[:at] + new + raw[at + keep :]
    try:
        again = parse(changed)
    except HeaderError:
        return
    assert changed.startswith(again.marshal())
    assert changed == raw or again != made or changed.startswith(raw)


@given(st.binary(max_size=50))
def test_base64_has_one_text(data: bytes) -> None:
    assert encoding.decode(encoding.encode(data)) == data


@given(st.text("AQgw/+=- \n", max_size=9).map(str.encode))
def test_base64_that_decodes_encodes_to_itself(text: bytes) -> None:
    data = encoding.decode(text)
    assert data is None or encoding.encode(data) == text


def test_a_source_may_answer_byte_by_byte(maker) -> None:
    data = maker.head(maker.x25519()) + maker.PAYLOAD
    with age.unseal([maker.identity("anna")], Dribble(data)) as plain:
        assert plain.read() == maker.PLAIN


def test_as_many_stanzas_as_may_be_are_read() -> None:
    stanzas = (Stanza("a", (), b""),) * header.MAX_STANZAS
    assert parse(header.make(stanzas, bytes(16)).marshal()).stanzas == stanzas
    with pytest.raises(LimitExceededError, match="1025 stanzas"):
        header.make((*stanzas, stanzas[0]), bytes(16))


def test_a_header_may_have_exactly_its_limit() -> None:
    filler = header.MAX_HEADER - len(Header((Stanza("a", ("",), b""),), bytes(32)).marshal())
    full = header.make((Stanza("a", ("x" * filler,), b""),), bytes(16))
    assert len(full.marshal()) == header.MAX_HEADER
    assert parse(full.marshal()) == full
    with pytest.raises(LimitExceededError):
        header.make((Stanza("a", ("x" * (filler + 1),), b""),), bytes(16))
    with pytest.raises(HeaderError, match="no end within"):
        parse(Header((Stanza("a", ("x" * (filler + 1),), b""),), bytes(32)).marshal())


def test_an_endless_header_is_not_read_to_its_end() -> None:
    for endless in (
        b"x",
        b"age-encryption.org/v1\n-> " + b"x" * 20,
        b"age-encryption.org/v1\n-> a\n" + b"A" * 20,
    ):
        source = BytesIO(endless * (4 << 20))
        with pytest.raises(HeaderError):
            age.read_header(source)
        assert source.tell() <= header.MAX_HEADER + (16 << 10)


@pytest.mark.parametrize("word", ["", "two words", "line\n", "é"])
def test_a_word_that_would_not_be_read_is_not_written(word: str) -> None:
    with pytest.raises(UsageError, match="printable"):
        header.make((Stanza("a", (word,), b""),), bytes(16))


def test_a_hint_shows_fingerprints_and_nothing_else() -> None:
    real = "0123456789abcdef" * 2
    words = ("\x1b[31m", real, real, real.upper(), real[:-1], real + "0", "scrypt")
    forged = Header((Stanza(hints.HINT, words, b""), Stanza("other", (real,), b"")), bytes(32))
    assert age.hint(forged) == (real,)


def test_a_passphrase_is_hinted_by_its_stanza() -> None:
    assert age.hint(Header((Stanza("scrypt", (), b""),), bytes(32))) == ("scrypt",)
