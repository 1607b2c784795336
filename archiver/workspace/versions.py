"""The lines of one folder's tree, and in which save each became what it is.

So what changed since any earlier save is known without that save's tree at hand: the newer lines, and the
paths that are not there any more.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Final

from archiver.model.workspace import TreeEntry, path_bytes

_FILE: Final = struct.Struct("<cHqQ?32s")
"""Of a file: mode, time, size, whether it is redacted, SHA-256."""
_OTHER: Final = struct.Struct("<cHq")
_LINK: Final = b"link "
_MOST: Final = 64
"""Saves that are remembered by the digests of their trees."""

Digests = tuple[str, ...]
"""SHA-256 of the members that hold a tree, in order."""


class TreeVersions:
    """Versions of one tree, in memory; about 300 bytes a line."""

    def __init__(self) -> None:
        self._lines: dict[str, tuple[int, bytes]] = {}
        self._gone: dict[str, int] = {}
        self._past: dict[bytes, int] = {}
        """Texts that stood in lines which are not there any more, and since which save they are not."""
        self._saves: dict[Digests, tuple[int, int]] = {}
        """The number of each, and of the one whose lines its first member has."""
        self._number = 0

    def __contains__(self, path: str) -> bool:
        """Whether the newest tree has a line of that path."""
        return path in self._lines

    def take(self, entries: Iterable[TreeEntry]) -> None:
        """The tree is this one now; the entries come with their digests."""
        self._number += 1
        number, before, now = self._number, self._lines, dict[str, tuple[int, bytes]]()
        for entry in entries:
            form, held = _form(entry), before.get(entry.path)
            now[entry.path] = held if held is not None and held[1] == form else (number, form)
            if held is not None and held[1] != form and (text := _text(held[1])):
                self._past[text] = number
        for path in before.keys() - now.keys():
            self._gone[path] = number
            self._past[path_bytes(path) + b"\0" + _text(before[path][1])] = number
        for path in self._gone.keys() & now.keys():
            del self._gone[path]
        self._lines = now

    def name(self, digests: Digests) -> None:
        """The tree as it is now lies in members with these digests."""
        begun = self._number
        if len(digests) > 1:
            _, begun = self._saves.get(digests) or self._saves.get(digests[:-1]) or (0, 0)
        self._saves.pop(digests, None)
        self._saves[digests] = self._number, begun
        if len(self._saves) > _MOST:
            self.forget_before(list(self._saves)[1])

    def since(self, digests: Digests) -> tuple[set[str], list[str]] | None:
        """Paths whose lines are new since that tree, and those that are gone; None for one not known."""
        if digests not in self._saves:
            return None
        number, _ = self._saves[digests]
        new = {path for path, (since, _) in self._lines.items() if since > number}
        return new, [path for path, since in self._gone.items() if since > number]

    def past(self) -> tuple[bytes, ...]:
        """Paths and targets of links of older trees that may not stand in the newest one any more."""
        return tuple(self._past)

    def forget_before(self, digests: Digests) -> None:
        """Nothing older than that tree, of those that are known, is going to be asked for."""
        number, _ = self._saves.get(digests, (0, 0))
        self._saves = {one: known for one, known in self._saves.items() if known[0] >= number}
        oldest = min((begun for _, begun in self._saves.values()), default=0)
        self._gone = {path: since for path, since in self._gone.items() if since > number}
        self._past = {text: since for text, since in self._past.items() if since > oldest}

    def forget_saves(self) -> None:
        """No tree is going to be asked for that was there before."""
        self._gone, self._past, self._saves = {}, {}, {}

    def clear(self) -> None:
        """Forget everything."""
        self._lines = {}
        self.forget_saves()


def _form(entry: TreeEntry) -> bytes:
    """What two lines of one path have in common if they are the same."""
    if entry.sha256 is not None:
        digest = bytes.fromhex(entry.sha256)
        return _FILE.pack(b"f", entry.mode, entry.modified, entry.size, entry.redacted, digest)
    what = f"{entry.type} {entry.target or ''}"
    return _OTHER.pack(b"o", entry.mode, entry.modified) + what.encode("utf-8", "surrogateescape")


def _text(form: bytes) -> bytes:
    """The target in the form of a link; nothing of any other line, which has no text but its path."""
    what = form[_OTHER.size :] if form[:1] == b"o" else b""
    return what.removeprefix(_LINK) if what.startswith(_LINK) else b""
