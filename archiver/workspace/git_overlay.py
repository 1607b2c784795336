"""Entries of a tree put over a work tree that git has written: nothing is written through a link."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from archiver.errors import ArchiveFormatError, DigestMismatchError
from archiver.model.git_document import check_relative
from archiver.model.workspace import TreeEntry
from archiver.safetext import one_line
from archiver.workspace.git_places import is_in_git_folder

_SHOWN: Final = 200


def check_name(path: str) -> None:
    """`ArchiveFormatError` for a path that leaves the work tree, or lies in a git folder, however spelt."""
    try:
        check_relative(path)
    except ValueError as error:
        raise ArchiveFormatError(f"{_named(path)} is no usable path: {error}") from error
    if is_in_git_folder(path):
        raise ArchiveFormatError(f"{_named(path)} lies in a git folder")


def _named(path: str) -> str:
    return f"an entry of the tree, {one_line(path)[:_SHOWN]},"


class Overlay:
    """Puts entries into a folder that is ours alone; `notes`: what is not as it was, for a person."""

    def __init__(self, into: Path, content: Callable[[str], Path]) -> None:
        self.notes: list[str] = []
        self._into = into
        self._content = content
        self._times: list[TreeEntry] = []
        self._folders: list[TreeEntry] = []

    def put(self, entries: Iterable[TreeEntry]) -> list[TreeEntry]:
        """Take away what is gone, then write the rest; gives what was gone."""
        gone: list[TreeEntry] = []
        rest: list[TreeEntry] = []
        for entry in entries:
            check_name(entry.path)
            (gone if entry.type == "gone" else rest).append(entry)
        self.remove(entry.path for entry in gone)
        for entry in rest:
            self._write(entry)
        for entry in self._times:
            self._time(entry)
        for entry in reversed(self._folders):  # one that nobody may enter is filled by now
            (self._into / entry.path).chmod(entry.mode)
        return gone

    def _time(self, entry: TreeEntry) -> None:
        moment = (entry.modified, entry.modified)
        try:
            os.utime(self._into / entry.path, ns=moment, follow_symlinks=False)
        except (OSError, OverflowError):
            self.notes.append(f"{one_line(entry.path)}: its time cannot be set")

    def remove(self, paths: Iterable[str]) -> None:
        """Take away what git has written there."""
        for path in reversed(list(paths)):  # what lies in a folder before the folder
            check_name(path)
            self._remove(path)

    def _remove(self, path: str) -> None:
        """A file, a link, or the empty folder of a submodule; then the folders that it leaves empty."""
        if not self._parents(path, make=False):
            return
        place = self._into / path
        try:
            if stat.S_ISDIR(place.lstat().st_mode):
                place.rmdir()
            else:
                place.unlink()
            for above in place.parents:
                if above == self._into:
                    break
                above.rmdir()
        except OSError:
            return  # it is not there, or there is more in it

    def _write(self, entry: TreeEntry) -> None:
        self._parents(entry.path, make=True)
        place = self._into / entry.path
        if entry.type == "folder":
            self._folder(entry, place)
            return
        self._free(entry, place)
        if entry.type == "link":
            place.symlink_to(_target(entry))
        else:
            self._copy(entry, place)
        self._times.append(entry)

    def _folder(self, entry: TreeEntry, place: Path) -> None:
        """A folder; a file or a link that git has written in its place goes, and is not followed."""
        if not self._is_folder(place):
            self._free(entry, place)
            place.mkdir()
        self._folders.append(entry)

    def _copy(self, entry: TreeEntry, place: Path) -> None:
        if entry.sha256 is None:
            raise ArchiveFormatError(f"{_named(entry.path)} is a file and names no content")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with (
            self._content(entry.sha256).open("rb") as source,
            os.fdopen(os.open(place, flags, 0o600), "wb") as file,
        ):
            shutil.copyfileobj(source, file, 1 << 20)
            if file.tell() != entry.size:
                raise DigestMismatchError(f"{_named(entry.path)} has another size than its content")
            os.fchmod(file.fileno(), entry.mode & 0o777)

    @staticmethod
    def _is_folder(place: Path) -> bool:
        try:
            return stat.S_ISDIR(place.lstat().st_mode)
        except OSError:
            return False

    def _free(self, entry: TreeEntry, place: Path) -> None:
        """Room for what comes: an old file or link, or the empty folder of a submodule, is taken away."""
        try:
            if self._is_folder(place):
                place.rmdir()
            else:
                place.unlink(missing_ok=True)
        except OSError as error:
            raise ArchiveFormatError(f"{_named(entry.path)} is a file and a folder") from error

    def _parents(self, path: str, *, make: bool) -> bool:
        """Whether all folders above are there, and are folders and no links; makes them if asked."""
        place = self._into
        for part in path.split("/")[:-1]:
            place /= part
            try:
                kind = place.lstat().st_mode
            except OSError:
                if not make:
                    return False
                place.mkdir()
                continue
            if not stat.S_ISDIR(kind):
                if make:
                    raise ArchiveFormatError(f"{_named(path)} lies below a file or a link")
                return False
        return True


def _target(entry: TreeEntry) -> str:
    if not entry.target or "\0" in entry.target:
        raise ArchiveFormatError(f"{_named(entry.path)} is a link without a target")
    return entry.target
