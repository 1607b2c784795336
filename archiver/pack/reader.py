"""Frames to files: the manifest says what must follow, byte for byte, and nothing else is accepted."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from archiver.errors import (
    AlreadyExistsError,
    ArchiveFormatError,
    DigestMismatchError,
    InputNotFoundError,
    LimitExceededError,
    StoreFullError,
)
from archiver.model.limits import MAX_MANIFEST, Limits
from archiver.model.manifest import MANIFEST, Manifest, ManifestMember
from archiver.pack import tar
from archiver.pack.frames import CONTENT, FrameReader
from archiver.progress import Progress, Silent

_AHEAD = 2**20
_PIECE = 2**18
"""Hashed and written while the processor still has it at hand."""
_AHEAD_FOR_MANIFEST = 2**16
_LARGEST_FIRST = tar.BLOCK + MAX_MANIFEST
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
_REMEDY = "restore an older checkpoint, or the bundle from a copy of the store"


def read_manifest(source: BinaryIO, *, limits: Limits) -> Manifest:
    """The manifest alone; needs the first frame only, and reads little more of `source`."""
    return _manifest(FrameReader(source, _AHEAD_FOR_MANIFEST), limits)[0]


def unpack(source: BinaryIO, into: Path, *, limits: Limits, progress: Progress | None = None) -> Manifest:
    """Write the members that the bundle holds as new private files below the folder `into`.

    Errors: `ArchiveFormatError`, `DigestMismatchError`, `LimitExceededError`, `UnsupportedSchemaError`;
    `AlreadyExistsError`, `InputNotFoundError` and `StoreFullError` for what is wrong with `into`.
    Files written before an error stay: `into` is a folder that the caller throws away.
    """
    frames = FrameReader(source, _AHEAD)
    manifest, mtime = _manifest(frames, limits)
    stream = _Stream(frames, manifest)
    with _Tree(into) as tree:
        for member in manifest.here():
            _unpack_member(member, mtime, stream, tree, progress or Silent())
    stream.expect(tar.END, "the end of the archive")
    if not frames.at_end():
        raise ArchiveFormatError("bytes follow the end of the archive", remedy=_REMEDY)
    return manifest


def _manifest(frames: FrameReader, limits: Limits) -> tuple[Manifest, int]:
    """The manifest, within the limits, and the time that every header must carry."""
    size = frames.content_size()
    if size > _LARGEST_FIRST:
        raise LimitExceededError(
            f"{MANIFEST} claims {size - tar.BLOCK} bytes, the limit is {MAX_MANIFEST}", remedy=_REMEDY
        )
    raw, mtime = tar.parse_manifest_entry(frames.read(size))
    limits.check_members(raw.count(b'"sha256":"'))  # before parsing: a member takes ten times its bytes
    manifest = Manifest.parse(raw)
    limits.check_members(len(manifest.members))
    if (folders := manifest.folders) > limits.members:
        raise LimitExceededError(
            f"the members lie in {folders} folders, the limit is {limits.members}", remedy=_REMEDY
        )
    total = 0
    for member in manifest.here():
        total += member.size
        limits.check_member(member.path, member.size)
        limits.check_bundle(member.path, total)
    return manifest, mtime


def _unpack_member(
    member: ManifestMember, mtime: int, stream: _Stream, tree: _Tree, progress: Progress
) -> None:
    stream.expect(tar.header(member.path, member.size, member.mode, mtime), f"the header of {member.path}")
    digest = hashlib.sha256()
    with tree.new_file(member.path) as write:
        for piece in stream.pieces(member.size):
            digest.update(piece)
            write(piece)
            progress.advance(len(piece))
    stream.expect(tar.padding(member.size), f"the padding of {member.path}")
    if digest.hexdigest() != member.sha256:
        raise DigestMismatchError(
            f"member {member.path} does not have the digest that the manifest gives it", remedy=_REMEDY
        )


class _Stream:
    """The tar stream after the manifest, whose length the manifest fixes, and so every frame's."""

    def __init__(self, frames: FrameReader, manifest: Manifest) -> None:
        self._frames = frames
        self._left = len(tar.END) + sum(tar.length(member.path, member.size) for member in manifest.here())
        self._piece = memoryview(b"")

    def pieces(self, count: int) -> Iterator[memoryview]:
        """The next `count` bytes; a piece is good until the next one is asked for."""
        while count:
            if not self._piece:
                self._piece = memoryview(self._frames.read(min(CONTENT, self._left)))
                self._left -= len(self._piece)
            piece = self._piece[: min(count, _PIECE)]
            self._piece = self._piece[len(piece) :]
            count -= len(piece)
            yield piece

    def expect(self, data: bytes, what: str) -> None:
        """The next bytes are `data` and no others."""
        if b"".join(bytes(piece) for piece in self.pieces(len(data))) != data:
            raise ArchiveFormatError(f"{what} is not what the manifest demands", remedy=_REMEDY)


class _Tree:
    """Makes new files below one folder; no component on the way may be a link."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._parts: tuple[str, ...] = ()
        self._handles: list[int] = []

    def __enter__(self) -> _Tree:
        with _translated(self._root, self._root):
            self._handles = [os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        while self._handles:
            os.close(self._handles.pop())

    @contextmanager
    def new_file(self, path: str) -> Iterator[Callable[[memoryview], None]]:
        """A function that writes to the new private file at `path`."""
        *parts, leaf = path.split("/")
        with _translated(self._root, self._root / path):
            self._enter(tuple(parts))
            handle = os.open(leaf, _NEW_FILE, 0o600, dir_fd=self._handles[-1])

        def write(data: memoryview) -> None:
            with _translated(self._root, self._root / path):
                while data:
                    data = data[os.write(handle, data) :]

        try:
            yield write
        finally:
            os.close(handle)

    def _enter(self, parts: tuple[str, ...]) -> None:
        shared = 0
        while parts[shared : shared + 1] == self._parts[shared : shared + 1] != ():
            shared += 1
        while len(self._handles) > shared + 1:
            os.close(self._handles.pop())
        self._parts = parts[:shared]
        for part in parts[shared:]:
            with suppress(FileExistsError):
                os.mkdir(part, 0o700, dir_fd=self._handles[-1])
            self._handles.append(os.open(part, _FOLDER, dir_fd=self._handles[-1]))
            self._parts += (part,)


@contextmanager
def _translated(root: Path, path: Path) -> Iterator[None]:
    try:
        yield
    except FileExistsError as error:
        raise AlreadyExistsError(f"{path} exists already", remedy="restore into an empty folder") from error
    except OSError as error:
        said = f"{path} cannot be written: {error.strerror}"
        if error.errno in _FULL:
            raise StoreFullError(said, remedy=f"make room on the disk of {root}") from error
        raise InputNotFoundError(said, remedy="check the folder's owner and mode") from error
