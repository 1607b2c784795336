"""Every bit flipped, every prefix and random edits are named errors and release nothing unproven."""

from __future__ import annotations

import hashlib
from io import BytesIO

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archiver import age
from archiver.errors import (
    HeaderError,
    HeaderMacError,
    KeyUnavailableError,
    MovedKeyError,
    PayloadError,
)

NAMED = (HeaderError, HeaderMacError, KeyUnavailableError, PayloadError, MovedKeyError)
KEY, OTHER = age.generate(), age.generate()
QUANTUM = age.HybridIdentity.generate()
CHUNK = 64 * 1024
SMALL = b"the state of a run"
LARGE = hashlib.shake_256(b"large").digest(3 * CHUNK + 17)
PHRASE = age.ScryptIdentity("only a test", max_work_factor=12)


def seal(recipients: list[age.Recipient], plain: bytes) -> bytes:
    pieces: list[bytes] = []
    sealer = age.seal(recipients, pieces.append)
    sealer.write(plain)
    sealer.close()
    return b"".join(pieces)


FILES = {
    "x25519": seal([KEY.recipient, OTHER.recipient], SMALL),
    "hybrid": seal([QUANTUM.recipient], SMALL),
    "scrypt": seal([age.ScryptRecipient("only a test", age.WorkFactor.TEST_ONLY)], SMALL),
}
KEYS: dict[str, list[age.Identity]] = {"x25519": [KEY], "hybrid": [QUANTUM], "scrypt": [PHRASE]}
LARGE_FILE = seal([KEY.recipient], LARGE)


def check(data: bytes, plain: bytes, released, identities: list[age.Identity]) -> None:
    """The file fails by a named error, after nothing but whole authentic chunks."""
    out, error = released(identities, data)
    assert type(error) in NAMED
    assert plain.startswith(out)
    assert len(out) % CHUNK == 0


@pytest.mark.parametrize("kind", FILES)
def test_every_bit_flipped(kind: str, released) -> None:
    data = FILES[kind]
    # The others cost up to milliseconds a try, so one bit of each byte has to do there
    bits = range(8) if kind == "x25519" else range(1)
    for place in range(len(data)):
        for bit in bits:
            broken = bytearray(data)
            broken[place] ^= 1 << bit
            check(bytes(broken), SMALL, released, KEYS[kind])


@pytest.mark.parametrize("kind", FILES)
def test_every_prefix(kind: str, released) -> None:
    data = FILES[kind]
    for size in range(len(data)):
        check(data[:size], SMALL, released, KEYS[kind])


@pytest.mark.parametrize(
    "tail",
    [b"\0", b"\n", b"age-encryption.org/v1\n", FILES["x25519"]],
    ids=["zero", "line", "version", "file"],
)
def test_nothing_may_follow(tail: bytes, released) -> None:
    check(FILES["x25519"] + tail, SMALL, released, [KEY])


@given(st.integers(0, len(LARGE_FILE) - 1), st.integers(1, 255))
@settings(max_examples=200, deadline=None)
def test_a_changed_byte_of_a_large_file(released, place: int, change: int) -> None:
    broken = bytearray(LARGE_FILE)
    broken[place] ^= change
    check(bytes(broken), LARGE, released, [KEY])


@given(st.integers(0, len(LARGE_FILE) - 1))
@settings(max_examples=100, deadline=None)
def test_a_prefix_of_a_large_file(released, size: int) -> None:
    check(LARGE_FILE[:size], LARGE, released, [KEY])


@given(st.data())
@settings(max_examples=200, deadline=None)
def test_pieces_moved_doubled_or_dropped(released, draw: st.DataObject) -> None:
    data = FILES["x25519"]
    start, end, to = sorted(draw.draw(st.integers(0, len(data))) for _ in range(3))
    changed = draw.draw(
        st.sampled_from(
            [
                data[:start] + data[end:],
                data[:end] + data[start:],
                data[:start] + data[end:to] + data[start:end] + data[to:],
            ]
        )
    )
    if changed != data:
        check(changed, SMALL, released, [KEY])


def test_header_and_payload_changed_is_not_told_from_a_stanza_that_was_moved(released) -> None:
    data = bytearray(FILES["x25519"])
    data[data.index(b"hint")] ^= 1
    data[-1] ^= 1
    out, error = released([KEY], bytes(data))
    assert (out, type(error)) == (b"", MovedKeyError)
    assert "or both header and payload were changed" in str(error)


def test_the_header_of_one_file_does_not_fit_the_payload_of_another(released) -> None:
    one, two = seal([KEY.recipient], SMALL), seal([KEY.recipient], SMALL)
    size = len(age.read_header(BytesIO(one)).marshal())
    check(one[:size] + two[size:], SMALL, released, [KEY])


def test_chunks_of_one_file_do_not_fit_another(released) -> None:
    one, two = LARGE_FILE, seal([KEY.recipient], LARGE)
    cut = len(age.read_header(BytesIO(one)).marshal()) + 16 + CHUNK + 16
    out, error = released([KEY], one[:cut] + two[cut:])
    assert (out, type(error)) == (LARGE[:CHUNK], PayloadError)
