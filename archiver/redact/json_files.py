"""The redaction of a file of JSON lines, or of one JSON document, that stays what it is."""

from __future__ import annotations

from collections.abc import Callable

from archiver import jsonio
from archiver.redact.file_forms import Bytes, Held, Shape, is_json, parsed
from archiver.redact.members import whole_lines
from archiver.redact.scrub import ItemOpaque, Scrubber, never


def copy(
    source: Bytes, shape: Shape, place: str, scrubber: Scrubber, write: Callable[[bytes], object]
) -> None:
    """Write it with its credentials replaced; `source` is JSON lines, or a `Held` that `is_document`."""
    if shape.form == "document":
        text = b"".join(source.blocks())
        write(scrubber.json(text, place, _of_whole(shape.opaque, text)))
    else:
        _Lines(scrubber, place, shape.opaque, write).all_of(source)


def is_document(source: Bytes) -> bool:
    """Whether it is still what it was when its shape was found: files are written to meanwhile."""
    return isinstance(source, Held) and parsed(source.data) is not None


class _Lines:
    """JSON lines; one that is damaged, as the last of a session that died may be, is taken as text."""

    def __init__(
        self, scrubber: Scrubber, place: str, opaque: ItemOpaque, write: Callable[[bytes], object]
    ) -> None:
        self._scrubber = scrubber
        self._place = place
        self._opaque = opaque
        self._write = write
        self._number = 1

    def all_of(self, source: Bytes) -> None:
        for block in whole_lines(source.blocks()):
            done = start = 0
            while start < len(block):
                stop = block.find(b"\n", start) + 1 or len(block)
                if not is_json(block[start:stop]):
                    self._json(block[done:start])
                    self._text(block[start:stop])
                    done = stop
                start = stop
            self._json(block[done:])

    def _json(self, lines: bytes) -> None:
        if lines:
            self._scrubber.lines(lines, self._number, self._place, self._opaque, self._write)
            self._number += lines.count(b"\n")

    def _text(self, line: bytes) -> None:
        self._write(self._scrubber.text(line, f"{self._place} line {self._number}"))
        self._number += line.count(b"\n")


def _of_whole(opaque: ItemOpaque, text: bytes) -> ItemOpaque:
    """The same of a document that is too large to be parsed again for every word."""
    if opaque is never:
        return never
    value = jsonio.loads(text)
    return lambda path, _item: opaque(path, value)
