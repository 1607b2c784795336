"""JSONL with what happens to it on disk: glued lines, a torn or NUL-padded tail, garbage in the middle."""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from archiver import jsonio
from archiver.errors import LimitExceededError, MalformedTranscriptError
from archiver.transcripts import jsontext
from archiver.transcripts.source import FileSource


@dataclass(frozen=True, slots=True)
class Dropped:
    """Bytes that were left out: of which part, where, how many, in which line (1-based), and why."""

    part: str
    place: Literal["tail", "middle"]
    bytes: int
    line: int
    reason: str
    column: int = field(default=1, compare=False)


_RESTARTS: Final = 64
"""Places at which a damaged line is tried again; one with more of them loses its rest."""


@dataclass(slots=True)
class _Damaged:
    """What cannot be read of a line, until it is known whether anything follows it."""

    rest: bytes
    number: int
    column: int
    after: int = 0
    """Bytes of blank or NUL lines behind it."""


@dataclass(slots=True)
class JsonLines:
    """The items of one JSONL file; every `pairs()` is a new pass that reports into `dropped`."""

    source: FileSource
    part: str
    max_item: int
    salvage: bool = False
    dropped: list[Dropped] = field(default_factory=list)
    number: int = 0
    """The line (1-based) on which the item stands that a pass gave last."""
    glued: array[int] = field(default_factory=lambda: array("Q"))
    """Lines on which objects stand one behind the other, as the last pass found them."""

    def pairs(self) -> Iterator[tuple[bytes, Any]]:
        """Each item as its text and its value.

        A line is given as it is, also where an object has a key twice: redaction reads text, not values.
        Objects glued on one line are split. What cannot be read at the end is dropped; before the end it is
        a `MalformedTranscriptError`, or with `salvage` it is dropped as far as it is damaged.
        """
        self.dropped[:] = [one for one in self.dropped if one.part != self.part]
        del self.glued[:]
        damaged: _Damaged | None = None
        for number, line in enumerate(self._lines(), 1):
            if damaged is not None:
                if not line.strip(b"\0" + jsontext.BLANKS):
                    damaged.after += len(line) + 1
                    continue
                self.number = damaged.number
                yield from self._middle(damaged)
                damaged = None
            self.number = number
            try:
                value = jsonio.loads(line)
            except ValueError:
                damaged, count = yield from _leading(line, number)
                if count > 1:
                    self.glued.append(number)
            else:
                yield line, value
        if damaged is not None:
            self._tail(damaged)

    def _lines(self) -> Iterator[bytes]:
        """Lines without their ends; the last may have had none."""
        carry: list[bytes] = []
        held = number = 0
        for block in self.source.blocks():
            lines = block.split(b"\n")
            for line in lines[:-1]:
                number += 1
                if carry:
                    carry.append(line)
                    line = b"".join(carry)  # noqa: PLW2901  # the rest of this line came with the blocks before
                    carry.clear()
                self._check(len(line), number)
                yield line
            if len(lines) > 1:
                held = 0
            carry.append(lines[-1])
            held += len(lines[-1])
            self._check(held, number + 1)
        if held:
            yield b"".join(carry)

    def _check(self, size: int, number: int) -> None:
        if size > self.max_item:
            raise LimitExceededError(
                f"line {number} of {self.part} is longer than {self.max_item:,} bytes",
                remedy="archive a copy of the file without that line, or raise limits.item",
            )

    def _tail(self, damaged: _Damaged) -> None:
        padding = not damaged.rest.strip(b"\0" + jsontext.BLANKS)
        reason = "padded with NUL bytes" if padding else "torn line at the end"
        self._report("tail", len(damaged.rest) + damaged.after, damaged, reason)

    def _middle(self, damaged: _Damaged) -> Iterator[tuple[bytes, Any]]:
        if not self.salvage:
            raise MalformedTranscriptError(
                f"{self.part} is damaged at line {damaged.number}, column {damaged.column}, before its end",
                line=damaged.number,
                column=damaged.column,
                remedy="--salvage drops what cannot be read and says how much that is",
            )
        kept = yield from _salvaged(damaged.rest)
        lost = len(damaged.rest) - kept
        self._report("middle", lost + damaged.after, damaged, "damaged in the middle")

    def _report(self, place: Literal["tail", "middle"], lost: int, damaged: _Damaged, reason: str) -> None:
        self.dropped.append(Dropped(self.part, place, lost, damaged.number, reason, damaged.column))


def _leading(line: bytes, number: int) -> Generator[tuple[bytes, Any], None, tuple[_Damaged | None, int]]:
    """Give the objects a line begins with, one by one; return what cannot be read of it, and their number."""
    text = line.decode("utf-8", "surrogateescape")
    objects = jsontext.Objects(text)
    count = 0
    for start, end, value in objects:
        try:
            piece = text[start:end].encode()
        except UnicodeEncodeError as error:  # bytes that are not UTF-8 inside this object
            return _Damaged(_bytes(text[start:]), number, start + error.start + 1), count
        yield jsontext.checked(piece, value), value
        count += 1
    rest = _bytes(text[objects.rest :])
    return (_Damaged(rest, number, objects.failed + 1) if rest.strip(jsontext.BLANKS) else None), count


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _salvaged(line: bytes) -> Generator[tuple[bytes, Any], None, int]:
    """Give what can be read of a damaged line, and return the number of bytes that is.

    NUL bytes and bytes that are not UTF-8 are taken out first. Then whole objects at its end are looked for,
    because a line torn off in an append has the next line glued to it: that begins where the torn part stops
    being JSON, or just before. What is taken reaches to the end, so no inner piece is mistaken for an item.
    """
    text = line.replace(b"\0", b"").decode("utf-8", "ignore")
    objects = jsontext.Objects(text)
    kept = yield from _taken(text, objects)
    lowest, failed = objects.rest, objects.failed
    for _ in range(_RESTARTS):
        start = text.rfind('{"', lowest, failed + 2)
        start = start if start >= 0 else text.find('{"', failed)
        if failed >= len(text) or start < 0:
            break
        tried = jsontext.Objects(text, start)
        deque(tried, maxlen=0)
        if tried.rest == len(text):
            return kept + (yield from _taken(text, jsontext.Objects(text, start)))
        if tried.failed <= failed:
            break
        lowest, failed = start + 1, tried.failed
    return kept


def _taken(text: str, objects: jsontext.Objects) -> Generator[tuple[bytes, Any], None, int]:
    """Give objects with their texts, and return the number of their bytes."""
    kept = 0
    for start, end, value in objects:
        piece = text[start:end].encode()
        kept += len(piece)
        yield jsontext.checked(piece, value), value
    return kept
