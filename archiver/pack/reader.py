"""Frames to files: the manifest says what must follow, byte for byte, and nothing else is accepted."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Protocol

from archiver.errors import ArchiveFormatError, DigestMismatchError, LimitExceededError
from archiver.model.limits import MAX_MANIFEST, Limits
from archiver.model.manifest import MANIFEST, Manifest, ManifestMember
from archiver.pack import tar
from archiver.pack.dictionary import End, is_small
from archiver.pack.frames import CONTENT, FrameReader
from archiver.pack.tree import Tree
from archiver.progress import Progress, Silent

_AHEAD = 2**20
_PIECE = 2**18
"""Hashed and written while the processor still has it at hand."""
_AHEAD_FOR_MANIFEST = 2**16
_LARGEST_FIRST = tar.BLOCK + MAX_MANIFEST
_REMEDY = "restore an older checkpoint, or the bundle from a copy of the store"


Lend = Callable[[Manifest], bytes]
"""The dictionary of the bundle with this manifest, from the transcript that its bases hold."""


@dataclass(frozen=True, slots=True)
class Ends:
    """Members whose ends are wanted, because dictionaries are made of them."""

    of: Callable[[str], bool]
    """Whether the member of that path is one."""
    take: Callable[[str, bytes], object]
    """Given the path and the end of each, once the digest of the member is proved."""


@dataclass(frozen=True, slots=True)
class First:
    """What frame 0 holds: the manifest, the time that every header carries, and its own bytes, compressed."""

    manifest: Manifest
    mtime: int
    length: int


def read_manifest(source: BinaryIO, *, limits: Limits) -> Manifest:
    """The manifest alone; needs the first frame only, and reads little more of `source`."""
    return read_first(source, limits=limits).manifest


def read_first(source: BinaryIO, *, limits: Limits) -> First:
    """The same with what `unpack_parts` needs."""
    return _first(FrameReader(source, _AHEAD_FOR_MANIFEST), limits)


def unpack(
    source: BinaryIO,
    into: Path,
    *,
    limits: Limits,
    progress: Progress | None = None,
    only: Container[str] | None = None,
    sizes: Sequence[int] = (),
    lend: Lend | None = None,
    ends: Ends | None = None,
) -> Manifest:
    """Write the members that the bundle holds as new private files below the folder `into`.

    Of them those whose paths are in `only`, if that is given: what comes after the last of these is not read.
    Where all are written, the frames after the first must have these `sizes`, if any are given.
    `lend` gives the dictionary of a bundle that has one, by its manifest. Of what `ends` names the end is
    given, whether or not it is written.
    Errors: `ArchiveFormatError`, `DigestMismatchError`, `LimitExceededError`, `UnsupportedSchemaError`;
    `AlreadyExistsError`, `InputNotFoundError` and `StoreFullError` for what is wrong with `into`.
    Files written before an error stay: `into` is a folder that the caller throws away.
    """
    frames = FrameReader(source, _AHEAD)
    first = _first(frames, limits)
    if first.manifest.dictionary is not None:
        frames.use(_lent(first.manifest, lend))
    stream = _Stream(frames, first.manifest)
    _unpack_members(first, stream, into, only, progress or Silent(), ends)
    if only is None:
        stream.expect(tar.END, "the end of the archive")
        if not frames.at_end():
            raise ArchiveFormatError("bytes follow the end of the archive", remedy=_REMEDY)
        if sizes and frames.sizes[1:] != list(sizes):
            raise ArchiveFormatError("the frames of the archive are not those of its record", remedy=_REMEDY)
    return first.manifest


def _lent(manifest: Manifest, lend: Lend | None) -> bytes:
    """The dictionary, of the length that the manifest demands."""
    if not is_small((member.path, member.size) for member in manifest.members):
        raise ArchiveFormatError("the archive has a dictionary and more than one frame", remedy=_REMEDY)
    found = lend(manifest) if lend is not None else b""
    if len(found) != manifest.dictionary:
        raise ArchiveFormatError(
            f"the archive needs a dictionary of {manifest.dictionary} bytes, and its bases have {len(found)}",
            remedy=_REMEDY,
        )
    return found


def unpack_parts(
    first: First,
    frames: Sequence[int],
    open_at: Callable[[int], AbstractContextManager[BinaryIO]],
    into: Path,
    *,
    only: Container[str],
    progress: Progress | None = None,
    ends: Ends | None = None,
) -> None:
    """The same for members of a bundle of which only the frames that hold them are read.

    `frames` are the bytes of the frames after the first, compressed; `open_at` opens the archive at an
    offset. Raises as `unpack` does: that what it read belongs to the archive is proved by the digests alone.
    """
    if first.manifest.dictionary is not None:
        raise ArchiveFormatError("the archive has a dictionary and more than one frame", remedy=_REMEDY)
    with _Jumping(open_at, accumulate(frames, initial=first.length), first.manifest) as jumping:
        _unpack_members(first, _Stream(jumping, first.manifest), into, only, progress or Silent(), ends)


def compressed(manifest: Manifest, frames: Sequence[int], only: Container[str]) -> int:
    """Bytes of those frames that hold any of the members in `only`."""
    wanted: set[int] = set()
    at = 0
    for member in manifest.members:
        length = tar.length(member.path, member.size)
        if member.path in only:
            wanted.update(range(at // CONTENT, (at + length - 1) // CONTENT + 1))
        at += length
    return sum(frames[number] for number in wanted if number < len(frames))


def _first(frames: FrameReader, limits: Limits) -> First:
    """The first frame, whose manifest is within the limits."""
    size = frames.content_size()
    if size > _LARGEST_FIRST:
        raise LimitExceededError(
            f"{MANIFEST} claims {size - tar.BLOCK} bytes, the limit is {MAX_MANIFEST}", remedy=_REMEDY
        )
    raw, mtime = tar.parse_manifest_entry(frames.read(size))
    limits.check_members(raw.count(b'"size":'))  # before parsing: a member takes ten times its bytes
    manifest = Manifest.parse(raw)
    limits.check_members(len(manifest.dropped))
    check_table(manifest, limits)
    return First(manifest, mtime, frames.sizes[0])


def check_table(manifest: Manifest, limits: Limits) -> None:
    """`LimitExceededError` for a table of too many members, folders or bytes."""
    limits.check_members(len(manifest.members))
    if (folders := manifest.folders) > limits.members:
        raise LimitExceededError(
            f"the members lie in {folders} folders, the limit is {limits.members}", remedy=_REMEDY
        )
    total = 0
    for member in manifest.members:
        total += member.size
        limits.check_member(member.path, member.size)
        limits.check_bundle(member.path, total)


def _unpack_members(
    first: First,
    stream: _Stream,
    into: Path,
    only: Container[str] | None,
    progress: Progress,
    ends: Ends | None,
) -> None:
    passed = 0
    with Tree(into) as tree:
        for member in first.manifest.members:
            end = End() if ends is not None and ends.of(member.path) else None
            wanted = only is None or member.path in only
            if not wanted and end is None:
                passed += tar.length(member.path, member.size)
                continue
            stream.skip(passed)
            passed = 0
            _unpack_member(member, first.mtime, stream, tree if wanted else None, end, progress)
            if ends is not None and end is not None:
                ends.take(member.path, end.data)


def _unpack_member(
    member: ManifestMember,
    mtime: int,
    stream: _Stream,
    tree: Tree | None,
    end: End | None,
    progress: Progress,
) -> None:
    """Into the tree, or to its `end`, or both."""
    stream.expect(tar.header(member.path, member.size, member.mode, mtime), f"the header of {member.path}")
    digest = hashlib.sha256()
    with ExitStack() as opened:
        writes: list[Callable[[memoryview], object]] = [digest.update]
        if tree is not None:
            writes.append(opened.enter_context(tree.new_file(member.path)))
        if end is not None:
            writes.append(end.write)
        for piece in stream.pieces(member.size):
            for write in writes:
                write(piece)
            progress.advance(len(piece))
    stream.expect(tar.padding(member.size), f"the padding of {member.path}")
    if digest.hexdigest() != member.sha256:
        raise DigestMismatchError(
            f"member {member.path} does not have the digest that the manifest gives it", remedy=_REMEDY
        )


class _Frames(Protocol):
    """The frames after the first, one after the other."""

    def read(self, expected: int) -> bytearray:
        """The content of the next one, of `expected` bytes; good until the next call."""

    def skip(self, expected: int) -> None:
        """Pass over the next one."""


class _Jumping:
    """Frames of an archive that is opened where the next wanted one begins."""

    def __init__(
        self,
        open_at: Callable[[int], AbstractContextManager[BinaryIO]],
        starts: Iterable[int],
        manifest: Manifest,
    ) -> None:
        self._open_at = open_at
        self._starts = tuple(starts)
        if len(self._starts) - 1 != -(-_rest(manifest) // CONTENT):
            raise ArchiveFormatError("the archive has not the frames that its record names", remedy=_REMEDY)
        self._number = 0
        self._opened = ExitStack()
        self._reader: FrameReader | None = None

    def __enter__(self) -> _Jumping:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._opened.close()

    def read(self, expected: int) -> bytearray:
        if self._reader is None:
            source = self._opened.enter_context(self._open_at(self._starts[self._number]))
            self._reader = FrameReader(source, _AHEAD_FOR_MANIFEST)
        self._number += 1
        return self._reader.read(expected)

    def skip(self, expected: int) -> None:  # noqa: ARG002 - as a reader of frames that come one by one
        self._opened.close()
        self._reader = None
        self._number += 1


def _rest(manifest: Manifest) -> int:
    """Bytes of the tar stream after the manifest."""
    return len(tar.END) + sum(tar.length(member.path, member.size) for member in manifest.members)


class _Stream:
    """The tar stream after the manifest, whose length the manifest fixes, and so every frame's."""

    def __init__(self, frames: _Frames, manifest: Manifest) -> None:
        self._frames = frames
        self._left = _rest(manifest)
        self._piece = memoryview(b"")

    def pieces(self, count: int) -> Iterator[memoryview]:
        """The next `count` bytes; a piece is good until the next one is asked for."""
        while count:
            if not self._piece:
                self._fill()
            piece = self._piece[: min(count, _PIECE)]
            self._piece = self._piece[len(piece) :]
            count -= len(piece)
            yield piece

    def skip(self, count: int) -> None:
        """Pass over the next `count` bytes; frames that hold nothing else are not decoded."""
        while count:
            if not self._piece and count >= (size := min(CONTENT, self._left)):
                self._frames.skip(size)
                self._left -= size
                count -= size
                continue
            if not self._piece:
                self._fill()
            passed = min(count, len(self._piece))
            self._piece = self._piece[passed:]
            count -= passed

    def _fill(self) -> None:
        self._piece = memoryview(self._frames.read(min(CONTENT, self._left)))
        self._left -= len(self._piece)

    def expect(self, data: bytes, what: str) -> None:
        """The next bytes are `data` and no others."""
        if b"".join(bytes(piece) for piece in self.pieces(len(data))) != data:
            raise ArchiveFormatError(f"{what} is not what the manifest demands", remedy=_REMEDY)
