"""The payload: sizes around chunks and blocks, the stream's manners, and failure that stays."""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Callable
from io import BytesIO
from itertools import pairwise

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from archiver import age
from archiver.age import stream
from archiver.errors import PayloadError, StoreUnreachableError, UsageError

CHUNK = stream.CHUNK
SIZES = [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK, 8 * CHUNK, 8 * CHUNK + 1, 17 * CHUNK + 5]
KEY = age.generate()
TEXT = hashlib.shake_256(b"plaintext").digest(18 * CHUNK)


def sealed_in(pieces: list[bytes]) -> tuple[bytes, age.Sealed]:
    out: list[bytes] = []
    sealer = age.seal([KEY.recipient], out.append)
    for piece in pieces:
        assert sealer.write(piece) == len(piece)
    done = sealer.close()
    return b"".join(out), done


def opened(data: bytes) -> age.Unsealer:
    return age.unseal([KEY], BytesIO(data), name="bundle 7")


@pytest.mark.parametrize("size", SIZES)
def test_sizes_around_chunks_and_blocks(size: int) -> None:
    data, done = sealed_in([TEXT[:size]])
    payload = data[len(age.read_header(BytesIO(data)).marshal()) :]
    assert done.payload_length == len(payload) == 16 + size + 16 * max(1, -(-size // CHUNK))
    assert done.payload_sha256 == hashlib.sha256(payload).hexdigest()
    with opened(data) as plain:
        assert plain.read() == TEXT[:size]
        assert (plain.payload_sha256, plain.payload_length) == (done.payload_sha256, done.payload_length)
        assert plain.fingerprints == done.fingerprints == (KEY.fingerprint,)
        assert plain.read() == plain.read(1) == plain.read1() == b""


def test_a_digest_that_nobody_wants_is_not_made() -> None:
    out: list[bytes] = []
    sealer = age.seal([KEY.recipient], out.append, digest=False)
    sealer.write(TEXT)
    done = sealer.close()
    data = b"".join(out)
    with age.unseal([KEY], BytesIO(data), name="bundle 7", digest=False) as plain:
        assert plain.read() == TEXT
        assert plain.payload_length == done.payload_length
        with pytest.raises(UsageError, match="bundle 7 was opened without a digest"):
            _ = plain.payload_sha256
    with pytest.raises(UsageError, match="sealed without a digest"):
        _ = done.payload_sha256
    with opened(data[:-1] + bytes([data[-1] ^ 1])) as plain, pytest.raises(PayloadError):
        plain.read()


@given(st.lists(st.integers(0, 3 * CHUNK), max_size=8), st.lists(st.integers(1, 2 * CHUNK), max_size=8))
@settings(max_examples=60, deadline=None)
def test_the_cut_of_writes_and_reads_does_not_matter(writes: list[int], reads: list[int]) -> None:
    whole = TEXT[: min(sum(writes), len(TEXT))]
    ends = [0]
    for size in writes:
        ends.append(min(ends[-1] + size, len(whole)))
    data, _ = sealed_in([whole[a:b] for a, b in pairwise(ends)])
    with opened(data) as plain:
        at = 0
        for size in reads:
            assert plain.read(size) == whole[at : at + size]
            at = min(at + size, len(whole))
        assert plain.read() == whole[at:]


@pytest.mark.parametrize("room", [1000, CHUNK, 8 * CHUNK + 1])
def test_a_buffer_is_filled(room: int) -> None:
    data, _ = sealed_in([TEXT])
    buffer, found = bytearray(room), bytearray()
    with opened(data) as plain:
        while count := plain.readinto(buffer):
            found += buffer[:count]
            assert count == room or len(found) == len(TEXT)
    assert bytes(found) == TEXT


def test_a_buffer_can_be_written_and_used_again() -> None:
    out: list[bytes] = []
    sealer = age.seal([KEY.recipient], out.append)
    buffer = bytearray(1000)
    for number in range(200):
        buffer[:] = bytes([number]) * 1000
        sealer.write(memoryview(buffer))
    sealer.close()
    with opened(b"".join(out)) as plain:
        assert plain.read() == b"".join(bytes([number]) * 1000 for number in range(200))


def test_it_is_a_stream_for_tar_and_zstd() -> None:
    tar = BytesIO()
    with tarfile.open(fileobj=tar, mode="w") as archive:
        member = tarfile.TarInfo("a.txt")
        member.size = len(TEXT)
        archive.addfile(member, BytesIO(TEXT))
    data, done = sealed_in([zstandard.compress(tar.getvalue())])
    with (
        opened(data) as plain,
        zstandard.ZstdDecompressor().stream_reader(plain, closefd=False) as unpacked,
        tarfile.open(fileobj=unpacked, mode="r|") as archive,
    ):
        first = archive.next()
        assert first is not None
        assert archive.extractfile(first).read() == TEXT
        assert plain.read() == b""
        assert plain.payload_sha256 == done.payload_sha256


def test_it_keeps_the_manners_of_a_binary_stream() -> None:
    data, _ = sealed_in([TEXT[: 2 * CHUNK]])
    source = BytesIO(data)
    plain = age.unseal([KEY], source)
    assert plain.readable()
    assert not plain.seekable()
    assert not plain.writable()
    assert plain.read(0) == plain.read1(0) == b""
    assert plain.read(None) == TEXT[: 2 * CHUNK]
    plain.close()
    assert not source.closed
    with pytest.raises(ValueError, match="closed"):
        plain.read(1)
    with io.BufferedReader(opened(data), 1000) as buffered:
        assert buffered.read() == TEXT[: 2 * CHUNK]


def test_there_is_no_digest_before_the_end() -> None:
    data, _ = sealed_in([TEXT])
    plain = opened(data)
    plain.read(10)
    for ask in (lambda: plain.payload_sha256, lambda: plain.payload_length):
        with pytest.raises(PayloadError, match="bundle 7 was not read to its end"):
            ask()


def test_a_short_answer_never_hides_a_cut() -> None:
    """A caller takes fewer bytes than asked for as the end: so `read(n)` raises where the file was cut."""
    data, _ = sealed_in([TEXT[: 3 * CHUNK]])
    wraps: list[Callable[[age.Unsealer], bytes]] = [
        lambda plain: plain.read(4 * CHUNK),
        lambda plain: plain.read(),
        lambda plain: io.BufferedReader(plain).read(),
        lambda plain: plain.readinto(bytearray(4 * CHUNK)).to_bytes(4),
    ]
    for read in wraps:
        with pytest.raises(PayloadError, match="bundle 7 ends without its last chunk"):
            read(opened(data[: -CHUNK - 16]))


def test_failure_stays() -> None:
    data, _ = sealed_in([TEXT[: 3 * CHUNK]])
    broken = bytearray(data)
    broken[-CHUNK - 100] ^= 1
    plain = opened(bytes(broken))
    assert plain.read(CHUNK) == TEXT[:CHUNK]
    for read in (plain.read, plain.read1, lambda: plain.read(1), lambda: plain.readinto(bytearray(9))):
        with pytest.raises(PayloadError, match="chunk 1"):
            read()
    with pytest.raises(PayloadError):
        _ = plain.payload_sha256


def test_a_source_that_fails_once_does_not_get_a_second_try() -> None:
    class Flaky(BytesIO):
        broken = False

        def read(self, size: int | None = -1, /) -> bytes:
            if self.tell() > CHUNK and not self.broken:
                self.broken = True
                raise StoreUnreachableError("connection lost")
            return super().read(size)

    data, _ = sealed_in([TEXT])
    plain = age.unseal([KEY], Flaky(data))
    with pytest.raises(StoreUnreachableError):
        plain.read()
    with pytest.raises(PayloadError, match="failed while it was read"):
        plain.read()


def test_a_file_whose_output_failed_gets_no_end() -> None:
    out: list[bytes] = []

    def write(piece: bytes) -> None:
        if len(out) == 3:
            raise StoreUnreachableError("disk full")
        out.append(piece)

    sealer = age.seal([KEY.recipient], write)
    with pytest.raises(StoreUnreachableError):
        sealer.write(TEXT)
    for go_on in (sealer.close, lambda: sealer.write(b"more")):
        with pytest.raises(UsageError, match="nothing can be added"):
            go_on()
    assert len(out) == 3


def test_nothing_follows_close() -> None:
    sealer = age.seal([KEY.recipient], lambda _: None)
    sealer.close()
    for go_on in (sealer.close, lambda: sealer.write(b"more")):
        with pytest.raises(UsageError, match="closed"):
            go_on()


def test_memory_is_bounded() -> None:
    """Neither side holds more than one block or chunk, however much passes through."""
    held: list[int] = []
    sealer = age.seal([KEY.recipient], lambda piece: held.append(len(piece)))
    for _ in range(200):
        sealer.write(bytes(CHUNK // 2))
    assert max(held) <= CHUNK + 16
    assert len(held) >= 100

    class Counting(BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            assert size is not None
            assert 0 < size <= stream._BLOCK
            return super().read(size)

    data, _ = sealed_in([TEXT])
    source = Counting(data)
    with age.unseal([KEY], source) as plain:
        plain.read(1)
        assert source.tell() <= stream._BLOCK + (32 << 10)
        assert plain.read() == TEXT[1:]
