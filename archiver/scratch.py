"""A private folder for what must not fit in memory, removed when the work ends."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from archiver.errors import ArchiverError, InputNotFoundError, StoreFullError

PREFIX = ".checkpoint-archiver-scratch-"
_NAME = re.compile(re.escape(PREFIX) + r"[a-z0-9_]{8}")
_MARK = ".scratch"
_MARK_TEXT = b"checkpoint-archiver: private, removed when the work ends\n"
_TIME_TO_MARK = 600
"""Seconds after which an empty folder without a lock has lost its maker."""


@dataclass(frozen=True, slots=True)
class Spooled:
    """A finished private file: its place, size in bytes, and SHA-256 (hex) if that was asked for."""

    path: Path
    size: int
    sha256: str


class Spool:
    """Writes one private file, hashed on the way if asked; `StoreFullError` where its disk has no room."""

    def __init__(self, path: Path, *, hashed: bool = True) -> None:
        self.path = path
        self.size = 0
        self._hash = hashlib.sha256() if hashed else None
        try:
            self._file = path.open("xb", buffering=1 << 18)
        except OSError as error:
            raise self._failed(error) from error

    def write(self, data: bytes | memoryview) -> None:
        try:
            self._file.write(data)
        except OSError as error:
            raise self._failed(error) from error
        if self._hash is not None:
            self._hash.update(data)
        self.size += len(data)

    def abandon(self) -> None:
        """Close the file of work that failed; what it holds is removed with its folder."""
        with suppress(OSError):
            self._file.close()

    def close(self) -> Spooled:
        try:
            self._file.close()
        except OSError as error:
            raise self._failed(error) from error
        return Spooled(self.path, self.size, self._hash.hexdigest() if self._hash is not None else "")

    def _failed(self, error: OSError) -> ArchiverError:
        return _failed(self.path.parent, error)


class Tape:
    """A private file that is written on where earlier work ended; what stood behind that is cut off.

    Raises as a `Spool` does.
    """

    def __init__(self, path: Path, size: int) -> None:
        """`size`: bytes that it has already and keeps; 0 for a new one."""
        self.path = path
        self.size = size
        try:
            self._file = path.open("r+b" if size else "w+b", buffering=1 << 18)
        except OSError as error:
            raise _failed(path.parent, error) from error
        self.cut(size)

    def cut(self, size: int) -> None:
        """Give up all but the first so many bytes."""
        try:
            self._file.seek(size)
            self._file.truncate()
        except OSError as error:
            raise _failed(self.path.parent, error) from error
        self.size = size

    def write(self, data: bytes) -> None:
        """Add to its end."""
        try:
            self._file.write(data)
        except OSError as error:
            raise _failed(self.path.parent, error) from error
        self.size += len(data)

    def read(self, at: int, count: int) -> bytes:
        """So many bytes of what was written, from `at` on."""
        self.flush()
        try:
            return os.pread(self._file.fileno(), count, at)
        except OSError as error:
            raise _failed(self.path.parent, error) from error

    def flush(self) -> None:
        """Have all of it seen by who opens the file."""
        try:
            self._file.flush()
        except OSError as error:
            raise _failed(self.path.parent, error) from error

    def __enter__(self) -> Tape:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._file.close()
        except OSError as failed:
            if error is None:
                raise _failed(self.path.parent, failed) from failed


def _failed(folder: Path, error: OSError) -> ArchiverError:
    full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
    return (StoreFullError if full else InputNotFoundError)(
        f"the scratch folder {folder} cannot be written: {error.strerror}",
        remedy="free some disk space there or set TMPDIR to a folder with more room; a restore writes "
        "beside the folder of --into",
    )


class Scratch:
    """A folder of mode 0700 that lives as long as one save or one restore, or as a run that is saved again.

    A killed process cannot remove its folder; the next one that makes a folder in the same place does.
    """

    def __init__(self, parent: Path | None = None) -> None:
        place = parent or Path(tempfile.gettempdir())
        try:
            _remove_abandoned(place)
            self.path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=place))
            self._lock = _marked(self.path)
        except OSError as error:
            other = "choose another folder" if parent else "set TMPDIR to a folder that can be written"
            raise InputNotFoundError(
                f"no private scratch folder could be made in {place}: {error.strerror}",
                remedy=f"free some disk space or {other}",
            ) from error
        self._count = 0
        self._spools: list[Spool] = []

    def new_path(self, label: str = "file") -> Path:
        """A fresh path inside the folder; nothing is there yet."""
        self._count += 1
        return self.path / f"{self._count:05d}-{label}"

    def spool(self, label: str = "spool", *, hashed: bool = True) -> Spool:
        """A new private file to write; hashing it costs about as much as writing it."""
        spool = Spool(self.new_path(label), hashed=hashed)
        self._spools.append(spool)
        return spool

    def keep(self, data: bytes, label: str = "file") -> Path:
        """A private file of these bytes: for thousands of small ones, which need no `Spool` each.

        Raises as a `Spool` does.
        """
        path = self.new_path(label)
        try:
            with path.open("xb", buffering=0) as file:
                rest = memoryview(data)
                while rest:
                    rest = rest[file.write(rest) :]
        except OSError as error:
            raise _failed(self.path, error) from error
        return path

    def keep_only(self, paths: Iterable[Path]) -> None:
        """Remove all files but these, of a folder that lives longer than one save."""
        kept = {*(path.name for path in paths), _MARK}
        self._spools = [spool for spool in self._spools if spool.path.name in kept]
        with suppress(OSError):
            for path in self.path.iterdir():
                if path.name not in kept:
                    path.unlink()

    def __enter__(self) -> Scratch:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Remove the folder; for one that outlives the block it was made in."""
        for spool in self._spools:
            spool.abandon()
        with suppress(OSError):
            _remove(self.path)
        os.close(self._lock)


def _marked(folder: Path) -> int:
    """Lock and mark a new folder; gives the handle of the lock. Where that fails nothing is left."""
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        (folder / _MARK).write_bytes(_MARK_TEXT)
    except OSError:
        os.close(lock)
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return lock


def _remove_abandoned(place: Path) -> None:
    """Remove the folders of processes that are gone: nobody holds a lock on them any more.

    Only what is certainly such a folder: by the form of its name, its mode, its owner and the mark inside.
    """
    with os.scandir(place) as entries:  # a folder for temporary files may hold thousands of others
        folders = [place / entry.name for entry in entries if _NAME.fullmatch(entry.name)]
    for folder in folders:
        try:
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            continue  # no folder, somebody else's, or just being removed
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            about = os.fstat(lock)
            mine = about.st_uid == os.getuid() and stat.S_IMODE(about.st_mode) == 0o700
            old = time.time() - about.st_mtime > _TIME_TO_MARK
            if mine and (_is_marked(folder) or (old and not any(folder.iterdir()))):
                _remove(folder)
        except OSError:
            continue  # its process lives, or another process has just removed it
        finally:
            os.close(lock)


def _is_marked(folder: Path) -> bool:
    mark = folder / _MARK
    return not mark.is_symlink() and mark.is_file() and mark.read_bytes() == _MARK_TEXT


def _remove(folder: Path) -> None:
    """Remove a scratch folder, its mark last: whoever is interrupted leaves what can be recognised."""
    for entry in folder.iterdir():
        if entry.name == _MARK:
            continue
        if entry.is_dir() and not entry.is_symlink():
            remove_folder(entry)
        else:
            entry.unlink(missing_ok=True)
    (folder / _MARK).unlink(missing_ok=True)
    folder.rmdir()


def remove_folder(folder: Path) -> None:
    """Remove a folder of our own as far as that goes, also folders in it that their modes close to us."""
    shutil.rmtree(folder, ignore_errors=True)
    if folder.is_dir():
        with suppress(OSError):
            _open_up(str(folder), None)
        shutil.rmtree(folder, ignore_errors=True)


def _open_up(name: str, around: int | None) -> None:
    """Let us list and change a folder and all in it; no link is followed."""
    os.chmod(name, 0o700, dir_fd=around)
    handle = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=around)
    try:
        with os.scandir(handle) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    _open_up(entry.name, handle)
    finally:
        os.close(handle)


def fsync_folder(path: Path) -> None:
    """Make a rename or a new name in `path` survive a power cut."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
