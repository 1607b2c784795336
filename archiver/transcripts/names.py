"""File names as text that is safe to store and to show, whatever bytes they are made of."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from archiver.safetext import one_line


def safe_name(name: str) -> str:
    """A relative name with control, invisible and undecodable characters as `%XX` bytes, and `%` as `%25`.

    Two names never become one. `.` and `..` as a step are escaped as well, so a name leads nowhere else.
    """
    return "/".join(_safe_step(step) for step in name.split("/"))


def _safe_step(step: str) -> str:
    if step in (".", ".."):
        return "%2E" * len(step)
    return "".join(c if c.isprintable() and c not in "%\\" else _escaped(c) for c in step)


def _escaped(character: str) -> str:
    undecodable = "\udc80" <= character <= "\udcff"
    data = bytes([ord(character) & 0xFF]) if undecodable else character.encode("utf-8", "surrogatepass")
    return "".join(f"%{byte:02X}" for byte in data)


def shown(path: Path | str) -> str:
    """A path for a message, as it was given: nothing in it can steer a terminal."""
    return one_line(os.fspath(path))


def unique(names: Iterable[str]) -> list[str]:
    """The names in order, later ones numbered (`2/name`) where a name comes again."""
    taken: set[str] = set()
    made = []
    for name in names:
        candidate, number = name, 2
        while candidate in taken:
            candidate, number = f"{number}/{name}", number + 1
        taken.add(candidate)
        made.append(candidate)
    return made
