"""JSONL with what happens to it on disk: glued lines, a torn or NUL-padded tail, garbage in the middle."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

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


@dataclass(slots=True)
class _Damaged:
    """A line that is not JSON, until it is known whether anything follows it."""

    line: bytes
    number: int
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

    def pairs(self) -> Iterator[tuple[bytes, Any]]:
        """Each item as its text and its value.

        A line is given as it is, also where an object has a key twice: redaction reads text, not values.
        Objects glued on one line are split. What cannot be read at the end is dropped; before the end it is
        a `MalformedTranscriptError`, or with `salvage` it is dropped as far as it is damaged.
        """
        self.dropped[:] = [one for one in self.dropped if one.part != self.part]
        damaged: _Damaged | None = None
        for number, line in enumerate(self._lines(), 1):
            if damaged is not None:
                if not line.strip(b"\0" + jsontext.BLANKS):
                    damaged.after += len(line) + 1
                    continue
                yield from self._middle(damaged)
                damaged = None
            try:
                value = jsonio.loads(line)
            except ValueError:
                whole = _glued(line)
                if whole is None:
                    damaged = _Damaged(line, number) if line.strip(jsontext.BLANKS) else None
                else:
                    yield from whole
            else:
                yield line, value
        if damaged is not None:
            yield from self._tail(damaged)

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
                remedy="raise the limit for one item, or take the line out",
            )

    def _tail(self, damaged: _Damaged) -> Iterator[tuple[bytes, Any]]:
        kept, used, _ = _leading(damaged.line)
        yield from kept
        lost = damaged.line[used:]
        reason = (
            "padded with NUL bytes" if not lost.strip(b"\0" + jsontext.BLANKS) else "torn line at the end"
        )
        self._report("tail", len(lost) + damaged.after, damaged.number, reason)

    def _middle(self, damaged: _Damaged) -> Iterator[tuple[bytes, Any]]:
        if not self.salvage:
            _, _, failed = _leading(damaged.line)
            raise MalformedTranscriptError(
                f"{self.part} is damaged at line {damaged.number}, column {failed + 1}, before its end",
                line=damaged.number,
                column=failed + 1,
                remedy="--salvage drops what cannot be read and says how much that is",
            )
        kept, lost = _salvaged(damaged.line)
        yield from kept
        self._report("middle", lost + damaged.after, damaged.number, "damaged in the middle")

    def _report(self, place: Literal["tail", "middle"], lost: int, number: int, reason: str) -> None:
        self.dropped.append(Dropped(self.part, place, lost, number, reason))


Found = list[tuple[bytes, Any]]


def _glued(line: bytes) -> Found | None:
    """The objects of a line that holds several; None for anything else."""
    kept, used, _ = _leading(line)
    return kept if kept and used == len(line) else None


def _leading(line: bytes) -> tuple[Found, int, int]:
    """The objects a line begins with, the bytes they take, and the character at which reading failed."""
    text = line.decode("utf-8", "surrogateescape")
    leading = jsontext.leading_values(text)
    found: Found = []
    for start, end, value in leading.values:
        try:
            found.append((jsontext.checked(text[start:end].encode(), value), value))
        except UnicodeEncodeError as error:  # bytes that are not UTF-8 inside this object
            return found, _bytes(text[:start]), start + error.start
    return found, _bytes(text[: leading.rest]), leading.failed


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogateescape"))


def _salvaged(line: bytes) -> tuple[Found, int]:
    """What can be read of a damaged line, and the number of bytes that are lost.

    NUL bytes and bytes that are not UTF-8 are taken out first. Then whole objects at its end are looked for,
    because a line torn off in an append has the next line glued to it: that begins where the torn part stops
    being JSON, or just before. What is taken reaches to the end, so no inner piece is mistaken for an item.
    """
    text = line.replace(b"\0", b"").decode("utf-8", "ignore")
    leading = jsontext.leading_values(text)
    values, lowest, failed = leading.values, leading.rest, leading.failed
    while failed < len(text):
        start = text.rfind('{"', lowest, failed + 2)
        start = start if start >= 0 else text.find('{"', failed)
        if start < 0:
            break
        more = jsontext.leading_values(text, start)
        if more.rest == len(text):
            values = values + more.values
            break
        if more.failed <= failed:
            break
        lowest, failed = start + 1, more.failed
    found = [(jsontext.checked(text[start:end].encode(), value), value) for start, end, value in values]
    return found, len(line) - sum(_bytes(text[start:end]) for start, end, _ in values)
