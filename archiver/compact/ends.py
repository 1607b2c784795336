"""Head and tail of a text that lies in private files: cut at characters and lines, never in a placeholder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from archiver.compact.text import head, tail

_BEYOND: Final = 256
"""Bytes read beyond a cut: they show whether it goes through a placeholder, and the rest of a character."""


def ends(sources: Sequence[bytes | Path], size: int, keep: int) -> tuple[str, str] | None:
    """The first and the last `keep` bytes, at most, of `size` bytes that lie in `sources`, one after another.

    None where that is no text, or hardly more than what would be kept.
    """
    if too_short(size, keep):
        return None
    try:
        first = _without_torn_end(_first(sources, keep + _BEYOND)).decode("utf-8", "surrogatepass")
        last = _without_torn_start(_last(sources, keep + _BEYOND)).decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return None
    if "\0" in first or "\0" in last:
        return None
    return head(first, keep), tail(last, keep)


def too_short(size: int, keep: int) -> bool:
    """Whether so many bytes are hardly more than head and tail of them."""
    return size <= 2 * (keep + _BEYOND)


def whole_lines(first: str, last: str) -> tuple[str, str]:
    """Head and tail without the lines that were cut, each empty where no line end is left."""
    return first[: first.rfind("\n") + 1], last[last.find("\n") + 1 :] if "\n" in last else ""


def _first(sources: Sequence[bytes | Path], count: int) -> bytes:
    found = b""
    for source in sources:
        found += _read(source, 0, count - len(found))
        if len(found) >= count:
            break
    return found


def _last(sources: Sequence[bytes | Path], count: int) -> bytes:
    found = b""
    for source in reversed(sources):
        size = len(source) if isinstance(source, bytes) else source.stat().st_size
        wanted = min(size, count - len(found))
        found = _read(source, size - wanted, wanted) + found
        if len(found) >= count:
            break
    return found


def _read(source: bytes | Path, start: int, count: int) -> bytes:
    if isinstance(source, bytes):
        return source[start : start + count]
    with source.open("rb") as file:
        file.seek(start)
        return file.read(count)


def _without_torn_end(data: bytes) -> bytes:
    """Without the first bytes of a character at the end."""
    for back in range(1, min(4, len(data) + 1)):
        byte = data[-back]
        if byte & 0xC0 != 0x80:
            length = 1 if byte < 0x80 else 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return data[:-back] if length > back else data
    return data


def _without_torn_start(data: bytes) -> bytes:
    """Without the last bytes of a character at the start."""
    start = 0
    while start < min(3, len(data)) and data[start] & 0xC0 == 0x80:
        start += 1
    return data[start:]
