"""Names as places below one folder: never outside it, never through a symbolic link, errors by meaning."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from archiver.errors import (
    InvalidNameError,
    StoreDeniedError,
    StoreError,
    StoreFullError,
    StoreMissingError,
    StoreUnreachableError,
)

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_DENIED = {errno.EACCES, errno.EPERM, errno.EROFS}
_WRONG_KIND = {errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.ENXIO}
_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class FolderMissingError(Exception):
    """A folder on the way to a name is not there; never leaves this package."""


@contextmanager
def translated(what: str) -> Iterator[None]:
    """Give an `OSError` inside its meaning; `what` names the object or folder, and is in the message."""
    try:
        yield
    except OSError as error:
        raise meaning(error, what) from error


def meaning(error: OSError, what: str) -> StoreError:
    """The error of this package that says what an `OSError` means for `what`."""
    text = f"{what}: {error.strerror or error}"
    if error.errno in _FULL:
        return StoreFullError(
            f"the store has no room for {text}", remedy="free space or raise the quota, then run it again"
        )
    if error.errno in _DENIED:
        return StoreDeniedError(
            f"the store refuses access to {text}",
            remedy="check the owner and mode of the folder, and whether it is mounted read-only",
        )
    if error.errno in _WRONG_KIND:
        return wrong_kind(what)
    return StoreUnreachableError(f"the store failed at {text}", remedy="check the disk or the mount")


def wrong_kind(what: str) -> StoreError:
    """What stands in the place of an object or folder is neither: a link, a pipe, a socket, a device."""
    return StoreError(
        f"{what} is not the plain file or folder that belongs there; nothing was read from it",
        remedy="look at it with `ls -l` and move it out of the store's folder",
    )


def sync(handle: int) -> None:
    """Bring a file or folder to the disk itself; macOS has a call of its own for that."""
    full = getattr(fcntl, "F_FULLFSYNC", None)
    if full is None:
        os.fsync(handle)
    else:
        fcntl.fcntl(handle, full)


@contextmanager
def root_folder(root: Path) -> Iterator[int]:
    """A handle of the store's own folder, which (it alone) may be reached through symbolic links."""
    try:
        handle = os.open(root, _FOLDER_FLAGS)
    except (FileNotFoundError, NotADirectoryError) as error:
        missing = isinstance(error, FileNotFoundError)
        raise StoreMissingError(
            f"the store's folder {root} {'does not exist' if missing else 'is not a folder'}",
            remedy="mount it, or correct the address; where there never was a store, `archiver init "
            "FOLDER --config FILE` makes one, and FILE, a new configuration",
        ) from error
    except OSError as error:
        raise meaning(error, str(root)) from error
    try:
        yield handle
    finally:
        os.close(handle)


@contextmanager
def subfolder(root: int, parts: tuple[str, ...], *, make: bool = False) -> Iterator[int]:
    """A handle of a folder below `root`; `FolderMissingError` if it is not there and `make` is false.

    No component may be a symbolic link. With `make`, missing folders come into being with mode 0700; the
    caller syncs them.
    """
    with translated("/".join(parts) or "the store's folder"):
        handle = os.dup(root)
    try:
        for depth, part in enumerate(parts, start=1):
            inner = _enter(handle, part, "/".join(parts[:depth]), make=make)
            os.close(handle)
            handle = inner
        yield handle
    finally:
        os.close(handle)


def _enter(parent: int, part: str, what: str, *, make: bool) -> int:
    with translated(f"folder {what}"):
        try:
            inner = os.open(part, _FOLDER_FLAGS | os.O_NOFOLLOW, dir_fd=parent)
        except FileNotFoundError:
            if not make:
                raise FolderMissingError from None
            inner = _make(parent, part)
        except NotADirectoryError:
            if not make and _is_file(parent, part):
                raise FolderMissingError from None  # an object lies there, so nothing can lie below it
            raise
    if _misspelt(parent, part, inner):
        os.close(inner)
        if not make:
            raise FolderMissingError
        raise InvalidNameError(
            f"{what} differs only in case from a folder of the store, and its file system folds case",
            remedy="use another run id, or keep the store on a file system that tells case apart",
        )
    return inner


def _make(parent: int, part: str) -> int:
    with suppress(FileExistsError):  # another writer may make it at the same moment
        os.mkdir(part, 0o700, dir_fd=parent)
    return os.open(part, _FOLDER_FLAGS | os.O_NOFOLLOW, dir_fd=parent)


def _is_file(parent: int, part: str) -> bool:
    return stat.S_ISREG(os.stat(part, dir_fd=parent, follow_symlinks=False).st_mode)


def _names(folder: int) -> set[str]:
    with os.scandir(folder) as found:
        return {entry.name for entry in found}


def _misspelt(parent: int, part: str, inner: int) -> bool:
    """Whether the file system folds case and the folder that opened has another spelling than was asked."""
    try:
        other = os.stat(part.swapcase(), dir_fd=parent, follow_symlinks=False)
        return os.path.samestat(other, os.fstat(inner)) and part not in _names(parent)
    except OSError:
        return False  # there is no other spelling: the file system tells case apart
