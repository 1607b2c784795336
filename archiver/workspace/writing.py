"""A tree written to disk as it was: content, modes, times, links; never through a link, or elsewhere.

Folders are private while they are filled. Their modes and times come last, the deepest first: a file that is
made changes the time of its folder, and one without permissions could not be filled.
"""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Final

from archiver.errors import (
    AlreadyExistsError,
    ArchiveFormatError,
    DigestMismatchError,
    InputNotFoundError,
    StoreFullError,
)
from archiver.model.workspace import TreeEntry, check_tree_path, path_bytes
from archiver.safetext import one_line
from archiver.workspace.found import Skipped
from archiver.workspace.reading import BLOCK, READ

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW_FILE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
_NO_FOLDER: Final = (errno.ENOTDIR, errno.ELOOP)


def write_tree(entries: Iterable[TreeEntry], content: Callable[[str], Path], into: Path) -> list[Skipped]:
    """Write the entries, sorted by the bytes of their paths, into the new private folder `into`.

    `content` gives the place of a file's content by its SHA-256. What comes back is written too, and worth a
    word: links that lead out of the tree, times that the file system does not have. A folder that no entry
    names gets the usual mode. Raises `AlreadyExistsError` where `into` is there, or two paths are one for its
    file system; `DigestMismatchError`, `ArchiveFormatError` for entries that are no tree,
    `InputNotFoundError`, `StoreFullError`. What was written before an error stays: `into` is then a folder to
    throw away.
    """
    with _translated(into, "restore into a folder that is not there yet"):
        into.mkdir(0o700)
    with _Tree(into, content) as tree:
        before = b""
        for entry in entries:
            raw = _checked(entry)
            if raw <= before:
                raise ArchiveFormatError(f"{one_line(entry.path)} is out of order in the tree")
            before = raw
            tree.add(entry)
        tree.settle()
    return tree.notes


def _checked(entry: TreeEntry) -> bytes:
    try:
        return path_bytes(check_tree_path(entry.path))
    except ValueError as error:
        raise ArchiveFormatError(f"{ascii(entry.path)[:200]} is no path of a tree: {error}") from error


class _Tree:
    """A tree that grows below one folder; handles of the folders on the way stay open."""

    def __init__(self, root: Path, content: Callable[[str], Path]) -> None:
        self.notes: list[Skipped] = []
        self._root = root
        self._content = content
        self._steps: list[str] = []
        self._handles: list[int] = []
        self._folders: list[TreeEntry] = []
        self._made: set[str] = set()

    def __enter__(self) -> _Tree:
        with _translated(self._root):
            self._handles = [os.open(self._root, _FOLDER)]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        while self._handles:
            os.close(self._handles.pop())

    def add(self, entry: TreeEntry) -> None:
        """Make one entry."""
        around, _, leaf = entry.path.rpartition("/")
        with _translated(self._root / entry.path):
            self._enter(around)
            if entry.type == "folder":
                os.mkdir(leaf, 0o700, dir_fd=self._handles[-1])
                self._made.add(entry.path)
                self._folders.append(entry)
            elif entry.type == "link":
                self._link(entry, leaf)
            elif entry.type == "file":
                self._file(entry, leaf)
            else:
                raise ArchiveFormatError(
                    f"{one_line(entry.path)} is gone from a commit, and the tree is written without one",
                    remedy="restore it as a git work tree",
                )

    def settle(self) -> None:
        """Give the folders their modes and times."""
        for entry in reversed(self._folders):
            with _translated(self._root / entry.path):
                self._enter(entry.path)
                handle = self._handles[-1]
                os.fchmod(handle, entry.mode)
            self._time(entry, handle)

    def _enter(self, path: str) -> None:
        """Make the last handle that of the folder; one that is not there yet gets the usual mode."""
        steps = path.split("/") if path else []
        shared = 0
        while steps[shared : shared + 1] == self._steps[shared : shared + 1] != []:
            shared += 1
        while len(self._handles) > shared + 1:
            os.close(self._handles.pop())
        del self._steps[shared:]
        for step in steps[shared:]:
            here = "/".join([*self._steps, step])
            if here not in self._made:
                os.mkdir(step, dir_fd=self._handles[-1])
                self._made.add(here)
            self._handles.append(os.open(step, _FOLDER, dir_fd=self._handles[-1]))
            self._steps.append(step)

    def _link(self, entry: TreeEntry, leaf: str) -> None:
        target = entry.target or ""
        os.symlink(target, leaf, dir_fd=self._handles[-1])
        if _leads_out(entry.path, target):
            self.notes.append(
                Skipped(entry.path, f"it is a link that leads out of the tree, to {one_line(target)}")
            )
        try:
            moment = (entry.modified, entry.modified)
            os.utime(leaf, ns=moment, dir_fd=self._handles[-1], follow_symlinks=False)
        except (OSError, OverflowError):
            self._note_time(entry)

    def _file(self, entry: TreeEntry, leaf: str) -> None:
        handle = os.open(leaf, _NEW_FILE, 0o600, dir_fd=self._handles[-1])
        try:
            self._fill(entry, handle)
            os.fchmod(handle, entry.mode)
            self._time(entry, handle)
        finally:
            os.close(handle)

    def _fill(self, entry: TreeEntry, handle: int) -> None:
        """Copy the content, which must have the digest and size of the entry."""
        digest, size = hashlib.sha256(), 0
        for block in _content(self._content(entry.sha256 or ""), entry):
            digest.update(block)
            size += len(block)
            view = memoryview(block)
            while view:
                view = view[os.write(handle, view) :]
        if digest.hexdigest() != entry.sha256 or size != entry.size:
            raise DigestMismatchError(
                f"the content of {one_line(entry.path)} has not the digest and size that the tree gives it",
                remedy="restore an older checkpoint, or the bundle from a copy of the store",
            )

    def _time(self, entry: TreeEntry, handle: int) -> None:
        try:
            os.utime(handle, ns=(entry.modified, entry.modified))
        except (OSError, OverflowError):
            self._note_time(entry)

    def _note_time(self, entry: TreeEntry) -> None:
        self.notes.append(Skipped(entry.path, "its time cannot be set"))


def _content(place: Path, entry: TreeEntry) -> Iterator[bytes]:
    try:
        handle = os.open(place, READ)
    except OSError as error:
        raise ArchiveFormatError(
            f"the content of {one_line(entry.path)} is not there: {error.strerror}",
            remedy="restore an older checkpoint, or the bundle from a copy of the store",
        ) from error
    try:
        while block := os.read(handle, BLOCK):
            yield block
    finally:
        os.close(handle)


def _leads_out(path: str, target: str) -> bool:
    """Whether a link leads above the root of the tree, by its words alone."""
    if target.startswith("/"):
        return True
    depth = path.count("/")
    for step in target.split("/"):
        depth += -1 if step == ".." else step not in ("", ".")
        if depth < 0:
            return True
    return False


@contextmanager
def _translated(
    path: Path, remedy: str = "restore where names that differ only in case are two"
) -> Iterator[None]:
    shown = one_line(str(path))
    try:
        yield
    except FileExistsError as error:
        raise AlreadyExistsError(f"{shown} is there already", remedy=remedy) from error
    except OSError as error:
        said = f"{shown} cannot be written: {error.strerror}"
        if error.errno in _NO_FOLDER:
            raise ArchiveFormatError(f"{shown} lies in what is no folder of the tree") from error
        if error.errno in _FULL:
            raise StoreFullError(said, remedy="make room on the disk of that folder") from error
        raise InputNotFoundError(said, remedy="check the folder's owner and mode") from error
