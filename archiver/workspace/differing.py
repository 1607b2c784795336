"""How an entry of a captured tree differs from what lies in its place; nothing is followed or written."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from archiver.model.workspace import TreeEntry
from archiver.safetext import one_line

Kind = Literal["state", "index", "missing", "extra", "type", "content", "mode", "link", "unknown"]
"""`state`: of the folder as a whole. `unknown`: what cannot be compared, which is no difference."""

_CHUNK: Final = 1 << 20
_PLACEHOLDER: Final = "[REDACTED:"
"""How a placeholder begins."""
_TYPES: Final = {
    "file": stat.S_IFREG,
    "link": stat.S_IFLNK,
    "folder": stat.S_IFDIR,
}
_CALLED: Final = {stat.S_IFREG: "a file", stat.S_IFLNK: "a link", stat.S_IFDIR: "a folder"}


@dataclass(frozen=True, slots=True)
class Differing:
    """One difference: of which path, or of the whole, and what it is: the rest of a sentence."""

    kind: Kind
    path: str | None
    what: str

    @property
    def said(self) -> str:
        """In one line."""
        return self.what if self.path is None else f"{one_line(self.path)}: {self.what}"


@dataclass(frozen=True, slots=True)
class Here:
    """What lies in the place of an entry: `place` is read where its content counts, or is the content."""

    seen: os.stat_result
    place: Path | bytes


def differs(entry: TreeEntry, here: Here | None, *, hidden: bool = False) -> Iterator[Differing]:
    """All differences between an entry and what lies there; times are none.

    `hidden`: that there is nothing is not known, because a folder on the way cannot be looked into.
    """
    path = entry.path
    if here is None:
        if hidden:
            yield Differing("unknown", path, "cannot be compared: it cannot be looked at here")
        elif entry.type != "gone":
            yield Differing("missing", path, "was captured, is not here")
        return
    kind = stat.S_IFMT(here.seen.st_mode)
    if entry.type == "gone":
        if kind != stat.S_IFDIR:  # what lies in it now has lines of its own
            yield Differing("extra", path, "is here, was not there any more")
    elif kind != _TYPES[entry.type]:
        then, now = _CALLED[_TYPES[entry.type]], _CALLED.get(kind, "something else")
        yield Differing("type", path, f"is {now} here, {then} was captured")
    elif entry.type == "link":
        yield from _target_differs(entry, here)
    else:
        if entry.type == "file":
            yield from _content_differs(entry, here)
        yield from _mode_differs(entry, here)


def _target_differs(entry: TreeEntry, here: Here) -> Iterator[Differing]:
    if _PLACEHOLDER in (entry.target or ""):
        what = "cannot be compared: a credential in its target was replaced when it was captured"
        yield Differing("unknown", entry.path, what)
        return
    try:
        target = os.readlink(_path(here))  # noqa: PTH115
    except OSError:  # it was taken away meanwhile
        target = None
    if target != entry.target:
        yield Differing("link", entry.path, "is not the link that was captured")


def _content_differs(entry: TreeEntry, here: Here) -> Iterator[Differing]:
    if entry.redacted:
        what = "cannot be compared: credentials in it were replaced when it was captured"
        yield Differing("unknown", entry.path, what)
        return
    if isinstance(here.place, bytes):
        same = hashlib.sha256(here.place).hexdigest() == entry.sha256
    elif here.seen.st_size != entry.size:
        same = False
    else:
        digest = _digest(here.place)
        if digest is None:
            yield Differing("unknown", entry.path, "cannot be compared: it cannot be read here")
            return
        same = digest == entry.sha256
    if not same:
        yield Differing("content", entry.path, "has another content here")


def _mode_differs(entry: TreeEntry, here: Here) -> Iterator[Differing]:
    mode = stat.S_IMODE(here.seen.st_mode) & 0o777
    if mode != entry.mode:
        yield Differing("mode", entry.path, f"has mode {mode:o} here, {entry.mode:o} was captured")


def _path(here: Here) -> Path:
    assert not isinstance(here.place, bytes)  # noqa: S101 - only the content of a file is held
    return here.place


def _digest(file: Path) -> str | None:
    try:
        handle = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    digest = hashlib.sha256()
    try:
        left = os.fstat(handle).st_size
        while left > 0 and (chunk := os.read(handle, min(left, _CHUNK))):
            digest.update(chunk)
            left -= len(chunk)
    except OSError:
        return None
    finally:
        os.close(handle)
    return digest.hexdigest()
