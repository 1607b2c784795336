"""What a capture finds: entries of the tree, and what is left out with its reason."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from archiver.model.git_document import GitDocument
from archiver.model.workspace import TreeEntry

_NAMED: Final = 1000
"""Skipped paths that are named; of more only their number is said."""
_FIRST: Final = -(2**63)
_LAST: Final = 2**63 - 1


class Stamp(NamedTuple):
    """By what a file is recognised as unchanged: device, inode, bytes, and its times in nanoseconds."""

    dev: int
    ino: int
    size: int
    mtime_ns: int
    ctime_ns: int


def stamp_of(seen: os.stat_result) -> Stamp:
    """What a look at a file says of it; a time that has no place in 64 bits is the nearest that has."""
    mtime, ctime = seen.st_mtime_ns, seen.st_ctime_ns
    if not _FIRST <= mtime <= _LAST or not _FIRST <= ctime <= _LAST:
        mtime, ctime = (min(max(moment, _FIRST), _LAST) for moment in (mtime, ctime))
    return Stamp(seen.st_dev, seen.st_ino, seen.st_size, mtime, ctime)


@dataclass(frozen=True, slots=True)
class Found:
    """An entry as the folder has it, without digest.

    `source`: the path at which the content of a file is read, or the content where it had to be copied.
    """

    entry: TreeEntry
    source: str | bytes | None
    stamp: Stamp


@dataclass(frozen=True, slots=True)
class Skipped:
    """A path that is not carried, or not as it is, and why: half a sentence. `.` is the whole tree."""

    path: str
    reason: str


class Skips:
    """Takes down what is skipped: as many names as somebody reads, and the number of the rest."""

    def __init__(self, into: list[Skipped]) -> None:
        self._into = into
        self._unnamed = 0

    def add(self, path: str, reason: str) -> None:
        """One more."""
        if len(self._into) < _NAMED:
            self._into.append(Skipped(path, reason))
        else:
            self._unnamed += 1

    def close(self) -> None:
        """Say how many were not named."""
        if self._unnamed:
            self._into.append(Skipped(".", f"{self._unnamed} more of its paths are left out"))
            self._unnamed = 0


@dataclass(slots=True)
class CaptureIgnored:
    """How many paths patterns left out; a folder counts once, whatever lies in it."""

    count: int = 0


@dataclass
class Capture:
    """A workspace as it is found, while it is found.

    `found` comes sorted by the bytes of its paths; `skipped` and `ignored` are complete once it is exhausted.
    `began`: the system's clock before anything was looked at, in nanoseconds since 1970.
    """

    found: Iterator[Found]
    skipped: list[Skipped]
    git: GitDocument | None = None
    ignored: CaptureIgnored = field(default_factory=CaptureIgnored)
    began: int = 0
