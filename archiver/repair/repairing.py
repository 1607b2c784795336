"""The order of a repair: ask the dialect what is wrong, mend it on a copy, ask again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from archiver import jsonio
from archiver.model import Checkpoint, Items, TranscriptPart
from archiver.repair.places import Place, Plan, plan
from archiver.scratch import Scratch
from archiver.transcripts import get_dialect
from archiver.transcripts.dialect import SYNTHETIC, Dialect, Problem

INTERRUPTED: Final = (
    f"{SYNTHETIC}the run was interrupted before a result of this call was recorded, so its outcome is "
    "unknown. Find out what it did before you repeat it.]"
)
"""What an agent reads in place of the result that nobody recorded."""

LOST_BEGINNING: Final = "[synthetic message: the beginning of this conversation was not recorded.]"

_ROUNDS: Final = 4
"""Mending can uncover a problem that another one hid; more rounds than this were never seen to help."""

_ACTIONS: Final = {
    "unanswered_call": ("answered", "an error result was added: the outcome of the call is unknown"),
    "orphan_result": ("dropped", "the result of a call that is not in the transcript"),
    "duplicate_result": ("dropped", "a second result of one call"),
    "misplaced_result": ("moved", "the result now stands behind its call"),
    "empty_text": ("dropped", "a text without content"),
    "bad_text": ("mended", "lone surrogates became U+FFFD, and NULs in a tool's name went"),
    "bad_name": ("renamed", "the tool has a name that the provider takes"),
    "bad_role": ("mended", "the message got a role that the provider knows, or went"),
    "duplicate_call": ("renamed", "the second call and its result got an id of their own"),
    "duplicate_id": ("renamed", "the second line got an id of its own"),
    "too_large": ("replaced", "a text says what was here; the original is kept"),
    "changed_reasoning": ("dropped", "reasoning that is not as the provider gave it, which it refuses"),
    "dangling_parent": ("relinked", "the line now follows the one before it"),
    "bad_order": ("added", "a message that speaks for the lost beginning"),
    "lone_reasoning": ("dropped", "reasoning without what followed it, which the provider refuses"),
    "foreign_reasoning": ("dropped", "reasoning of another provider, which this one refuses"),
}

_BEYOND_REPAIR: Final = {
    "broken_seal": "nobody but the provider could write it again",
    "unanswerable_call": "nothing can stand in for its result",
}


@dataclass(frozen=True, slots=True)
class Action:
    """One problem and what became of it; `item` is its 0-based index when it was found."""

    part: str
    item: int
    code: str
    action: str
    detail: str
    call_id: str | None = None


@dataclass(frozen=True, slots=True)
class RepairReport:
    """What was changed, and what was found and left: open by design, or not to be mended."""

    actions: tuple[Action, ...] = ()
    left: tuple[Action, ...] = ()


def repair(checkpoint: Checkpoint, scratch: Scratch) -> tuple[Checkpoint, RepairReport]:
    """A checkpoint whose transcript its dialect finds valid, as far as that can be had.

    The argument stays as it is; when nothing is wrong it is what comes back. Repairing twice changes nothing.
    """
    transcript = checkpoint.transcript
    dialect = get_dialect(transcript.dialect)
    pending = {approval.call_id for approval in checkpoint.plan.pending_approvals if approval.call_id}
    mender = _Mender(dialect, pending, scratch)
    parts = tuple(mender.part(part) for part in transcript.parts)
    report = RepairReport(tuple(mender.actions), tuple(mender.left))
    if all(new is old for new, old in zip(parts, transcript.parts, strict=True)):
        return checkpoint, report
    mended = transcript.model_copy(update={"parts": parts})
    return checkpoint.model_copy(update={"transcript": mended}), report


class _Mender:
    def __init__(self, dialect: Dialect, pending: set[str], scratch: Scratch) -> None:
        self.actions: list[Action] = []
        self.left: list[Action] = []
        self._dialect = dialect
        self._pending = pending
        self._doubled: set[str | None] = set()
        self._scratch = scratch

    def part(self, part: TranscriptPart) -> TranscriptPart:
        """The part, mended; the same object when there is nothing to mend."""
        if part.items.raw or self._dialect.name == "opaque":
            return part
        items, tried = part.items, list[Problem]()
        for _ in range(_ROUNDS):
            problems = self._dialect.problems(items.values())
            self._doubled = {problem.call_id for problem in problems if problem.code == "duplicate_call"}
            found = [problem for problem in problems if self._reason_to_leave(problem) is None]
            self._tell(part.name, tried, found)
            if not found:
                break
            written = self._write(items, plan(items, self._dialect, found))
            if written is None:
                break
            items, tried = written, found
        self.left += [
            _left(part.name, problem, self._reason_to_leave(problem) or "it could not be mended")
            for problem in problems
        ]
        return part if items is part.items else part.model_copy(update={"items": items, "segments": ()})

    def _tell(self, part: str, tried: list[Problem], found: list[Problem]) -> None:
        """Note as done what was tried and is found no more."""
        still = Counter((problem.code, problem.call_id, problem.ref) for problem in found)
        for problem in tried:
            key = (problem.code, problem.call_id, problem.ref)
            if still[key]:
                still[key] -= 1
            else:
                self.actions.append(_done(part, problem))

    def _reason_to_leave(self, problem: Problem) -> str | None:
        if problem.code == "unanswered_call" and problem.call_id in self._pending:
            return "the call waits for a person's approval"
        doubled = problem.code == "misplaced_result" and problem.call_id in self._doubled
        if problem.code == "bad_text" and problem.call_id is not None:
            return "a tool name cannot be changed without changing what was called"
        if doubled:
            return "two calls share one id, and nothing says which the results belong to"
        return problem.beyond or _BEYOND_REPAIR.get(problem.code)

    def _write(self, items: Items, made: Plan) -> Items | None:
        """The mended items in a private file; None when nothing changed."""
        spool = self._scratch.spool("repaired", hashed=False)
        emitter = _Emitter(self._dialect, made)
        count = 0
        for line in emitter.lines(items):
            spool.write(line)
            spool.write(b"\n")
            count += 1
        spooled = spool.close()
        return Items.in_file(spooled.path, count=count, size=spooled.size) if emitter.changed else None


class _Emitter:
    """Writes the items anew, changing those the plan names and the links that their changes break."""

    def __init__(self, dialect: Dialect, made: Plan) -> None:
        self.changed = False
        self._dialect = dialect
        self._plan = made
        self._links: dict[str, str | None] = dict(made.gone)
        """Ids that later items must not link to, each with the id to link to instead."""
        self._last: str | None = None
        self._end = b""

    def lines(self, items: Items) -> Iterator[bytes]:
        """The mended items as JSON texts; those without a change keep their bytes, and all the line's end."""
        for index, line in enumerate(items.lines()):
            item = jsonio.exact(line)
            self._end = b"\r" if line.endswith(b"\r") else b""
            if index in self._plan.note and self._dialect.facts(item).role == "assistant":
                yield self._new(self._note(index, item))
            linked = self._relinked(index, item)
            mended = self._mended(index, linked)
            if mended is item:
                yield line
            elif mended is not None:
                yield self._new(mended)
            self._remember(linked, kept=mended is not None)
            for place in self._plan.behind.get(index, ()):
                yield from map(self._new, self._answers(place, linked))

    def _new(self, item: Any) -> bytes:
        self.changed = True
        return jsonio.again(item) + self._end

    def _relinked(self, index: int, item: Any) -> Any:
        for lost in self._plan.dangling.get(index, ()):
            self._links.setdefault(lost, self._last)
        return self._dialect.relinked(item, self._links) if self._links else item

    def _mended(self, index: int, item: Any) -> Any | None:
        mended = self._plan.dropped(index, item, self._dialect)
        if mended is not None:
            for place in self._plan.into.get(index, ()):
                mended = self._filled(place, mended)
            if index in self._plan.sound:
                mended = self._sound(mended)
        if mended is not None and index in self._plan.unreasoned:
            mended = self._dialect.without_reasoning(mended)
        return mended

    def _sound(self, item: Any) -> Any | None:
        try:
            return self._dialect.with_sound_text(item)
        except RecursionError:  # nested so deeply that no walk comes to its end
            return item

    def _note(self, index: int, item: Any) -> Any:
        """A message that speaks for the lost beginning; what hung off the lost part hangs off it."""
        lost = self._plan.dangling.get(index, ())
        note = self._dialect.user_note(LOST_BEGINNING, item)
        note = self._dialect.relinked(note, dict.fromkeys(lost, self._last) | self._links)
        own, _ = self._dialect.link(note)
        self._last = own or self._last
        return note

    def _remember(self, item: Any, *, kept: bool) -> None:
        own, parent = self._dialect.link(item)
        self.changed = self.changed or not kept
        if own is None:
            return
        if not kept:
            self._links[own] = parent
        elif self._dialect.facts(item).branch is None:
            self._last = own

    def _answers(self, place: Place, after: Any) -> Iterator[Any]:
        """New items that hold the place's results."""
        if self._dialect.results == "together":
            yield self._answer(place, after)
            return
        for call in place.unanswered:
            after = self._dialect.error_results([call], after, INTERRUPTED)
            yield after
        for call, content, is_error in place.moved:
            after = self._dialect.error_results([call], after, content, is_error=is_error)
            yield after

    def _answer(self, place: Place, after: Any) -> Any:
        """A new item that holds the place's results; what followed `after` follows it from now on."""
        if place.unanswered:
            new = self._dialect.error_results(place.unanswered, after, INTERRUPTED)
        else:
            call, content, is_error = place.moved[0]
            new = self._dialect.error_results([call], after, content, is_error=is_error)
        # `after` itself may have been dropped just now, and then its parent comes before the new item.
        new = self._dialect.relinked(self._filled(place, new), self._links)
        before, behind = self._dialect.link(after)[0], self._dialect.link(new)[0]
        if before is not None and behind is not None:
            self._links[before] = behind
            self._last = behind
        return new

    def _filled(self, place: Place, item: Any) -> Any:
        """The item with the place's results added; those it holds already are not added again."""
        if place.unanswered:
            item = self._dialect.with_results(item, place.unanswered, INTERRUPTED)
        for call, content, is_error in place.moved:
            item = self._dialect.with_results(item, [call], content, is_error=is_error)
        return item


def _done(part: str, problem: Problem) -> Action:
    action, detail = _ACTIONS[problem.code]
    return Action(part, problem.item, problem.code, action, _named(detail, problem), problem.call_id)


def _left(part: str, problem: Problem, reason: str) -> Action:
    return Action(
        part,
        problem.item,
        problem.code,
        "left",
        _named(f"{problem.detail}; {reason}", problem),
        problem.call_id,
    )


def _named(detail: str, problem: Problem) -> str:
    return f"{detail} ({problem.call_id})" if problem.call_id else detail
