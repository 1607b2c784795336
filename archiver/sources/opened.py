"""Which files processes hold open for writing, as far as this user may see."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from archiver.sources.found import FileStamp
from archiver.sources.harness import Harness, harness_of

_PROC: Final = Path("/proc")
_WRITES: Final = os.O_WRONLY | os.O_RDWR


class OpenFiles:
    """A look at all processes, made once; elsewhere than on Linux nothing is known and only time decides."""

    def __init__(
        self, writers: dict[tuple[int, int], int] | None = None, harnesses: tuple[Harness, ...] = ()
    ) -> None:
        self._writers = writers or {}
        self._harnesses = harnesses

    @classmethod
    def look(cls, proc: Path = _PROC) -> OpenFiles:
        """What is open for writing now: by processes of this user, or by all for the administrator."""
        writers: dict[tuple[int, int], int] = {}
        processes = _processes(proc)
        for process in processes:
            for file in _written(process):
                writers.setdefault(file, int(process.name))
        return cls(writers, tuple(one for process in processes if (one := harness_of(process)) is not None))

    def writer(self, files: Iterable[FileStamp]) -> int | None:
        """The id of a process that can write to one of these files; None if none is known."""
        seen = (self._writers.get((stamp.device, stamp.inode)) for stamp in files)
        return next((process for process in seen if process is not None), None)

    def harness(self, folder: str, written: float) -> int | None:
        """The id of a process of Claude Code in the project of that name, begun before that time."""
        found = (one.process for one in self._harnesses if one.slug == folder and one.began <= written)
        return next(found, None)


def _processes(proc: Path) -> list[Path]:
    return [path for path in _listing(proc) if path.name.isascii() and path.name.isdigit()]


def _written(process: Path) -> Iterator[tuple[int, int]]:
    """Device and inode of the files that a process can write to."""
    for link in _listing(process / "fd"):
        try:
            # Pipes, sockets and the like have no path, and are most of what a process has open.
            if str(link.readlink()).startswith("/") and _for_writing(process / "fdinfo" / link.name):
                status = link.stat()
                yield status.st_dev, status.st_ino
        except (OSError, ValueError):  # closed meanwhile
            continue


def _listing(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:  # no Linux; a process that ended, or of another user
        return []


def _for_writing(fdinfo: Path) -> bool:
    for line in fdinfo.read_text("ascii", "replace").splitlines():
        name, _, value = line.partition(":")
        if name == "flags":
            return bool(int(value, 8) & _WRITES)
    return False
