"""The order of a repair: ask the dialect what is wrong, mend it on a copy, ask again."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from archiver.model import Checkpoint, Items, Transcript, TranscriptPart
from archiver.repair.places import Plan, first, plan
from archiver.repair.words import Action, done, left, reason_to_leave
from archiver.repair.writing import Writer
from archiver.scratch import Scratch
from archiver.transcripts import get_dialect
from archiver.transcripts.dialect import Dialect, Problem

_ROUNDS: Final = 12
"""Mending can uncover a problem that another one hid; more rounds than this were never seen to help."""


@dataclass(frozen=True, slots=True)
class RepairReport:
    """What was changed, and what was found and left: open by design, or not to be mended."""

    actions: tuple[Action, ...] = ()
    left: tuple[Action, ...] = ()


def repair(checkpoint: Checkpoint, scratch: Scratch) -> tuple[Checkpoint, RepairReport]:
    """A checkpoint whose transcript its dialect finds valid, as far as that can be had.

    The argument stays as it is; when nothing is wrong it is what comes back. Repairing twice changes nothing.
    """
    pending = {approval.call_id for approval in checkpoint.plan.pending_approvals if approval.call_id}
    transcript, report = mended(checkpoint.transcript, scratch, pending)
    if transcript is checkpoint.transcript:
        return checkpoint, report
    return checkpoint.model_copy(update={"transcript": transcript}), report


def mended(
    transcript: Transcript, scratch: Scratch, pending: Collection[str] = ()
) -> tuple[Transcript, RepairReport]:
    """As `repair`, for a transcript alone; calls in `pending` wait for a person and stay open."""
    mender = _Mender(get_dialect(transcript.dialect), pending, scratch)
    parts = tuple(mender.part(part) for part in transcript.parts)
    report = RepairReport(tuple(mender.actions), tuple(mender.left))
    if all(new is old for new, old in zip(parts, transcript.parts, strict=True)):
        return transcript, report
    return transcript.model_copy(update={"parts": parts}), report


def reasons(problems: Sequence[Problem], pending: Collection[str] = ()) -> list[str | None]:
    """For each problem why a repair leaves it, or None where it mends it."""
    doubled = {one.call_id for one in problems if one.code == "duplicate_call" and one.beyond}
    return [reason_to_leave(problem, pending, doubled) for problem in problems]


class _Mender:
    def __init__(self, dialect: Dialect, pending: Collection[str], scratch: Scratch) -> None:
        self.actions: list[Action] = []
        self.left: list[Action] = []
        self._dialect = dialect
        self._pending = pending
        self._scratch = scratch

    def part(self, part: TranscriptPart) -> TranscriptPart:
        """The part, mended; the same object when there is nothing to mend."""
        if part.items.raw or self._dialect.name == "opaque":
            return part
        items, tried = part.items, list[_Tried]()
        origins: array[int] | None = None
        stuck: set[_Key] = set()
        before: Path | None = None
        for _ in range(_ROUNDS):
            problems = self._dialect.problems(items.values())
            why = reasons(problems, self._pending)
            found = [problem for problem, reason in zip(problems, why, strict=True) if reason is None]
            self._tell(part.name, tried, found)
            now = list(first([problem for problem in found if _key(problem) not in stuck]))
            tried = [_Tried(problem, _origin(problem, origins)) for problem in now]
            if not tried:
                break
            written = self._write(items, plan(items, self._dialect, now))
            if written is None:
                stuck.update(map(_key, now))
                tried = []
                continue
            if before is not None:
                before.unlink()  # what a round reads the next one does not
            items, before, made_of = written
            origins = made_of if origins is None else array("Q", (origins[index] for index in made_of))
        self.left += [
            left(part.name, problem, reason or "it could not be mended", _origin(problem, origins))
            for problem, reason in zip(problems, why, strict=True)
        ]
        return part if items is part.items else part.model_copy(update={"items": items, "segments": ()})

    def _tell(self, part: str, tried: list[_Tried], found: list[Problem]) -> None:
        """Note as done what was tried and is found no more."""
        still = Counter(map(_key, found))
        for problem, origin in tried:
            key = _key(problem)
            if still[key]:
                still[key] -= 1
            else:
                self.actions.append(done(part, problem, origin))

    def _write(self, items: Items, made: Plan) -> tuple[Items, Path, array[int]] | None:
        """The mended items in a private file, that, and what each was made of; None when nothing changed."""
        spool = self._scratch.spool("repaired", hashed=False)
        writer = Writer(self._dialect, made)
        count = 0
        for line in writer.lines(items):
            spool.write(line)
            spool.write(b"\n")
            count += 1
        spooled = spool.close()
        if not writer.changed:
            spooled.path.unlink()
            return None
        return Items.in_file(spooled.path, count=count, size=spooled.size), spooled.path, writer.origins


class _Tried(NamedTuple):
    """A problem that a round should mend, and the item before all rounds that it is about."""

    problem: Problem
    origin: int


def _origin(problem: Problem, origins: array[int] | None) -> int:
    return problem.item if origins is None or problem.item >= len(origins) else origins[problem.item]


_Key = tuple[str, str | None, str | None]


def _key(problem: Problem) -> _Key:
    """What is the same problem after others were mended, and the items have other numbers."""
    return problem.code, problem.call_id, problem.ref
