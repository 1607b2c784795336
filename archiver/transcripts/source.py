"""One input file, opened so that nothing hangs, and read no further than it reached when first seen."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from archiver.errors import InputNotFoundError, RefusedError
from archiver.transcripts.names import shown

CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class FileSource:
    """A regular file by path and identity; `size` in bytes and `mtime_ns` as first seen."""

    path: Path
    size: int
    device: int
    inode: int
    mtime_ns: int

    @classmethod
    def of(cls, path: Path, *, follow: bool = True) -> FileSource:
        """Look at a file; `InputNotFoundError` unless it is a regular file that can be read.

        With `follow` false a symbolic link is refused: it was found in a folder, not named by the caller.
        """
        handle = _open(path, follow=follow)
        try:
            seen = os.fstat(handle)
        finally:
            os.close(handle)
        if not stat.S_ISREG(seen.st_mode):
            raise InputNotFoundError(
                f"{shown(path)} is {_KINDS.get(stat.S_IFMT(seen.st_mode), 'not a file')}, not a regular file",
                remedy="name the transcript's file, or the folder of one session",
            )
        return cls(path, seen.st_size, seen.st_dev, seen.st_ino, seen.st_mtime_ns)

    @contextmanager
    def opened(self, *, unchanged: bool = False) -> Iterator[int]:
        """A file handle for `os.pread`; `RefusedError` when another file lies there now.

        With `unchanged` also when the file was written since: offsets found in it no longer hold.
        """
        handle = _open(self.path)
        try:
            now = os.fstat(handle)
            same = (now.st_dev, now.st_ino) == (self.device, self.inode)
            if not same or (unchanged and (now.st_size, now.st_mtime_ns) != (self.size, self.mtime_ns)):
                raise RefusedError(
                    f"{shown(self.path)} was replaced or rewritten while it was being read",
                    remedy="archive it again when nothing writes to it",
                )
            yield handle
        finally:
            os.close(handle)

    def blocks(self) -> Iterator[bytes]:
        """The bytes up to the size first seen, or to where the file now ends if that is before."""
        start = 0
        with self.opened() as handle:
            while start < self.size:
                block = os.pread(handle, min(CHUNK, self.size - start), start)
                if not block:
                    return
                start += len(block)
                yield block

    def head(self, limit: int) -> bytes:
        """The first `limit` bytes, or all there are."""
        with self.opened() as handle:
            return read_range(handle, 0, min(limit, self.size))


def read_range(handle: int, start: int, end: int) -> bytes:
    """The bytes of a range; fewer when the file ends before."""
    pieces = []
    while start < end:
        piece = os.pread(handle, end - start, start)
        if not piece:
            break
        pieces.append(piece)
        start += len(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _open(path: Path, *, follow: bool = True) -> int:
    # O_NONBLOCK: a FIFO without a writer would block for ever.
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
    try:
        return os.open(path, flags if follow else flags | os.O_NOFOLLOW)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise InputNotFoundError(
            f"{shown(path)} cannot be read: {reason}", remedy="check the path and who may read it"
        ) from error


_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}
