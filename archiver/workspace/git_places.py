"""What lies under a path of a work tree: looked at without following a link on the way."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

_CHUNK = 1 << 20
_NOTHING = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG)
"""What the system says of a path under which nothing lies."""
_INVISIBLE = dict.fromkeys([*range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF])
"""Characters that a file system may drop from a name."""


class Places:
    """Paths below one folder, as bytes; a folder on the way is looked at once."""

    def __init__(self, tree: Path, apart: Sequence[Path] = ()) -> None:
        self.root = os.fsencode(tree)
        real = os.path.realpath(self.root)
        self._apart = [
            part[len(real) + 1 :]
            for part in (os.path.realpath(os.fsencode(path)) for path in apart)
            if part.startswith(real + b"/")
        ]
        self._folders: dict[bytes, bool] = {b"": True}

    def at(self, path: bytes) -> Path:
        """The absolute path."""
        return Path(os.fsdecode(self.root + b"/" + path))

    def is_apart(self, path: bytes) -> bool:
        """Whether it is, or lies in, a folder that is never captured."""
        return any(path == part or path.startswith(part + b"/") for part in self._apart)

    def look(self, path: bytes) -> os.stat_result | None:
        """What lies there; None for nothing, also where a folder on the way is none."""
        if not self.is_folder(path.rpartition(b"/")[0]):
            return None
        try:
            return os.lstat(self.root + b"/" + path)
        except OSError:
            return None

    def is_hidden(self, path: bytes) -> bool:
        """Whether it is not known that nothing lies there: a folder on the way cannot be looked into."""
        above = path.rpartition(b"/")[0]
        if above and not self.is_folder(above):
            return self.is_hidden(above)
        try:
            os.lstat(self.root + b"/" + path)
        except OSError as error:
            return error.errno not in _NOTHING
        return False

    def is_folder(self, path: bytes) -> bool:
        """Whether it is a folder, with no link on the way."""
        known = self._folders.get(path)
        if known is None:
            above = path.rpartition(b"/")[0]
            known = self.is_folder(above) and _is_folder(self.root + b"/" + path)
            self._folders[path] = known
        return known

    def object_id(self, path: bytes, limit: int, *, sha256: bool) -> str | None:
        """The id that git gives to a file's content; None where it cannot be read, or is too large."""
        try:
            handle = os.open(
                self.root + b"/" + path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
            )
        except OSError:
            return None
        try:
            about = os.fstat(handle)
            if not stat.S_ISREG(about.st_mode) or about.st_size > limit:
                return None
            return _object_id(handle, about.st_size, sha256=sha256)
        except OSError:
            return None
        finally:
            os.close(handle)


def is_in_git_folder(path: str) -> bool:
    """Whether a path of a work tree is, or lies in, what some file system takes for a git folder."""
    parts = path.replace("\\", "/").split("/")
    parts = [part.translate(_INVISIBLE).partition(":")[0].rstrip(" .").lower() for part in parts]
    return any(part in (".git", "git~1") for part in parts)


def _object_id(handle: int, size: int, *, sha256: bool) -> str | None:
    digest = hashlib.sha256() if sha256 else hashlib.sha1(usedforsecurity=False)
    digest.update(b"blob %d\0" % size)
    while size > 0 and (chunk := os.read(handle, min(size, _CHUNK))):
        digest.update(chunk)
        size -= len(chunk)
    return digest.hexdigest() if size == 0 else None


def _is_folder(place: bytes) -> bool:
    try:
        return stat.S_ISDIR(os.lstat(place).st_mode)
    except OSError:
        return False


def oddities(places: Places, modules: Iterable[bytes], limit: int) -> Iterator[tuple[bytes, str]]:
    """What git passes over in silence: special files, and folders that cannot be read; at most `limit`.

    Repositories inside are not entered.
    """
    closed = set(modules)
    waiting = [b""]
    while waiting and limit > 0:
        folder = waiting.pop()
        try:
            with os.scandir(places.root + b"/" + folder if folder else places.root) as entries:
                listed = list(entries)
        except OSError as error:
            limit -= 1
            yield folder, f"the folder cannot be read: {error.strerror}"
            continue
        if folder and any(entry.name == b".git" for entry in listed):
            continue
        for entry in listed:
            path = folder + b"/" + entry.name if folder else entry.name
            if entry.name == b".git" or path in closed or places.is_apart(path):
                continue
            if entry.is_dir(follow_symlinks=False):
                waiting.append(path)
            elif not entry.is_symlink() and not entry.is_file(follow_symlinks=False):
                limit -= 1
                yield path, "no file, link or folder"
