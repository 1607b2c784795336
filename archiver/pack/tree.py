"""New private files below one folder, which nothing on the way can lead out of."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType

from archiver.errors import AlreadyExistsError, InputNotFoundError, StoreFullError

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


class Tree:
    """Makes new files below one folder; no component on the way may be a link."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._parts: tuple[str, ...] = ()
        self._handles: list[int] = []

    def __enter__(self) -> Tree:
        with _translated(self._root, self._root):
            self._handles = [os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        while self._handles:
            os.close(self._handles.pop())

    @contextmanager
    def new_file(self, path: str) -> Iterator[Callable[[memoryview], None]]:
        """A function that writes to the new private file at `path`."""
        *parts, leaf = path.split("/")
        with _translated(self._root, self._root / path):
            self._enter(tuple(parts))
            handle = os.open(leaf, _NEW_FILE, 0o600, dir_fd=self._handles[-1])

        def write(data: memoryview) -> None:
            with _translated(self._root, self._root / path):
                while data:
                    data = data[os.write(handle, data) :]

        try:
            yield write
        finally:
            os.close(handle)

    def _enter(self, parts: tuple[str, ...]) -> None:
        shared = 0
        while parts[shared : shared + 1] == self._parts[shared : shared + 1] != ():
            shared += 1
        while len(self._handles) > shared + 1:
            os.close(self._handles.pop())
        self._parts = parts[:shared]
        for part in parts[shared:]:
            with suppress(FileExistsError):
                os.mkdir(part, 0o700, dir_fd=self._handles[-1])
            self._handles.append(os.open(part, _FOLDER, dir_fd=self._handles[-1]))
            self._parts += (part,)


@contextmanager
def _translated(root: Path, path: Path) -> Iterator[None]:
    try:
        yield
    except FileExistsError as error:
        raise AlreadyExistsError(f"{path} exists already", remedy="restore into an empty folder") from error
    except OSError as error:
        said = f"{path} cannot be written: {error.strerror}"
        if error.errno in _FULL:
            raise StoreFullError(said, remedy=f"make room on the disk of {root}") from error
        raise InputNotFoundError(said, remedy="check the folder's owner and mode") from error
