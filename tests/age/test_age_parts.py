"""Parts of an age file: any byte range is the plaintext's, and nothing that was changed comes out."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

import pytest

from archiver.age import Parts, X25519Identity, generate, open_parts, seal
from archiver.errors import PayloadError

CHUNK = 65536
SIZE = 3 * CHUNK + 1000
PLAIN = bytes(number * 7 % 251 for number in range(SIZE))


@pytest.fixture(scope="module")
def identity() -> X25519Identity:
    made = generate()
    assert isinstance(made, X25519Identity)
    return made


def sealed(identity: X25519Identity, plain: bytes = PLAIN) -> bytes:
    out = io.BytesIO()
    sealer = seal([identity.recipient], out.write)
    sealer.write(plain)
    sealer.close()
    return out.getvalue()


def parts_of(identity: X25519Identity, data: bytes, opened: list[int] | None = None) -> Parts:
    @contextmanager
    def open_at(offset: int) -> Iterator[BinaryIO]:
        if opened is not None:
            opened.append(offset)
        yield io.BytesIO(data[offset:])

    return open_parts([identity], open_at)


@pytest.mark.parametrize(
    "place", [0, 1, 100, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, 3 * CHUNK, SIZE - 1, SIZE]
)
def test_any_place_is_found(identity: X25519Identity, place: int) -> None:
    opened: list[int] = []
    parts = parts_of(identity, data := sealed(identity), opened)
    with parts.at(place) as source:
        assert source.read(500) == PLAIN[place : place + 500]
    assert len(opened) == 2
    skipped = opened[1] - (len(data) - SIZE - 4 * 16)
    assert skipped == place // CHUNK * (CHUNK + 16), "no chunk before the one that holds the byte is read"
    assert parts.opened_by == identity.fingerprint


def test_the_end_is_the_end_of_the_file(identity: X25519Identity) -> None:
    with parts_of(identity, sealed(identity)).at(2 * CHUNK + 5) as source:
        assert source.read() == PLAIN[2 * CHUNK + 5 :]


@pytest.mark.parametrize("number", [1, 3])
def test_a_changed_chunk_gives_nothing(identity: X25519Identity, number: int) -> None:
    data = bytearray(sealed(identity))
    data[len(data) - SIZE - 4 * 16 + number * (CHUNK + 16) + 9] ^= 1
    parts = parts_of(identity, bytes(data))
    with parts.at(number * CHUNK) as source, pytest.raises(PayloadError):
        source.read(1)
    with parts.at(2 * CHUNK) as source:
        assert source.read(10) == PLAIN[2 * CHUNK : 2 * CHUNK + 10]


def test_chunks_do_not_change_places(identity: X25519Identity) -> None:
    data = sealed(identity)
    begin = len(data) - SIZE - 4 * 16
    one, two = (slice(begin + n * (CHUNK + 16), begin + (n + 1) * (CHUNK + 16)) for n in (0, 1))
    swapped = data[:begin] + data[two] + data[one] + data[two.stop :]
    for place in (0, CHUNK):
        with parts_of(identity, swapped).at(place) as source, pytest.raises(PayloadError):
            source.read(1)


def test_a_chunk_of_another_file_of_the_same_key_is_none_of_this_one(identity: X25519Identity) -> None:
    data, other = sealed(identity), sealed(identity)
    assert len(data) == len(other)
    cut = len(data) - SIZE - 4 * 16 + CHUNK + 16
    with parts_of(identity, data[:cut] + other[cut:]).at(CHUNK) as source, pytest.raises(PayloadError):
        source.read(1)
