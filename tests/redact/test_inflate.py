"""What compressed and wide-character files hold is seen to the end, however the file is cut into chunks."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import secrets
import zipfile
from collections.abc import Callable

import pytest

from archiver.redact.inflate import inflater_for
from archiver.redact.inflate.kinds import kind_of
from archiver.redact.raw import RawPass
from archiver.redact.scrub import Scrubber
from tests.redact.support import expand

Pack = Callable[[bytes], bytes]


def _zip(data: bytes) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a", data)
    return held.getvalue()


PACKS: dict[str, Pack] = {
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "lzma": lambda data: lzma.compress(data, format=lzma.FORMAT_ALONE),
    "zip": _zip,
    "gzip in gzip": lambda data: gzip.compress(gzip.compress(data)),
    "xz in bzip2": lambda data: bz2.compress(lzma.compress(data)),
    "utf-16 in gzip": lambda data: gzip.compress(data.decode().encode("utf-16-le")),
}
WIDE: dict[str, Pack] = {
    name: lambda data, name=name: data.decode().encode(name)  # type: ignore[misc]  # a default binds the name
    for name in ("utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be")
}
WIDE["inside a binary"] = lambda data: secrets.token_bytes(99) + b"\0" + data.decode().encode("utf-16-le")


def _found(scrubber: Scrubber, data: bytes, chunk: int) -> bool:
    work = RawPass(scrubber, None, "here")
    for at in range(0, len(data), chunk):
        work.feed(data[at : at + chunk])
    work.close()
    return work.found


@pytest.mark.parametrize("name", PACKS | WIDE)
def test_a_credential_at_the_end_of_much_content_is_found(scrubber: Scrubber, name: str) -> None:
    pack = (PACKS | WIDE)[name]
    token = expand("ghp_{alnum:36}", 8)
    filler = "hello world, some text\n" * 150_000
    assert _found(scrubber, pack(f"{filler} {token}\n".encode()), 1 << 20)
    assert not _found(scrubber, pack(filler.encode()), 1 << 20)


@pytest.mark.parametrize("chunk", [1, 3, 50])
@pytest.mark.parametrize("name", PACKS | WIDE)
def test_however_a_file_is_cut_it_is_looked_into(scrubber: Scrubber, name: str, chunk: int) -> None:
    pack = (PACKS | WIDE)[name]
    token = expand("ghp_{alnum:36}", 9)
    assert _found(scrubber, pack(f"see {token} there\n".encode()), chunk)


def test_a_short_file_is_what_it_is() -> None:
    assert inflater_for(b"text") is None


@pytest.mark.parametrize(
    "start", [b"\x1f\x8b\xef\xe5", b"\x1f\x8b\x07\x00", b"\x1f\x9d\x3f\x39", b"\x1f\x9d\xfc\x13"]
)
def test_a_mark_of_two_bytes_alone_is_chance(start: bytes) -> None:
    assert kind_of(start + bytes(30)) is None


@pytest.mark.parametrize(
    ("start", "kind"), [(b"\x1f\x8b\x08\xff", "gzip"), (b"\x1f\x8b", "gzip"), (b"\x1f\x9d\x90ab", "compress")]
)
def test_a_mark_of_two_bytes_with_what_has_to_follow(start: bytes, kind: str) -> None:
    assert kind_of(start) == kind
