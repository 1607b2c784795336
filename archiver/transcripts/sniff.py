"""A look at the first bytes of a file: are they lines of JSON, one JSON document, or something else."""

from __future__ import annotations

from typing import Any, Final

from archiver import jsonio
from archiver.transcripts import jsontext
from archiver.transcripts.source import FileSource, read_range

HEAD: Final = 1 << 20
_LINES: Final = 1000


def first_lines(source: FileSource, limit: int = HEAD) -> list[Any] | None:
    """The values on the first lines, or None when at least half of those lines are no objects or arrays.

    Only whole lines within the first `limit` bytes count, so a first line that is longer gives None. A line
    of several objects counts as those.
    """
    head = source.head(limit)
    whole = len(head) >= source.size
    lines = head.split(b"\n") if whole else head.split(b"\n")[:-1]
    values: list[Any] = []
    bad = 0
    for line in lines[:_LINES]:
        if line.strip(b"\0" + jsontext.BLANKS):
            found = _values(line)
            values += found
            bad += not found
    return values if values and bad < len(values) else None


def last_lines(source: FileSource, limit: int = HEAD) -> list[Any]:
    """The values on the whole lines within the last `limit` bytes; none of a file that is no longer."""
    if source.size <= limit:
        return []
    with source.opened() as handle:
        lines = read_range(handle, source.size - limit, source.size).split(b"\n")
    return [value for line in lines[1:][-_LINES:] for value in _values(line)]


def _values(line: bytes) -> list[Any]:
    try:
        value = jsonio.loads(line)
    except ValueError:
        text = line.decode("utf-8", "replace")
        objects = jsontext.Objects(text)
        values = [value for _, _, value in objects]
        inside = text[objects.rest : objects.rest + 1] in (",", "]", "}")  # a line of one large document
        return [] if inside else values
    return [value] if isinstance(value, dict | list) else []
