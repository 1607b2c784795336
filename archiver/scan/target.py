"""The folder that copies are put into: by handles, so that no link on the way leads anywhere else."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Final

from archiver.errors import (
    AlreadyExistsError,
    ArchiverError,
    InputNotFoundError,
    RefusedError,
    StoreFullError,
)
from archiver.scratch import Spooled
from archiver.transcripts.names import shown

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
_NO_LINKS: Final = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)


class Target:
    """Gives finished private files their names below one folder; folders and files are the caller's alone."""

    def __init__(self, root: Path, *, overwrite: bool) -> None:
        self._root = root
        self._overwrite = overwrite
        self._handle = -1

    def __enter__(self) -> Target:
        with self._translated(""):
            self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._handle = os.open(self._root, _FOLDER)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._handle)

    def demand_free(self, names: Iterable[str]) -> None:
        """`AlreadyExistsError` for the first name that is taken, unless it may be written over."""
        if os.path.lexists(self._root) and not self._root.is_dir():
            raise AlreadyExistsError(f"{shown(self._root)} is no folder", remedy="choose another --into")
        for name in names:
            path = self._root / name
            if os.path.lexists(path) and not (self._overwrite and not path.is_dir()):
                raise _taken(path, self._overwrite)

    def put(self, made: Spooled, name: str) -> None:
        """Move a finished file to its name, durably; `AlreadyExistsError` if that is taken meanwhile."""
        *parts, leaf = name.split("/")
        with self._translated(name), self._entered(parts) as folder:
            _sync(made.path)
            if self._overwrite:
                os.replace(made.path, leaf, dst_dir_fd=folder)
            else:
                _link(made.path, leaf, folder)
            os.fsync(folder)

    @contextmanager
    def _entered(self, parts: list[str]) -> Iterator[int]:
        """A handle of a folder below the root; those that are missing are made."""
        handle = os.dup(self._handle)
        try:
            for part in parts:
                with suppress(FileExistsError):
                    os.mkdir(part, 0o700, dir_fd=handle)
                inner = os.open(part, _FOLDER, dir_fd=handle)
                os.close(handle)
                handle = inner
            yield handle
        finally:
            os.close(handle)

    @contextmanager
    def _translated(self, name: str) -> Iterator[None]:
        path = self._root / name
        try:
            yield
        except FileExistsError as error:
            raise _taken(path, self._overwrite) from error
        except OSError as error:
            raise _failed(path, error) from error


def _link(source: Path, leaf: str, folder: int) -> None:
    """A second name for the file, never over another; the first one goes."""
    try:
        os.link(source, leaf, dst_dir_fd=folder, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        # A file system without hard links: the name is claimed, then replaced.
        os.close(os.open(leaf, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=folder))
        os.replace(source, leaf, dst_dir_fd=folder)
        return
    source.unlink()


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.fchmod(handle, 0o600)
        os.fsync(handle)
    finally:
        os.close(handle)


def _taken(path: Path, overwrite: bool) -> AlreadyExistsError:
    what = "is a folder" if overwrite else "exists already and nothing is written over"
    return AlreadyExistsError(
        f"{shown(path)} {what}",
        remedy="choose another --into" + ("" if overwrite else ", or say --overwrite"),
    )


def _failed(path: Path, error: OSError) -> ArchiverError:
    said = f"{shown(path)} cannot be written: {error.strerror}"
    if error.errno in _FULL:
        return StoreFullError(said, remedy="make room on that disk, or choose another --into")
    if error.errno in (errno.ELOOP, errno.ENOTDIR):
        return RefusedError(
            f"{shown(path)} is not written: a link or a file stands where a folder is due",
            remedy="choose another --into",
        )
    return InputNotFoundError(said, remedy="check the folder's owner and mode, or choose another --into")
