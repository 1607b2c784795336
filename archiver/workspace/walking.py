"""A folder and all below it, in the order of the bytes of their paths, without a step out of it.

Every folder is opened by its name in the one around it, never through a link: a folder that is swapped for a
link meanwhile is not followed. At any time there is one handle a level, and the names of the folders on the
way.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Final

from archiver.model.workspace import MAX_TREE_DEPTH, MAX_TREE_PATH, TreeEntry, path_bytes
from archiver.workspace.found import CaptureIgnored, Found, Skips, stamp_of
from archiver.workspace.ignoring import Ignoring, Within
from archiver.workspace.options import WorkspaceLimits
from archiver.workspace.sqlite import CopyError, Databases, copied

ROOT: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_OPENED: Final = ROOT | os.O_NOFOLLOW
_BITS: Final = 0o777
_SPECIAL: Final = {
    stat.S_IFIFO: "it is a named pipe",
    stat.S_IFSOCK: "it is a socket",
    stat.S_IFCHR: "it is a device",
    stat.S_IFBLK: "it is a device",
}

_FILE, _FOLDER, _BELOW = range(3)
"""What an item of a folder is: some entry, an entry that is a folder, or what lies in that."""

_Item = tuple[bytes, "os.DirEntry[str]", int]


@dataclass(slots=True)
class _Level:
    """A folder on the way: what of it is still to come, the last first."""

    handle: int
    place: str
    """Its path, without an end."""
    prefix: str
    within: Within
    items: list[_Item] = field(default_factory=list)
    databases: Databases = field(default_factory=Databases)
    entered: dict[str, tuple[Within, tuple[int, int]]] = field(default_factory=dict)
    """Folders of it that are going to be entered: what was decided over each, its device and inode."""


class Walk:
    """The entries of one folder; what is left out goes to `skips`, or is counted in `ignored`."""

    def __init__(
        self,
        root: Path,
        ignoring: Ignoring,
        limits: WorkspaceLimits,
        apart: frozenset[tuple[int, int]],
        skips: Skips,
        ignored: CaptureIgnored,
    ) -> None:
        """`apart`: device and inode of folders that are passed over."""
        self._root = root
        self._device = -1
        self._ignoring = ignoring
        self._limits = limits
        self._depth = min(limits.depth, MAX_TREE_DEPTH)
        self._apart = apart
        self._skips = skips
        self._ignored = ignored
        self._count = 0
        self._bytes = 0
        self._levels: list[_Level] = []

    def __iter__(self) -> Iterator[Found]:
        """Each entry once; ends early where there are too many."""
        try:
            self._begin()
            while self._levels:
                level = self._levels[-1]
                if not level.items:
                    os.close(self._levels.pop().handle)
                    continue
                _, entry, kind = level.items.pop()
                if kind == _BELOW:
                    self._descend(level, entry)
                elif (found := self._look(level, entry, kind == _FOLDER)) is not None:
                    yield found
        finally:
            while self._levels:
                os.close(self._levels.pop().handle)
            self._skips.close()

    def _begin(self) -> None:
        try:
            handle = os.open(self._root, ROOT)
        except OSError as error:  # it was there when the capture began
            self._skips.add(".", f"it cannot be read: {error.strerror}")
            return
        self._device = os.fstat(handle).st_dev
        self._enter(handle, str(self._root).rstrip("/"), "", Within.TAKEN)

    def _enter(self, handle: int, place: str, prefix: str, within: Within) -> None:
        """Go on with what lies in a folder, which is open."""
        level = _Level(handle, place, prefix, within)
        self._levels.append(level)
        most = self._limits.files
        try:
            with os.scandir(handle) as listed:
                entries = list(islice(listed, most + 1))
        except OSError as error:
            self._skips.add(prefix[:-1] or ".", f"it cannot be listed: {error.strerror}")
            return
        if len(entries) > most:
            self._skips.add(
                prefix[:-1] or ".", f"it has more than {most} entries, so none of them is carried"
            )
            return
        # What lies in a folder comes where its name with a `/` belongs: `a`, `a-b`, `a/x`.
        for entry in entries:
            name, folder = os.fsencode(entry.name), _is_folder(entry)
            level.items.append((name, entry, _FOLDER if folder else _FILE))
            if folder:
                level.items.append((name + b"/", entry, _BELOW))
        level.items.sort(reverse=True)
        level.databases = Databases.among(entry.name for entry in entries)

    def _descend(self, level: _Level, entry: os.DirEntry[str]) -> None:
        """Open a folder that was looked at before, if it still is the same."""
        if entry.name not in level.entered:
            return
        within, identity = level.entered.pop(entry.name)
        path = level.prefix + entry.name
        if len(self._levels) >= self._depth:
            self._skips.add(path, f"what lies in it is deeper than {self._depth} folders")
            return
        try:
            handle = os.open(entry.name, _OPENED, dir_fd=level.handle)
        except OSError as error:
            self._skips.add(path, f"what lies in it cannot be read: {error.strerror}")
            return
        opened = os.fstat(handle)
        if (opened.st_dev, opened.st_ino) != identity:
            os.close(handle)
            self._skips.add(path, "it was replaced while it was looked at")
            return
        self._enter(handle, f"{level.place}/{entry.name}", path + "/", within)

    def _look(self, level: _Level, entry: os.DirEntry[str], folder: bool) -> Found | None:
        """What a name of a folder stands for; None for what is not carried."""
        name, path = entry.name, level.prefix + entry.name
        within = self._ignoring.decide(path, name, folder, level.handle, level.within)
        if within is Within.IGNORED:
            self._ignored.count += 1
            return None
        if within is Within.HISTORY:
            self._skips.add(path, "the history of a repository; only its files are carried")
            return None
        if not self._has_room(path):
            return None
        try:
            seen = entry.stat(follow_symlinks=False)
            if stat.S_ISREG(seen.st_mode):
                return self._file(level, name, path, seen)
            return self._other(level, name, path, seen, within)
        except FileNotFoundError:  # it was there for a moment
            return None
        except OSError as error:
            self._skips.add(path, f"it cannot be looked at: {error.strerror}")
            return None

    def _has_room(self, path: str) -> bool:
        """Whether the tree may have one more entry; the first one too many ends the walk."""
        if len(path) > MAX_TREE_PATH // 4 and len(path_bytes(path)) > MAX_TREE_PATH:
            self._skips.add(path, f"its path has more than {MAX_TREE_PATH} bytes")
            return False
        self._count += 1
        if self._count <= self._limits.files:
            return True
        self._skips.add(path, f"the tree has more than {self._limits.files} entries: this and all after it")
        for level in self._levels:
            level.items.clear()
        return False

    def _other(
        self, level: _Level, name: str, path: str, seen: os.stat_result, within: Within
    ) -> Found | None:
        kind, bits, stamp = stat.S_IFMT(seen.st_mode), seen.st_mode & _BITS, stamp_of(seen)
        if kind == stat.S_IFDIR:
            if not self._may_enter(level, name, path, seen, within):
                return None
            return Found(TreeEntry(path, "folder", bits, stamp.mtime_ns), None, stamp)
        if kind == stat.S_IFLNK:
            target = os.readlink(name, dir_fd=level.handle)
            return Found(TreeEntry(path, "link", bits, stamp.mtime_ns, target=target), None, stamp)
        self._skips.add(path, _SPECIAL.get(kind, "it is no file, link or folder"))
        return None

    def _may_enter(self, level: _Level, name: str, path: str, seen: os.stat_result, within: Within) -> bool:
        identity = (seen.st_dev, seen.st_ino)
        if identity in self._apart:
            self._ignored.count += 1
            return False
        if seen.st_dev != self._device:
            self._skips.add(path, "it is on another file system")
            return False
        level.entered[name] = (within, identity)
        return True

    def _file(self, level: _Level, name: str, path: str, seen: os.stat_result) -> Found | None:
        if name in level.databases.absorbed:
            return None
        source: str | bytes = f"{level.place}/{name}"
        stamp = stamp_of(seen)
        size, modified = stamp.size, stamp.mtime_ns
        if name in level.databases.candidates:
            try:
                copy = copied(Path(level.place, name), level.handle, seen, self._limits.file)
            except CopyError as error:
                self._skips.add(path, f"it is carried as it lies there, without a consistent copy: {error}")
            else:
                if copy is not None:
                    level.databases.absorb(name)
                    source, size, modified = copy.content, len(copy.content), copy.modified
        if size > self._limits.file:
            self._skips.add(path, f"it has {size} bytes, the limit of a file is {self._limits.file}")
            return None
        if self._bytes + size > self._limits.total:
            self._skips.add(path, f"with it the files have more than {self._limits.total} bytes")
            return None
        self._bytes += size
        entry = TreeEntry(path, "file", seen.st_mode & _BITS, modified, size)
        return Found(entry, source, stamp)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False
