"""The order of a repair: ask the dialect what is wrong, mend it on a copy, ask again."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final

from archiver.model import Checkpoint, Items, TranscriptPart
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
        self._scratch = scratch

    def part(self, part: TranscriptPart) -> TranscriptPart:
        """The part, mended; the same object when there is nothing to mend."""
        if part.items.raw or self._dialect.name == "opaque":
            return part
        items, tried = part.items, list[Problem]()
        for _ in range(_ROUNDS):
            problems = self._dialect.problems(items.values())
            reasons = self._reasons(problems)
            found = [problem for problem, reason in zip(problems, reasons, strict=True) if reason is None]
            self._tell(part.name, tried, found)
            if not found:
                break
            tried = list(first(found))
            written = self._write(items, plan(items, self._dialect, tried))
            if written is None:
                break
            items = written
        self.left += [
            left(part.name, problem, reason or "it could not be mended")
            for problem, reason in zip(problems, reasons, strict=True)
        ]
        return part if items is part.items else part.model_copy(update={"items": items, "segments": ()})

    def _reasons(self, problems: list[Problem]) -> list[str | None]:
        """For each problem why it has to be left, or None."""
        doubled = {one.call_id for one in problems if one.code == "duplicate_call" and one.beyond}
        return [reason_to_leave(problem, self._pending, doubled) for problem in problems]

    def _tell(self, part: str, tried: list[Problem], found: list[Problem]) -> None:
        """Note as done what was tried and is found no more."""
        still = Counter((problem.code, problem.call_id, problem.ref) for problem in found)
        for problem in tried:
            key = (problem.code, problem.call_id, problem.ref)
            if still[key]:
                still[key] -= 1
            else:
                self.actions.append(done(part, problem))

    def _write(self, items: Items, made: Plan) -> Items | None:
        """The mended items in a private file; None when nothing changed."""
        spool = self._scratch.spool("repaired", hashed=False)
        writer = Writer(self._dialect, made)
        count = 0
        for line in writer.lines(items):
            spool.write(line)
            spool.write(b"\n")
            count += 1
        spooled = spool.close()
        return Items.in_file(spooled.path, count=count, size=spooled.size) if writer.changed else None
