"""What lies in a folder, one entry after the other; only regular files count, and nothing is opened."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from archiver.safetext import one_line
from archiver.sources.found import FileStamp, Kind, Unusable

Entry = os.DirEntry[str]
LET_IN: Final = "let the user of the sweep read it, or leave it out with `match` of the source"
_GONE: Final = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP}


def entries(folder: Path | str) -> list[Entry]:
    """What lies in a folder, by name; nothing where it is gone, and `OSError` where it may not be listed."""
    try:
        with os.scandir(folder) as found:
            return sorted(found, key=lambda entry: os.fsencode(entry.name))
    except OSError as error:
        if error.errno in _GONE:
            return []
        raise


def is_folder(entry: Entry, *, follow: bool) -> bool:
    """Whether it is a folder, or with `follow` a link to one."""
    try:
        return entry.is_dir(follow_symlinks=follow)
    except OSError:
        return False


def stamp(entry: Entry, *, follow: bool) -> FileStamp | None:
    """As `stamp_of`, of an entry."""
    try:
        return _of(Path(entry.path), entry.stat(follow_symlinks=follow))
    except OSError as error:
        if error.errno in _GONE:
            return None
        raise


def stamp_of(path: Path, *, follow: bool = True) -> FileStamp | None:
    """The file as it is now; None for nothing, for what is no regular file, and for a link without `follow`.

    Raises `OSError` where it may not be looked at.
    """
    try:
        return _of(path, path.stat(follow_symlinks=follow))
    except OSError as error:
        if error.errno in _GONE:
            return None
        raise


def _of(path: Path, seen: os.stat_result) -> FileStamp | None:
    if not stat.S_ISREG(seen.st_mode):
        return None
    return FileStamp(path, seen.st_size, seen.st_mtime_ns, seen.st_ino, seen.st_dev)


def unusable(kind: Kind, path: Path | str, error: OSError, *, root: bool = False) -> Unusable:
    """A folder or file that the system does not let be looked at."""
    why = one_line(f"cannot be looked at: {error.strerror or error}")
    return Unusable(kind, os.fspath(path), why, remedy=LET_IN, root=root)


class Walk:
    """The files in a folder and all folders below it; links to folders are not followed."""

    def __init__(self, root: Path, kind: Kind) -> None:
        self._root = root
        self._kind: Kind = kind

    def __iter__(self) -> Iterator[tuple[Path, list[Entry]] | Unusable]:
        """Each folder with what lies in it, or that it cannot be listed."""
        waiting = [self._root]
        while waiting:
            folder = waiting.pop()
            try:
                found = entries(folder)
            except OSError as error:
                yield unusable(self._kind, folder, error, root=folder == self._root)
                continue
            below = [Path(entry.path) for entry in found if is_folder(entry, follow=False)]
            waiting.extend(reversed(below))
            yield folder, found


class Pattern:
    """The `match` of a source: `*`, `?` and `[…]` within one step of a path, `**` for any number of steps.

    A path fits if it, or a folder above it, does.
    """

    def __init__(self, root: Path, pattern: str) -> None:
        self._root = os.fspath(root)
        steps = [step for step in pattern.split("/") if step not in ("", ".")]
        self._steps = [] if set(steps) == {"**"} else steps

    def fits(self, path: Path | str) -> bool:
        """Whether a path below the root fits."""
        if not self._steps:
            return True
        relative = os.path.relpath(path, self._root)
        places = self._past({0})
        for step in [] if relative == "." else relative.split("/"):
            if len(self._steps) in places:
                return True
            places = self._past(self._next(places, step))
        return len(self._steps) in places

    def _next(self, places: set[int], name: str) -> set[int]:
        """The steps of the pattern that can come after one more step of the path."""
        following = set()
        for place in places:
            step = self._steps[place]
            if step == "**":
                following.add(place)
            elif fnmatchcase(name, step):
                following.add(place + 1)
        return following

    def _past(self, places: set[int]) -> set[int]:
        """These steps, and those behind a `**` that stands for none."""
        reached = set(places)
        for place in sorted(places):
            while place < len(self._steps) and self._steps[place] == "**":
                place += 1  # noqa: PLW2901
                reached.add(place)
        return reached
