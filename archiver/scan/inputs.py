"""The files that paths name: those of a folder too, in order, no link followed out of it.

What is no regular file is passed over and said. A folder that changes meanwhile gives what is there when it
is looked at.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from archiver.errors import ArchiverError, InputNotFoundError
from archiver.redact import Bytes, Held
from archiver.safetext import one_line
from archiver.transcripts.source import CHUNK, FileSource

STANDARD_INPUT: Final = "-"
HELD_LIMIT: Final = 64 << 20
"""Bytes of standard input that are kept in memory; of a longer one each byte is seen once."""
_OBJECTS: Final = "the objects of git, which are compressed: look at a checkout, or at `git log -p`"


@dataclass(frozen=True, slots=True)
class Said:
    """Something about one file that was passed over."""

    name: str
    why: str


@dataclass(frozen=True, slots=True)
class Problem:
    """A file that should have been looked at, and what kept it from that."""

    name: str
    error: ArchiverError


@dataclass(frozen=True, slots=True)
class Entry:
    """A file by its name below what was named; `path` is None for standard input."""

    name: str
    path: Path | None
    named: bool = False
    """True for a file that was named itself: then a link is followed."""

    def source(self, given: Bytes | None = None) -> Bytes:
        """The file as it is now; `InputNotFoundError` where it is no readable regular file."""
        if self.path is None:
            return given if given is not None else Held(b"")
        return FileSource.of(self.path, follow=self.named)

    @property
    def is_gone(self) -> bool:
        """True when nothing bears the name any more."""
        return self.path is not None and not os.path.lexists(self.path)


class Stream:
    """Bytes that can be read once: of standard input, when it is long."""

    def __init__(self, head: bytes, rest: BinaryIO) -> None:
        self._head = head
        self._rest = rest
        self.size = 0

    def blocks(self) -> Iterator[bytes]:
        head, self._head = self._head, b""
        if head:
            yield head
        while block := self._rest.read(CHUNK):
            yield block


def standard_input(stream: BinaryIO) -> Bytes:
    """All of a stream in memory, or the stream itself where that would be too much."""
    held = bytearray()
    while len(held) <= HELD_LIMIT:
        block = stream.read(CHUNK)
        if not block:
            return Held(bytes(held))
        held += block
    return Stream(bytes(held), stream)


def entries(paths: Iterable[str]) -> Iterator[Entry | Said | Problem]:
    """Every file that the paths stand for, each once; of a folder all that lies below it."""
    texts = list(paths)
    reals = [os.path.realpath(text) if "\0" not in text else text for text in texts]
    for number, text in enumerate(texts):
        if text != STANDARD_INPUT and _is_among(reals[number], reals[:number], reals):
            yield Said(one_line(text), "it is looked at as part of what else was named")
            continue
        if text == STANDARD_INPUT:
            yield Entry("standard input", None)
            continue
        path = Path(text)
        try:
            mode = path.stat().st_mode
        except (OSError, ValueError) as error:
            yield Problem(one_line(text), unreadable(text, error))
            continue
        if stat.S_ISDIR(mode):
            yield from _folder(path, top(path))
        elif stat.S_ISREG(mode):
            yield Entry(path.name, path, named=True)
        else:
            yield Problem(one_line(text), _no_file(text, mode))


def _is_among(real: str, before: list[str], all_of_them: list[str]) -> bool:
    """Whether a path was named before, or lies in another one that is named."""
    return real in before or any(real != other and Path(other) in Path(real).parents for other in all_of_them)


def top(path: Path) -> str:
    """The name that a folder's files are known under: its own, and none for `.`, `..` and `/`."""
    return "" if path.name in ("", ".", "..") else path.name


def _folder(folder: Path, name: str) -> Iterator[Entry | Said | Problem]:
    """What lies below a folder, by name; not by recursion, because folders may be nested without end."""
    waiting: list[tuple[Path, str]] = [(folder, name)]
    first = True
    while waiting:
        path, shown = waiting.pop()
        if _holds_git_objects(path):
            yield Said(one_line(shown), _OBJECTS)
            continue
        try:
            found = _listing(path, follow=first)
        except FileNotFoundError:
            yield Said(one_line(shown), "it vanished meanwhile")
            continue
        except OSError as error:
            yield Problem(one_line(shown), unreadable(shown, error))
            continue
        first = False
        below: list[tuple[Path, str]] = []
        for entry_name, mode in found:
            inner = f"{shown}/{entry_name}" if shown else entry_name
            if stat.S_ISDIR(mode):
                below.append((path / entry_name, inner))
            elif stat.S_ISREG(mode):
                yield Entry(inner, path / entry_name)
            else:
                yield Said(one_line(inner), _kind(mode))
        waiting.extend(reversed(below))


def _listing(folder: Path, *, follow: bool) -> list[tuple[str, int]]:
    """Names and kinds of what lies in a folder, links not followed, in the order of their bytes."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
    handle = os.open(folder, flags)
    try:
        found = []
        with os.scandir(handle) as listing:
            for entry in listing:
                with suppress(FileNotFoundError):
                    found.append((entry.name, entry.stat(follow_symlinks=False).st_mode))
        return sorted(found, key=lambda one: os.fsencode(one[0]))
    finally:
        os.close(handle)


def _holds_git_objects(path: Path) -> bool:
    """True for the store of objects of a repository, with or without a checkout."""
    return path.name == "objects" and (path.parent / "refs").is_dir() and (path.parent / "HEAD").is_file()


def _kind(mode: int) -> str:
    for test, what in (
        (stat.S_ISLNK, "a link, which is not followed"),
        (stat.S_ISFIFO, "a named pipe"),
        (stat.S_ISSOCK, "a socket"),
    ):
        if test(mode):
            return what
    return "a device"


def as_given(path: str) -> str:
    """A path as it was given, with what no terminal can show escaped."""
    return one_line(path)


def _no_file(path: str, mode: int) -> InputNotFoundError:
    """Who names a pipe wants to know what is in it: that it was passed over would read as "nothing found"."""
    return InputNotFoundError(
        f"{as_given(path)} is {_kind(mode)}, and only files and folders are read by name",
        remedy="`archiver scan -` reads standard input",
    )


def unreadable(name: str, error: OSError | ValueError) -> InputNotFoundError:
    """What cannot be read, as a typed error."""
    reason = error.strerror if isinstance(error, OSError) else str(error)
    return InputNotFoundError(
        f"{as_given(name)} cannot be read: {reason}", remedy="check the path and who may read it"
    )
