"""Files of a transcript whose format nobody knows, without their middle where there is no room for it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from archiver import jsonio
from archiver.compact.ends import ends, too_short, whole_lines
from archiver.compact.text import encode
from archiver.model import Items, Member, Transcript, TranscriptPart
from archiver.model.limits import Policy
from archiver.scratch import Scratch

KEPT: Final = 8 << 20
"""Bytes of head, and as many of tail, that are kept of a file."""


@dataclass(frozen=True, slots=True)
class CutFile:
    """A file that was cut: its name, its bytes, and where how many of them are kept."""

    name: str
    size: int
    kept: int
    path: str | None


class OpaqueFiles:
    """The files of a transcript that may lose their middle: nothing of them is read again but by people."""

    def __init__(self, transcript: Transcript, members: Iterable[Member], scratch: Scratch) -> None:
        self._transcript = transcript
        self._members = {member.path: member for member in members}
        self._scratch = scratch
        self._parts = list(transcript.parts)
        self._instead: dict[str, Member | None] = {}
        """By the path of a segment, what is carried in its place."""

    @property
    def saved(self) -> int:
        """Bytes that are not carried so far."""
        pairs = zip(self._transcript.parts, self._parts, strict=True)
        return sum(whole.items.size - part.items.size for whole, part in pairs)

    def largest(self) -> list[int]:
        """Numbers of the files that may be cut, the largest first."""
        found = [number for number, part in enumerate(self._parts) if self._may_be_cut(part)]
        return sorted(found, key=lambda number: -self._parts[number].items.size)

    def cut(self, number: int, policy: Policy, keep: int) -> CutFile | None:
        """Keep head and tail of a file, or nothing of one that is no text; None where it is too short."""
        part = self._transcript.parts[number]
        size = part.items.size
        if policy == "head-and-tail" and too_short(size, keep):
            return None
        sources = tuple(self._members[path].source for path in part.segments)
        found = ends(sources, size, keep) if policy == "head-and-tail" else None
        text = _joined(part, size, *found) if found is not None else ""
        made = self._written(part, text) if text else None
        self._instead |= dict.fromkeys(part.segments)
        if made is not None:
            self._instead[made.path] = made
        self._parts[number] = _part(part, made, text)
        return CutFile(part.name, size, made.size if made else 0, made.path if made else None)

    def transcript(self) -> Transcript:
        """The transcript with the files as they are carried."""
        return self._transcript.model_copy(update={"parts": tuple(self._parts)})

    def instead(self, member: Member) -> list[Member]:
        """What is carried in place of a member: itself, its head and tail, or nothing."""
        found = self._instead.get(member.path, member)
        return [found] if found is not None else []

    def _may_be_cut(self, part: TranscriptPart) -> bool:
        unknown = part.media == "raw" or (self._transcript.dialect == "opaque" and part.media == "jsonl")
        return unknown and bool(part.segments) and not part.nested_at

    def _written(self, part: TranscriptPart, text: str) -> Member:
        spool = self._scratch.spool("cut")
        spool.write(encode(text))
        done = spool.close()
        return Member(part.segments[0], done.path, done.size, done.sha256)


def _joined(part: TranscriptPart, size: int, first: str, last: str) -> str:
    """Head, a line that says what is missing, and tail; of lines of JSON, whole lines or nothing."""
    lines = whole_lines(first, last)
    if part.media == "jsonl" or all(lines):
        first, last = lines
    if part.media == "jsonl" and not (first or last):
        return ""
    left = size - len(encode(first)) - len(encode(last))
    note = f"[archived file: {size} bytes; {left} bytes left out here]"
    if part.media == "jsonl":
        return f"{first}{jsonio.dumps(note).decode()}\n{last}"
    gap = "" if not first or first.endswith("\n") else "\n"
    return f"{first}{gap}{note}\n{last}"


def _part(part: TranscriptPart, made: Member | None, text: str) -> TranscriptPart:
    raw = part.media == "raw"
    if made is None:
        return part.model_copy(update={"items": Items.of_chunks(()) if raw else Items.of(()), "segments": ()})
    assert not isinstance(made.source, bytes)  # noqa: S101 - it was written to a file
    count = None if raw else text.count("\n")
    items = Items.in_file(made.source, count=count, size=made.size, raw=raw)
    return part.model_copy(update={"items": items, "segments": (made.path,)})
