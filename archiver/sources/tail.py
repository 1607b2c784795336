"""The last lines of a file of JSON lines, read from its end; the last one may be torn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from archiver import jsonio
from archiver.transcripts import jsontext
from archiver.transcripts.source import FileSource, read_range

WINDOW: Final = 256 << 10
MARKER_WINDOW: Final = 64 << 10
LARGEST_MARKER: Final = 4 << 20
"""A longer last line is no marker: without one only quiet decides."""
LARGEST: Final = 64 << 20
"""Bytes that are looked at at most: the largest item of a transcript has a quarter of that."""
_GROWTH: Final = 8
_PADDING: Final = jsontext.BLANKS + b"\0"


@dataclass(frozen=True, slots=True)
class Tail:
    """Whole lines, oldest first; `torn` when the last one is no JSON, `whole` when there are no others."""

    lines: tuple[bytes, ...]
    torn: bool
    whole: bool

    def values(self) -> Iterator[Any]:
        """The objects on the lines, in order; a line of several counts as those, other lines for nothing."""
        for line in self.lines:
            yield from _values(line)

    def backwards(self) -> Iterator[Any]:
        """The same from the last one on."""
        for line in reversed(self.lines):
            yield from reversed(_values(line))


def tails(source: FileSource, window: int = WINDOW, largest: int = LARGEST) -> Iterator[Tail]:
    """Longer and longer ends of a file, for as long as the reader needs more of it."""
    while True:
        made = _tail(source, window)
        yield made
        if made.whole or window >= largest:
            return
        window = min(window * _GROWTH, largest)


def _tail(source: FileSource, window: int) -> Tail:
    start = max(source.size - window, 0)
    with source.opened() as handle:
        data = read_range(handle, start, source.size)
    lines = data.split(b"\n")[1 if start else 0 :]
    padded = b"\0" in data[-1:]  # an append that was interrupted can leave the length, and no content
    kept = tuple(line for line in lines if line.strip(_PADDING))
    torn = padded or (bool(kept) and not _values(kept[-1]))
    return Tail(kept, torn, start == 0)


def _values(line: bytes) -> list[Any]:
    try:
        value = jsonio.loads(line)
    except ValueError:
        text = line.strip(_PADDING).decode("utf-8", "replace")
        objects = jsontext.Objects(text)
        values = [value for _, _, value in objects]
        return values if objects.rest == len(text) else []
    return [value] if isinstance(value, dict | list) else []
