"""The pass over a transcript that grows: what the last save of the process redacted is not redacted again.

    raw        |——— the same bytes as last time ———|——— read and redacted now ———|
    kept       the redacted text up to the mark, what was found in it, and what others saw of it

The mark stands a few items before the end, because a loop changes its last messages (a cache mark moves).
What comes out is what a pass over everything gives: findings are noted in the same order, and what became
known since is searched for in the text before the mark. Where it stands there, everything is redacted anew.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from archiver import jsonio
from archiver.model import Items, TranscriptPart
from archiver.model.items import BLOCK, Growing, Places
from archiver.progress import Progress
from archiver.redact import streams
from archiver.redact.exact import ExactMatcher, ExactValue
from archiver.redact.finder import Finder
from archiver.redact.known import KnownValues
from archiver.redact.ledger import Ledger, Note
from archiver.redact.reuse import Names
from archiver.redact.scrub import Clean, ItemOpaque, Scrubber
from archiver.scratch import Scratch, Tape

LAG: Final = 8
"""Items before the end that are read again by the next save, at least."""
MOST_NOTES: Final = 10_000
"""Copies of values found later that are remembered; with more, everything is redacted anew each time."""


class Watching(Protocol):
    """Sees redacted items, and can go on from what it had seen by some item."""

    def part(self, number: int, seen: object = None) -> Callable[[Any], object]:
        """What sees each item of that part, after those of `seen`; asked again, it starts there again."""

    def seen(self, number: int) -> object:
        """What it has seen of that part so far, as it is now."""


@dataclass(frozen=True, slots=True)
class Grown:
    """What one save leaves to the next of the items before its mark."""

    about: str
    """All that decides how they were redacted."""
    growing: Growing
    raw: int
    """Bytes of the text before the mark."""
    items: int
    tape: Path
    looks: tuple[int, ...]
    """That file as the save has left it (`_looks`): one that somebody has written to is not gone on from."""
    size: int
    """Bytes of the redacted text before the mark."""
    places: tuple[tuple[int, int], ...]
    ledger: Ledger
    """What the rules and the registered values found in them."""
    known: frozenset[bytes] = frozenset()
    """Values that they were searched for."""
    notes: tuple[Note, ...] = ()
    """What of these was replaced after the first pass."""
    seen: object = None


@dataclass(slots=True)
class Keeping:
    """What is kept from save to save, in a folder that outlives them."""

    scratch: Scratch
    watching: Watching
    before: Grown | None = None
    after: Grown | None = None
    """What the next save may go on from."""
    same: int = 0
    """Items that are those of the last save, and were not read now."""


@dataclass(frozen=True, slots=True)
class Means:
    """What redacts."""

    finder: Finder
    given: tuple[ExactValue, ...]
    clean: Clean
    names: Names | None
    opaque: ItemOpaque
    progress: Progress


@dataclass(frozen=True, slots=True)
class _Mark:
    """Where the next save may go on, and what was found and seen by there."""

    raw: int
    items: int
    size: int
    ledger: Ledger
    seen: object


class GrowingPass:
    """Redacts the one growing part of a transcript."""

    def __init__(self, means: Means, keeping: Keeping, about: str) -> None:
        """`about` names all that decides how items are redacted."""
        self._means = means
        self._keeping = keeping
        self._about = about

    def redact(self, part: TranscriptPart, ledger: Ledger) -> TranscriptPart:
        """The part redacted; `ledger`, which has what stands around the items, takes up what was found."""
        keeping, growing = self._keeping, part.items.growing
        assert growing is not None  # noqa: S101 - who asks has looked
        before, keeping.before = keeping.before, None
        if before is not None and self._fits(before, growing):
            keeping.same = before.items
            work = _Growth(self._means, keeping, before, part.name, growing)
            if work.run():
                return work.finish(part, ledger)
            keeping.same = 0
        path = keeping.scratch.new_path("redacted")
        begin = Grown(self._about, growing, 0, 0, path, (), 0, (), ledger.copy())
        work = _Growth(self._means, keeping, begin, part.name, growing)
        work.run()
        return work.finish(part, ledger)

    def _fits(self, before: Grown, growing: Growing) -> bool:
        if before.about != self._about or not growing.begins_like(before.growing, before.raw):
            return False
        return before.items > 0 and _looks(before.tape) == before.looks


def _looks(path: Path) -> tuple[int, ...]:
    """Which file it is, how long, and when it was written; empty where it is none."""
    try:
        seen = path.lstat()
    except OSError:
        return ()
    return (seen.st_dev, seen.st_ino, seen.st_mode, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns)


class _Growth:
    """The items behind one mark."""

    def __init__(self, means: Means, keeping: Keeping, before: Grown, name: str, growing: Growing) -> None:
        self._means, self._keeping, self._before, self._growing = means, keeping, before, growing
        self._place = f"transcript {name}"
        self._ledger = before.ledger.copy()
        self._values = KnownValues(means.given)
        self._count = before.items
        self._places = list(before.places)
        self._size = before.size
        self._mark: _Mark | None = None
        self._known: frozenset[bytes] = frozenset()
        self._notes: tuple[Note, ...] = ()

    def run(self) -> bool:
        """Redact them; false where what stands before the mark has to be redacted anew."""
        with Tape(self._before.tape, self._before.size) as tape:
            self._first(tape)
            done = self._again(tape)
            self._size = tape.size
        return done

    def finish(self, part: TranscriptPart, ledger: Ledger) -> TranscriptPart:
        """The part as it is redacted; what was found goes into `ledger`, and a mark to the next save."""
        before, mark = self._before, self._mark
        ledger.become(self._ledger)
        if len(self._notes) <= MOST_NOTES and (mark is not None or before.items):
            at = mark or _Mark(before.raw, before.items, before.size, before.ledger, before.seen)
            self._keeping.after = Grown(
                before.about,
                self._growing,
                at.raw,
                at.items,
                before.tape,
                _looks(before.tape),
                at.size,
                tuple(place for place in self._places if place[0] <= at.items),
                at.ledger,
                self._known,
                self._notes,
                at.seen,
            )
        places = Places(before.tape, self._places)
        return part.model_copy(update={"items": Items.in_tape(places, count=self._count, size=self._size)})

    # --- the first pass: by the rules and the registered values ---------------------------------------------

    def _first(self, tape: Tape) -> None:
        means, before = self._means, self._before
        scrubber = Scrubber(
            means.finder,
            self._values.registered_alone(),
            self._ledger,
            clean=means.clean,
            names=means.names,
        )
        see = self._keeping.watching.part(0, before.seen)
        batch = _Batch()
        raw = before.raw
        for end, pairs, settled in _led(self._growing.pieces(before.raw)):
            if not settled and self._mark is None and raw > before.raw and not streams.is_delta(batch.last):
                self._put(batch, scrubber, see, tape)
                seen = self._keeping.watching.seen(0)
                self._mark = _Mark(raw, self._count, tape.size, self._ledger.copy(), seen)
            batch.add(pairs)
            raw = end
            if batch.size >= BLOCK and not (batch.size < streams.LONGEST and streams.is_delta(batch.last)):
                self._put(batch, scrubber, see, tape)
        self._put(batch, scrubber, see, tape)

    def _put(self, batch: _Batch, scrubber: Scrubber, see: Callable[[Any], object], tape: Tape) -> None:
        if not batch.lines:
            return
        self._places.append((self._count, tape.size))
        block = b"\n".join((*batch.lines, b""))
        out: list[bytes] = []
        scrubber.lines(block, self._count + 1, self._place, self._means.opaque, out.append)
        for piece in out:
            tape.write(piece)
        for value in batch.values if out[0] is block else changed(batch.lines, batch.values, out):
            see(value)
        self._count += len(batch.lines)
        self._means.progress.advance(len(block))
        batch.clear()

    # --- once more: values that were found after their first occurrence -------------------------------------

    def _again(self, tape: Tape) -> bool:
        before = self._before
        values = self._values.values(self._ledger)
        self._known = frozenset(values)
        if before.notes and not before.known <= self._known:
            return False  # what was replaced then would stay as it was
        if not self._ledger.count:
            return True
        new = tuple(value for value in values if value not in before.known)
        if new and before.items and self._holds(0, before.size, ExactMatcher((), new)):
            return False
        for note in before.notes:
            self._ledger.replace(*note)
        known = self._values.matcher(self._ledger)
        again = Scrubber(self._means.finder, known, self._ledger, rules=False, names=self._means.names)
        self._notes = before.notes
        if any(self._edited(again, before.size, tape.size, tape)):
            self._rewrite(again, tape)
        return True

    def _holds(self, start: int, stop: int, values: ExactMatcher) -> bool:
        look = Scrubber(self._means.finder, values, self._ledger, rules=False)
        blocks = Places(self._before.tape).blocks(start, stop)
        return any(True for block in blocks for _ in look.line_edits(block, self._means.opaque))

    def _edited(self, again: Scrubber, start: int, stop: int, tape: Tape) -> Iterator[bool]:
        tape.flush()
        for block in Places(self._before.tape).blocks(start, stop):
            yield from (True for _ in again.line_edits(block, self._means.opaque))

    def _rewrite(self, again: Scrubber, tape: Tape) -> None:
        """What was written behind the mark of the last save, with all values replaced, and seen anew."""
        before, mark = self._before, self._mark
        path = self._keeping.scratch.new_path("again")
        notes: list[Note] = []
        with Tape(path, 0) as made:
            if mark is not None:
                self._ledger.notes = notes
                self._copy(again, before.size, mark.size, before.items, made)
                self._ledger.notes = None
                middle = made.size
                self._copy(again, mark.size, tape.size, mark.items, made)
            else:
                middle = 0
                self._copy(again, before.size, tape.size, before.items, made)
            size = made.size
        self._notes = (*before.notes, *notes)
        tape.cut(before.size)
        self._places = [place for place in self._places if place[0] < before.items]
        see = self._keeping.watching.part(0, before.seen)
        self._count = before.items
        lines = Places(path)
        self._take(lines.blocks(0, middle), see, tape)
        if mark is not None:
            seen = self._keeping.watching.seen(0)
            self._mark = _Mark(mark.raw, mark.items, tape.size, mark.ledger, seen)
        self._take(lines.blocks(middle, size), see, tape)
        path.unlink(missing_ok=True)

    def _copy(self, again: Scrubber, start: int, stop: int, first: int, made: Tape) -> None:
        for block in Places(self._before.tape).blocks(start, stop):
            again.lines(block, first + 1, self._place, self._means.opaque, made.write)
            first += block.count(b"\n")

    def _take(self, blocks: Iterable[bytes], see: Callable[[Any], object], tape: Tape) -> None:
        for block in blocks:
            self._places.append((self._count, tape.size))
            tape.write(block)
            for line in block[:-1].split(b"\n"):
                see(jsonio.loads(line))
                self._count += 1


class _Batch:
    """Lines and their values that are redacted together."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Begin anew; what the last line was stays known."""
        self.lines: list[bytes] = []
        self.values: list[Any] = []
        self.size = 0

    @property
    def last(self) -> bytes:
        return self.lines[-1] if self.lines else b""

    def add(self, pairs: Sequence[tuple[bytes, Any]]) -> None:
        """Take in the items of one piece."""
        for line, value in pairs:
            self.lines.append(line)
            self.values.append(value)
            self.size += len(line)


_Piece = tuple[int, list[tuple[bytes, Any]]]


def _led(pieces: Iterator[_Piece]) -> Iterator[tuple[int, list[tuple[bytes, Any]], bool]]:
    """Each piece, and whether at least `LAG` items stand behind it."""
    held: deque[_Piece] = deque()
    behind = 0
    for piece in pieces:
        held.append(piece)
        behind += len(piece[1])
        while behind - len(held[0][1]) >= LAG:
            end, pairs = held.popleft()
            behind -= len(pairs)
            yield end, pairs, True
    for end, pairs in held:
        yield end, pairs, False


def changed(lines: list[bytes], values: list[Any], out: list[bytes]) -> Iterator[Any]:
    """The values of a block in which lines were redacted; only those are parsed."""
    for line, value, made in zip(lines, values, b"".join(out).split(b"\n"), strict=False):
        yield value if made == line else jsonio.loads(made)
