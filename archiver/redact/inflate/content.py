"""What looking into a file needs at any depth: limits, and the content of one inner file in pieces."""

from __future__ import annotations

import lzma
import sqlite3
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, Protocol

START: Final = 512
"""So many bytes of a file say what it is: those of the first header of a tar archive."""
STEP: Final = 1 << 20
OVERLAP: Final = 4 << 10


class UnseenError(ValueError):
    """Why not all content of a file was seen; the text shows nothing of it."""


class Inflater(Protocol):
    """Gives the content of a file piece by piece; `failure` says why not all of it was seen."""

    failure: str | None

    def feed(self, chunk: bytes, /) -> Iterator[bytes]:
        """Pieces of content that this chunk completes."""

    def close(self) -> Iterator[bytes]:
        """What is left at the end."""


@dataclass(frozen=True, slots=True)
class InflateLimits:
    """How much is looked into: of one file at all depths, and of all files that share an allowance."""

    inflated: int = 1 << 30
    """Bytes of content."""
    entries: int = 20_000
    """Entries of archives and tables of databases."""
    held: int = 64 << 20
    """Bytes of a zip archive or a database, which are read in memory."""
    depth: int = 3
    seconds: float = 60.0
    steps: int = 500_000_000
    """Instructions of SQLite's machine."""
    altogether: int = 8 << 30
    """Bytes of content in all files."""


class Allowance:
    """What is left of the limits that several files share."""

    def __init__(
        self,
        limits: InflateLimits = InflateLimits(),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.limits = limits
        self.clock = clock
        self.left = limits.altogether


class Budget:
    """What may still be inflated of one file, at all depths together."""

    def __init__(self, allowance: Allowance, opener: Callable[[bytes, Budget, int], Inflater | None]) -> None:
        self.limits = allowance.limits
        self._allowance = allowance
        self._opener = opener
        self._bytes = allowance.limits.inflated
        self._entries = allowance.limits.entries
        self._until = allowance.clock() + allowance.limits.seconds

    def spend(self, count: int) -> None:
        """Count so many more bytes; raises `UnseenError` when they are too many."""
        self._bytes -= count
        self._allowance.left -= count
        if self._bytes < 0:
            raise UnseenError(f"more than {self.limits.inflated >> 20} MiB of content")
        if self._allowance.left < 0:
            raise UnseenError(f"with all others more than {self.limits.altogether >> 20} MiB of content")
        self.check_time()

    def entry(self, count: int = 1) -> None:
        """Count so many more entries; raises `UnseenError` when they are too many."""
        self._entries -= count
        if self._entries < 0:
            raise UnseenError(f"more than {self.limits.entries} entries")
        self.check_time()

    def check_time(self) -> None:
        """Raise `UnseenError` when it takes too long."""
        if self.is_late():
            raise UnseenError(f"more than {self.limits.seconds:.0f} seconds of work")

    def is_late(self) -> bool:
        """True when it takes too long."""
        return self._allowance.clock() > self._until

    def inside(self, start: bytes, depth: int) -> Inflater | None:
        """What looks into an inner file that begins so."""
        return self._opener(start, self, depth)


class Content:
    """One inner file: its pieces, each after the end of the one before, and what archives in it hold."""

    def __init__(self, budget: Budget, depth: int, *, shown: bool = True) -> None:
        """`shown=False`: its own bytes are seen already, as those of a tar archive are; only what is in it
        counts."""
        self._budget = budget
        self._depth = depth
        self._shown = shown
        self._tail = b""
        self._start: bytes | None = b""
        self._inner: Inflater | None = None

    def piece(self, piece: bytes) -> Iterator[bytes]:
        """Take the next bytes; gives what can be searched by now. Raises `UnseenError`."""
        self._budget.spend(len(piece))
        if self._start is not None:
            piece = self._start + piece
            if len(piece) < START:
                self._start = piece
                return
        yield from self._looked(piece)

    def _looked(self, piece: bytes) -> Iterator[bytes]:
        if self._start is not None:
            self._start = None
            self._inner = self._budget.inside(piece, self._depth + 1)
        if self._shown:
            piece_after = self._tail + piece
            yield piece_after
            self._tail = piece_after[-OVERLAP:]
        if self._inner is not None:
            yield from self._inner.feed(piece)
            self._check()

    def close(self) -> Iterator[bytes]:
        """The end of the inner file; raises `UnseenError` where something in it cannot be looked into."""
        if self._start:
            yield from self._looked(self._start)
        if self._inner is not None:
            yield from self._inner.close()
            self._check()

    def _check(self) -> None:
        if self._inner is not None and self._inner.failure is not None:
            raise UnseenError(f"inside it, {self._inner.failure}")


FAULTS: Final = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    sqlite3.Error,
    OSError,
    EOFError,
    ValueError,
    NotImplementedError,
    RuntimeError,
    MemoryError,
)
"""What libraries raise for files that are not what they say."""


def why(kind: str, error: BaseException) -> str:
    """The failure of a file; the words of libraries are left out, as they quote names."""
    if isinstance(error, UnseenError):
        return f"{kind}: {error}"
    if isinstance(error, NotImplementedError):
        return f"{kind}: it is compressed in a way that is not known"
    return f"{kind}: it is damaged"
