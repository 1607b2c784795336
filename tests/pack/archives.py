"""Archives for the tests: packed as the product packs, or put together by hand."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable, Mapping
from pathlib import Path

import zstandard

from archiver.model import Member, Receipt
from archiver.model.limits import Limits
from archiver.model.manifest import Manifest, ManifestHead, ManifestMember
from archiver.pack import pack, tar, unpack
from archiver.pack.frames import CONTENT
from archiver.redacted import Redacted, vouch

HEAD = ManifestHead(run="run", seq=7, schema_version=2, redaction_key="c2VjcmV0")
FILES = {"checkpoint.json": b'{"a":1}', "transcript/0001.jsonl": b'{"b":2}\n' * 99, "empty": b""}


def member(path: str, data: bytes, mode: int = 0o644) -> Member:
    return Member(path, data, len(data), hashlib.sha256(data).hexdigest(), mode)


def redacted(files: Mapping[str, bytes]) -> Redacted[tuple[Member, ...]]:
    return vouch(tuple(member(path, data) for path, data in files.items()), Receipt())


def packed(files: Mapping[str, bytes] = FILES, *, head: ManifestHead = HEAD, threads: int = 1) -> bytes:
    out = io.BytesIO()
    pack(redacted(files), head, out.write, limits=Limits(), threads=threads)
    return out.getvalue()


def unpacked(archive: bytes, into: Path, limits: Limits | None = None) -> Manifest:
    into.mkdir(exist_ok=True)
    return unpack(io.BytesIO(archive), into, limits=limits or Limits())


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def manifest_of(files: Mapping[str, bytes]) -> Manifest:
    return Manifest(
        **HEAD.model_dump(exclude={"mtime"}),
        members=tuple(
            ManifestMember(path=path, mode=0o644, size=len(data), sha256=hashlib.sha256(data).hexdigest())
            for path, data in files.items()
        ),
    )


def frame(content: bytes, *, checksum: bool = True, size: bool = True) -> bytes:
    return zstandard.ZstdCompressor(write_checksum=checksum, write_content_size=size).compress(content)


def first_frame(raw: bytes | None = None) -> bytes:
    raw = manifest_of(FILES).raw if raw is None else raw
    return frame(tar.manifest_entry(raw, HEAD.mtime))


def entry(path: str, data: bytes) -> bytes:
    return tar.header(path, len(data), 0o644, HEAD.mtime) + data + tar.padding(len(data))


def entries(files: Mapping[str, bytes] = FILES) -> list[bytes]:
    return [entry(path, data) for path, data in files.items()]


def archive_of(parts: Iterable[bytes], raw: bytes | None = None) -> bytes:
    """The manifest (of `FILES`, or `raw`) and a stream of any content, cut as the format says."""
    stream = b"".join(parts)
    return first_frame(raw) + b"".join(
        frame(stream[place : place + CONTENT]) for place in range(0, len(stream), CONTENT)
    )


def contents(archive: bytes) -> list[bytes]:
    """What each frame of an archive decodes to."""
    found = []
    while archive:
        decoder = zstandard.ZstdDecompressor().decompressobj()
        found.append(decoder.decompress(archive))
        archive = decoder.unused_data
    return found
