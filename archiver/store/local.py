"""The embedded default: a store in a folder of a local or network file system.

    records/run/00000001.age → <root>/records/run/00000001.age          the object, mode 0600
                               <root>/records/run/.00000001.age.class   its tag
                               <root>/.tmp/<random>                     an object while it is written

An object comes into being by a hard link, which fails if the name is taken: complete, synced and tagged, or
not at all. A rename puts a re-keyed object in the place of the old one, whose readers keep what they opened.
Names that start with a dot are the store's own and are never listed.
"""

from __future__ import annotations

import errno
import io
import os
import stat
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from archiver.errors import LimitExceededError, ObjectNotFoundError, StoreDeniedError
from archiver.model.record import RetentionClass
from archiver.store import tag, temp
from archiver.store.base import ObjectInfo
from archiver.store.folder import (
    FolderMissingError,
    root_folder,
    subfolder,
    sync,
    translated,
    wrong_kind,
)
from archiver.store.names import MAX_NAME, split, split_prefix, usable
from archiver.store.state import info_of, not_found, refuse_other, status_of, taken
from archiver.store.temp import Unfinished

_NO_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EXDEV}
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_BUFFER = 1 << 18


class LocalStore:
    """An `ObjectStore` on a folder; safe to share between threads and across a fork."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._synced: set[tuple[int, int]] = set()
        self._tidied = False

    @property
    def url(self) -> str:
        """The folder as a `file:` address."""
        return self._root.as_uri()

    def make(self) -> None:
        """Make the store's folder and its missing parents, mode 0700, durably; an existing one stays."""
        with translated(f"the folder {self._root}"):
            missing = [path for path in (self._root, *self._root.parents) if not path.exists()]
            for path in reversed(missing):
                path.mkdir(mode=0o700, exist_ok=True)
                _sync_path(path.parent)

    def create(self, name: str, body: Iterable[bytes], *, retention: RetentionClass) -> ObjectInfo:
        """Create a new object, durable when this returns; `AlreadyExistsError` if the name is taken."""
        folders, leaf = split(name)
        with root_folder(self._root) as root:
            self._tidy(root)
            with temp.unfinished(root) as file:
                status = file.fill(body, name)
                with subfolder(root, folders, make=True) as folder, translated(name):
                    _commit(file, folder, leaf, name, retention)
                    sync(folder)
                    self._sync_parents(root, folders, folder)
        return info_of(name, status, retention)

    def open(self, name: str, *, offset: int = 0) -> BinaryIO:
        """A reader of the object from `offset`; one past the end reads nothing."""
        return io.BufferedReader(_ObjectFile(self._open(name), name, offset), _BUFFER)

    def read(self, name: str, *, limit: int) -> bytes:
        """A small object whole; `LimitExceededError` if it is larger than `limit` bytes."""
        with self.open(name) as file:
            data = file.read(limit + 1)
        if len(data) > limit:
            raise LimitExceededError(
                f"object {name} is larger than the {limit} bytes that it may have",
                remedy="look at the object; nothing this program writes there is so large",
            )
        return data

    def head(self, name: str) -> ObjectInfo:
        """What is known of the object."""
        with self._place(name) as (folder, leaf), translated(name):
            return info_of(name, status_of(folder, leaf, name), tag.read(folder, leaf))

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        """Objects whose names start with `prefix`, sorted by name, without their tags.

        Files whose names cannot be an object's are passed over; a link, pipe, socket or device whose name
        could be is a `StoreError`, so that nothing hides behind it.
        """
        folders, start = split_prefix(prefix)
        path = "".join(f"{part}/" for part in folders)
        return self._walk(self._entries(path, start))

    def class_of(self, name: str) -> RetentionClass | None:
        """The class tag; None without one, or with one that is no class."""
        return self.head(name).retention

    def retag(self, name: str, retention: RetentionClass) -> None:
        """Change the class tag, durably."""
        with self._place(name) as (folder, leaf), translated(name):
            status_of(folder, leaf, name)
            with tag.hold(folder, leaf) as held:
                status_of(folder, leaf, name)  # it may have been deleted while we waited
                tag.write(held, retention)
            sync(folder)

    def delete(self, name: str) -> None:
        """Remove the object and its tag, durably; nothing happens if it is not there."""
        with suppress(ObjectNotFoundError), self._place(name) as (folder, leaf), translated(name):
            status_of(folder, leaf, name)
            with tag.hold_if_there(folder, leaf) as tagged, suppress(FileNotFoundError):
                os.unlink(leaf, dir_fd=folder)
                if tagged:
                    os.unlink(tag.file_name(leaf), dir_fd=folder)
            sync(folder)

    def delete_if(self, name: str, allowed: Collection[RetentionClass | None]) -> bool:
        """The same if the class is one of these, asked under the lock that `retag` takes; False if not."""
        with suppress(ObjectNotFoundError), self._place(name) as (folder, leaf), translated(name):
            status_of(folder, leaf, name)
            with tag.hold(folder, leaf):
                there = True
                try:
                    status_of(folder, leaf, name)
                except ObjectNotFoundError:  # it was removed while we waited: only the tag is left
                    there = False
                if there and tag.read(folder, leaf) not in allowed:
                    return False
                if there:
                    os.unlink(leaf, dir_fd=folder)
                os.unlink(tag.file_name(leaf), dir_fd=folder)
            sync(folder)
        return True

    def replace(self, name: str, body: Iterable[bytes], *, was: ObjectInfo) -> ObjectInfo:
        """Put other bytes under a name that is there, durably; whoever reads the old ones keeps them.

        `AlreadyExistsError` if it is no longer the object of `was`, `ObjectNotFoundError` if it is gone.
        """
        refuse_other(self.head(name), was)  # before the body is written; what counts is asked under the lock
        with root_folder(self._root) as root:
            self._tidy(root)
            with temp.unfinished(root) as file:
                status = file.fill(body, name)
                with self._place(name) as (folder, leaf), translated(name), tag.hold(folder, leaf):
                    refuse_other(info_of(name, status_of(folder, leaf, name)), was)
                    os.rename(file.name, leaf, src_dir_fd=file.folder, dst_dir_fd=folder)
                    sync(folder)
                    return info_of(name, status, tag.read(folder, leaf))

    def _open(self, name: str) -> int:
        with self._place(name) as (folder, leaf), translated(name):
            status_of(folder, leaf, name)  # before it is opened: opening a device can do something
            try:
                handle = os.open(leaf, _READ, dir_fd=folder)
            except FileNotFoundError:
                raise not_found(name) from None
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                os.close(handle)
                raise wrong_kind(name)
            return handle

    def _tidy(self, root: int) -> None:
        if not self._tidied:
            self._tidied = True
            temp.remove_left_behind(root)

    @contextmanager
    def _place(self, name: str) -> Iterator[tuple[int, str]]:
        """The folder of an existing object and its file name."""
        folders, leaf = split(name)
        try:
            with root_folder(self._root) as root, subfolder(root, folders) as folder:
                yield folder, leaf
        except FolderMissingError:
            raise not_found(name) from None

    def _sync_parents(self, root: int, folders: tuple[str, ...], folder: int) -> None:
        """Make the folders on the way durable too; once is enough while the innermost stays the same."""
        status = os.fstat(folder)
        identity = (status.st_dev, status.st_ino)
        if identity in self._synced:
            return
        for depth in range(len(folders)):
            with subfolder(root, folders[:depth], make=True) as parent:
                sync(parent)
        self._synced.add(identity)

    def _entries(self, path: str, start: str = "") -> Sequence[_Entry]:
        """What lies in the folder `path` and starts with `start`, in the order of full names."""
        try:
            with (
                root_folder(self._root) as root,
                subfolder(root, tuple(path.split("/")[:-1])) as folder,
                translated(path or str(self._root)),
                os.scandir(folder) as found,
            ):
                entries = [_entry(path, item) for item in found if _listed(path, item.name, start)]
        except FolderMissingError:
            return []
        return sorted(entry for entry in entries if entry is not None)

    def _walk(self, entries: Sequence[_Entry]) -> Iterator[ObjectInfo]:
        for key, info in entries:
            if info is None:
                yield from self._walk(self._entries(key))
            else:
                yield info


_Entry = tuple[str, ObjectInfo | None]
"""A full name and its object, or a folder's name with a `/` at its end and None."""


class _ObjectFile(io.FileIO):
    """An object's bytes; what goes wrong while reading is an error of the store."""

    def __init__(self, handle: int, name: str, offset: int) -> None:
        super().__init__(handle, "rb")
        self._object = name
        with translated(name):
            self.seek(offset)

    def readinto(self, buffer: Any) -> int:
        with translated(self._object):
            return super().readinto(buffer) or 0


def _listed(path: str, name: str, start: str) -> bool:
    return name.startswith(start) and usable(name) and len(path) + len(name) < MAX_NAME


def _entry(path: str, item: os.DirEntry[str]) -> _Entry | None:
    name = path + item.name
    if item.is_dir(follow_symlinks=False):
        return f"{name}/", None
    try:
        status = item.stat(follow_symlinks=False)
    except FileNotFoundError:
        return None  # deleted since the folder was read
    if not stat.S_ISREG(status.st_mode):
        raise wrong_kind(name)
    return name, info_of(name, status)


def _commit(file: Unfinished, folder: int, leaf: str, name: str, retention: RetentionClass) -> None:
    """Give the finished file its name, with its tag, if the name is free: the moment it becomes visible."""
    with tag.hold(folder, leaf) as held:
        with suppress(ObjectNotFoundError):
            status_of(folder, leaf, name)
            raise taken(name)
        tag.write(held, retention)
        try:
            os.link(file.name, leaf, src_dir_fd=file.folder, dst_dir_fd=folder, follow_symlinks=False)
        except FileExistsError:  # only where the file system has no locks
            raise taken(name) from None
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            raise StoreDeniedError(
                f"the file system gives {name} no hard link: {error.strerror}",
                remedy="keep the whole store on one file system with hard links, such as ext4, xfs or apfs",
            ) from error


def _sync_path(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        sync(handle)
    finally:
        os.close(handle)
