"""Transcripts compared by what was said and called, whatever compaction has taken out of one of them."""

from __future__ import annotations

import hashlib
from array import array
from collections import Counter
from collections.abc import Iterator
from itertools import zip_longest
from typing import Any

from archiver import jsonio
from archiver.comparing.state import same
from archiver.model import Items, Transcript, TranscriptPart
from archiver.model.difference import PartChange
from archiver.transcripts import get_dialect
from archiver.transcripts.dialect import Dialect, Facts

_NONE = TranscriptPart(name="")


def transcripts(before: Transcript, after: Transcript) -> tuple[PartChange, ...]:
    """Each file of the transcript that is not the same: the main one first, the others by name."""
    dialects = get_dialect(before.dialect), get_dialect(after.dialect)
    found = []
    for name, old, new in _pairs(before.parts, after.parts):
        change = _part(name, old, new, dialects)
        if change is not None:
            found.append(change)
    return tuple(found)


def _pairs(
    before: tuple[TranscriptPart, ...], after: tuple[TranscriptPart, ...]
) -> Iterator[tuple[str, TranscriptPart | None, TranscriptPart | None]]:
    """The main files belong together whatever they are called; a later name counts."""
    if before[:1] or after[:1]:
        old, new = before[0] if before else None, after[0] if after else None
        yield (new or old or _NONE).name, old, new
    olds = {part.name: part for part in before[1:]}
    news = {part.name: part for part in after[1:]}
    for name in dict.fromkeys((*olds, *news)):
        yield name, olds.get(name), news.get(name)


def _part(
    name: str, old: TranscriptPart | None, new: TranscriptPart | None, dialects: tuple[Dialect, Dialect]
) -> PartChange | None:
    if (old is not None and old.items.raw) or (new is not None and new.items.raw):
        return _bytes(name, old, new)
    said_old = _Said(old.items if old else Items.of(()), dialects[0])
    said_new = _Said(new.items if new else Items.of(()), dialects[1])
    common = _common(said_old.marks, said_new.marks)
    both = old is not None and new is not None
    header = old is not None and new is not None and not same(_around(old), _around(new))
    if both and not header and common == len(said_old.marks) == len(said_new.marks):
        return None
    roles = Counter(said_new.roles[number] for number in said_new.role[common:])
    return PartChange(
        name=name,
        state=_state(old, new, continued=common == len(said_old.marks)),
        before=len(said_old.marks),
        after=len(said_new.marks),
        added=len(said_new.marks) - common,
        by_role=dict(sorted(roles.items())),
        common=common,
        header=header,
    )


def _around(part: TranscriptPart) -> list[Any]:
    """What a file holds besides its messages."""
    return [part.media, part.header, list(part.items_at), list(part.nested_at)]


def _state(old: TranscriptPart | None, new: TranscriptPart | None, *, continued: bool) -> Any:
    if old is None or new is None:
        return "added" if old is None else "gone"
    return "continued" if continued else "parted"


class _Said:
    """What each message of a file says, as a few bytes: 8 for its content, and who speaks."""

    def __init__(self, items: Items, dialect: Dialect) -> None:
        self.marks = array("Q")
        self.role = bytearray()
        self.roles: list[str] = []
        numbers: dict[str, int] = {}
        for line, item in items.pairs():
            facts = dialect.facts(item)
            if dialect.name != "opaque" and not _counts(facts):
                continue
            role = "line" if dialect.name == "opaque" else facts.role
            if role not in numbers:
                numbers[role] = len(self.roles)
                self.roles.append(role)
            self.role.append(numbers[role])
            self.marks.append(_mark(line if dialect.name == "opaque" else _content(facts)))


def _counts(facts: Facts) -> bool:
    """Whether an item is a message: bookkeeping is none, and bare reasoning goes in time."""
    if facts.role == "meta":
        return False
    return bool(facts.calls or facts.results or facts.instruction or facts.text) or not facts.has_reasoning


def _content(facts: Facts) -> bytes:
    """What stays of an item whatever compaction does to it: not what a tool gave, nor reasoning."""
    calls = [[call.id, call.name, call.arguments] for call in facts.calls]
    answered = [result.call_id for result in facts.results]
    said = [facts.role, facts.branch, facts.message, facts.instruction, facts.text]
    return jsonio.dumps([said, calls, answered])


def _mark(data: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest())


def _common(one: array[int], other: array[int]) -> int:
    """With how many messages both begin."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _bytes(name: str, old: TranscriptPart | None, new: TranscriptPart | None) -> PartChange | None:
    """A file of unknown format: with how many bytes both begin."""
    common, before, after = _common_bytes(old, new)
    if old is not None and new is not None and common == before == after:
        return None
    return PartChange(
        name=name,
        state=_state(old, new, continued=common == before),
        unit="bytes",
        before=before,
        after=after,
        added=after - common,
        common=common,
    )


def _common_bytes(old: TranscriptPart | None, new: TranscriptPart | None) -> tuple[int, int, int]:
    """Bytes that both begin with, and how many each has; read side by side in pieces."""
    common = before = after = 0
    equal = True
    for one, other in zip_longest(_pieces(old), _pieces(new), fillvalue=b""):
        before += len(one)
        after += len(other)
        if equal:
            shared = len(one) if one == other else _shared(one, other)
            common += shared
            equal = shared == len(one) == len(other)
    return common, before, after


def _pieces(part: TranscriptPart | None, size: int = 1 << 16) -> Iterator[bytes]:
    """The bytes of a file in pieces of one size, but for the last."""
    held = b""
    for block in part.items.blocks() if part else ():
        held += block
        at = 0
        while len(held) - at >= size:
            yield held[at : at + size]
            at += size
        held = held[at:]
    if held:
        yield held


def _shared(one: bytes, other: bytes) -> int:
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[:middle] == other[:middle]:
            low = middle
        else:
            high = middle - 1
    return low
