"""Restore a run: records → verify → choose → judge → get, open, unpack → migrate → repair → hand over.

This file and `archive.py` alone know the order of the stages.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from archiver import (
    audit,
    bundles,
    choosing,
    claiming,
    deciding,
    gate,
    handover,
    judging,
    members,
    rotation,
    saved,
    taking_over,
    target,
    withheld,
)
from archiver.catalog import Catalog
from archiver.claiming import End
from archiver.deciding import Outcome
from archiver.errors import (
    ArchiveFormatError,
    NeedsDecisionError,
    StaleCheckpointError,
)
from archiver.freshness import Current
from archiver.gate import Effects
from archiver.model import Checkpoint, Transcript
from archiver.model.base import JsonValue
from archiver.model.record import Decision
from archiver.model.report import Blocker, Repaired
from archiver.model.report import RestoreReport as Report
from archiver.progress import Progress, Silent
from archiver.record_of import effect_counts
from archiver.repair import RepairReport, repair
from archiver.shellwords import word
from archiver.taking_over import Check, Resumed

if TYPE_CHECKING:
    from archiver.scratch import Scratch
    from archiver.setup import Setup


@dataclass(frozen=True, slots=True)
class Restored:
    """A checkpoint that was verified, migrated and repaired, and the folder it was handed over in."""

    state: Checkpoint
    report: Report
    folder: Path
    _plan: _Planned = field(repr=False)
    _setup: Setup = field(repr=False)

    @property
    def checkpoint(self) -> Checkpoint:
        """The state by the name of its model."""
        return self.state

    @property
    def blockers(self) -> tuple[Blocker, ...]:
        """What stands against going on: what was not accepted, and effects that nobody has decided on."""
        return (*self.report.blockers, *gate.blockers_of(self.state))

    @property
    def next_seq(self) -> int | None:
        """The number that the next record of the run has; None where nothing can follow its end."""
        return self.report.next_seq

    @property
    def claim(self) -> int | None:
        """The number of the claim by which this restore took the run over."""
        return self.report.claimed

    @property
    def effects(self) -> Effects:
        """The effects, to be asked before each call that acts on something outside."""
        return Effects(self.state.effects, {one.effect: one for one in self.report.decisions})

    def resume(
        self,
        *,
        resolve: Mapping[str, Outcome] | None = None,
        because: str = "",
        check: Check | None = None,
        now: datetime | None = None,
    ) -> Resumed:
        """Take the run over before anything acts: commit a claim with the own key under the next number.

        `resolve` says of effects by their keys what somebody found out, `because` how; `check` is asked about
        each effect that is undecided still. Raises `NeedsDecisionError` while any is left, `StaleWriterError`
        where anybody has written to the run since the restore looked, and what `claiming.check_possible` and
        `deciding` raise. A restore that has claimed the run already does not claim it again.
        """
        if self.report.claimed is not None:
            deciding.check_keys(resolve or {}, (), self.report.decisions)
            return Resumed(self.state, self.report.claimed, self.report.decisions)
        return taking_over.resume(
            self.state,
            self.report,
            self._plan.end,
            self._setup,
            new=self._plan.new,
            resolve=resolve or {},
            because=because,
            check=check,
            now=now or datetime.now(UTC),
        )


@dataclass(frozen=True, slots=True)
class _Planned:
    """The report, and what a claim needs besides."""

    report: Report
    end: End
    past: tuple[Decision, ...]
    """What claims before said of effects, the last word on each."""
    new: tuple[Decision, ...]


def plan(
    run: str,
    setup: Setup,
    *,
    at: int | None = None,
    previous: bool = False,
    accept: Collection[str] = (),
    resolve: Mapping[str, Outcome] | None = None,
    network: bool = False,
    current: Current | None = None,
    now: datetime | None = None,
) -> Report:
    """What a restore would do and whether anything stands against it, from records alone.

    `current` is what the run is going to go on with, else what the settings say.
    `resolve` says of effects by their keys what somebody found out; `Setup.why` is then needed; `previous`
    takes the newest whole checkpoint before the newest. Raises what `choosing.find` raises, and
    `UsageError` for an effect that is not to be decided on; a stale world is not an error here but a blocker
    of the report.
    """
    now = now or datetime.now(UTC)
    return _planned(run, setup, at, previous, accept, resolve or {}, network, current, now).report


def _planned(
    run: str,
    setup: Setup,
    at: int | None,
    previous: bool,
    accept: Collection[str],
    resolve: Mapping[str, Outcome],
    network: bool,
    current: Current | None,
    now: datetime,
) -> _Planned:
    deciding.check_words(resolve, setup.why)
    catalog = Catalog(setup)
    found = choosing.find(run, setup, at=at, previous=previous, accept=accept, now=now)
    chain, record, standing = found.chain, found.record, found.standing
    saved.demand_supported(record)
    with choosing.advising(record, setup):
        bundles.check_present(record, setup)
    end = claiming.end_of(chain, record, catalog)
    reason, new = taking_over.words(resolve, setup.why, setup, now)
    past = deciding.latest(end.decisions())
    undecided = record.effects.undecided
    if not gate.may_hide(record):
        deciding.check_keys(resolve, undecided, deciding.about(past, undecided))
    decisions = (*deciding.about(past, undecided), *new)
    decided = {decision.effect for decision in decisions}
    report = judging.judge(
        chain,
        record,
        setup,
        standing=standing,
        accept=accept,
        decided=decided,
        network=network,
        current=current,
        now=now,
    )
    report = report.model_copy(
        update={
            "decisions": decisions,
            "reason": reason,
            "taken_over": tuple(end.taken_over()),
            "next_seq": None if end.sha256 is None else end.seq + 1,
            "warnings": (*report.warnings, *end.warnings(), *_not_sure(resolve, undecided)),
        }
    )
    return _Planned(report, end, past, new)


def restore(
    run: str,
    setup: Setup,
    *,
    into: Path,
    at: int | None = None,
    previous: bool = False,
    accept: Collection[str] = (),
    resolve: Mapping[str, Outcome] | None = None,
    claim: bool = False,
    force: bool = False,
    current: Current | None = None,
    progress: Progress | None = None,
    now: datetime | None = None,
) -> Restored:
    """Hand a checkpoint over in the new folder `into`; nothing appears there unless everything holds.

    `resolve` and `current` as for `plan`. `claim` also takes the run over, just before the folder appears.
    `force` replaces a folder in which an earlier restore of this run was handed over, and nothing else.
    Raises `StaleCheckpointError` or `NeedsDecisionError` for a blocker that was not accepted,
    `BundleMissingError`, `DigestMismatchError`, what `Restored.resume` raises, and whatever a stage finds
    wrong.
    """
    replaced = run if force else None
    target.check(into, replaced)
    progress, now, resolve = progress or Silent(), now or datetime.now(UTC), resolve or {}
    planned = _planned(run, setup, at, previous, accept, resolve, True, current, now)
    report = planned.report
    unlisted = set(resolve) - set(report.record.effects.undecided)
    _refuse(report, but=gate.EFFECTS if unlisted else "")  # those are looked for in the bundle first
    if claim:
        claiming.check_possible(run, planned.end, setup, now)
    with target.beside(into) as scratch:
        unpacked = scratch.path / "bundle"
        with choosing.advising(report.record, setup):
            found = saved.fetch(report.record, setup, unpacked, progress)
        checkpoint, repairs = _repaired(found.checkpoint, scratch)
        checkpoint, decisions = _decided(checkpoint, planned, resolve)
        if claim or gate.EFFECTS not in accept:
            gate.refuse_undecided(checkpoint)
        report = _opened(report, checkpoint, unpacked).model_copy(
            update={
                "opened_by": found.opened_by,
                "break_glass": found.break_glass,
                "decisions": decisions,
                "migrations": found.steps,
                "repairs": tuple(_repairs(repairs)),
                "warnings": (*report.warnings, *_left(repairs)),
            }
        )
        report = _audited(report, setup, planned.new, into)
        progress.stage("write", None)
        taking = _Claim(planned, setup, checkpoint, now) if claim else None
        report = handover.write(
            checkpoint, found.checkpoint.transcript, report, unpacked, into, scratch, replaced, taking
        )
    if taking is not None:
        report = report.model_copy(update={"warnings": (*report.warnings, *taking.warnings)})
    return Restored(_in_folder(checkpoint, into), report, into, planned, setup)


def _not_sure(resolve: Mapping[str, Outcome], undecided: Collection[str]) -> Iterator[str]:
    for key in resolve:
        if key not in undecided:
            yield f"whether effect {gate.told([key])} is to be decided on is known once the bundle is open"


class _Claim:
    """The claim that a restore commits as its last step but one."""

    def __init__(self, planned: _Planned, setup: Setup, checkpoint: Checkpoint, now: datetime) -> None:
        self.seq = planned.end.seq + 1
        self.warnings: tuple[str, ...] = ()
        self._planned, self._setup, self._checkpoint, self._now = planned, setup, checkpoint, now

    def commit(self) -> None:
        """Raises what `claiming.claim` raises."""
        _, self.warnings = claiming.claim(
            self._planned.report.record,
            self._planned.end,
            self._setup,
            effects=effect_counts(self._checkpoint),
            decisions=self._planned.new,
            now=self._now,
        )


def _decided(
    checkpoint: Checkpoint, planned: _Planned, resolve: Mapping[str, Outcome]
) -> tuple[Checkpoint, tuple[Decision, ...]]:
    """The checkpoint with what was decided, and the decisions that are about something undecided in it."""
    checkpoint = withheld.without_replay(checkpoint)
    keys = dict.fromkeys(effect.key for effect in gate.undecided(checkpoint))
    past = tuple(deciding.about(planned.past, keys))
    deciding.check_keys(resolve, keys, past)
    decisions = (*past, *planned.new)
    return gate.with_decisions(checkpoint, decisions), decisions


def _opened(report: Report, checkpoint: Checkpoint, unpacked: Path) -> Report:
    """The report with what only the opened bundle tells."""
    receipt = members.receipt_in(unpacked)
    return report.model_copy(
        update={
            "undecided": gate.open_effects(checkpoint),
            "redacted": withheld.places(checkpoint),
            "left_out": tuple(f"{left.member}: {left.reason}" for left in receipt.left_out),
            "rotate": tuple(rotation.lines(receipt.findings)),
        }
    )


def _audited(report: Report, setup: Setup, decided: tuple[Decision, ...], into: Path) -> Report:
    """Write down what is going to be done, before it is done; the report has the warnings."""

    def note(action: Literal["accept", "resolve", "restore"], **detail: JsonValue) -> tuple[str, ...]:
        return audit.note(
            setup,
            action,
            run=report.run,
            seq=report.seq,
            opened_by=report.opened_by,
            break_glass=report.break_glass,
            detail=detail,
        )

    said = note("accept", probes=list(report.accepted)) if report.accepted else ()
    if decided:
        said += note("resolve", effects={one.effect: one.outcome for one in decided})
    said += note("restore", into=str(into))
    return report.model_copy(update={"warnings": (*report.warnings, *said)})


def _repairs(repairs: RepairReport) -> Iterator[Repaired]:
    for one in repairs.actions:
        yield Repaired(part=one.part, item=one.item, code=one.code, action=one.action, detail=one.detail)


def _left(repairs: RepairReport) -> Iterator[str]:
    """What is wrong with the transcript and was not mended; approvals that wait are told of already."""
    for found in repairs.left:
        if found.code != "unanswered_call":
            yield f"{found.part}, item {found.item}: {found.code}: {found.detail}"


def _refuse(report: Report, but: str) -> None:
    """Raise for what stands against the restore, `but` that of this word alone."""
    if not any(blocker.accept != but for blocker in report.blockers):
        return
    kind = NeedsDecisionError if report.exit_code == NeedsDecisionError.exit_code else StaleCheckpointError
    accepts = " ".join(f"--accept {word(blocker.accept)}" for blocker in report.blockers)
    decide = next((f"{one.remedy}; " for one in report.blockers if one.accept == gate.EFFECTS), "")
    raise kind(
        f"checkpoint {report.seq} of run {report.run} is not handed over: "
        + "; ".join(blocker.reason for blocker in report.blockers),
        remedy=f"{decide}see `archiver restore {word(report.run)} --plan`; to go on all the same: {accepts}",
    )


def _repaired(checkpoint: Checkpoint, scratch: Scratch) -> tuple[Checkpoint, RepairReport]:
    try:
        return repair(checkpoint, scratch)
    except (ValueError, RecursionError) as error:
        raise ArchiveFormatError(
            f"the transcript in the bundle is not what its dialect writes: {error}"
        ) from error


def _in_folder(checkpoint: Checkpoint, folder: Path) -> Checkpoint:
    """The checkpoint with its items read from the files that were handed over; the scratch is gone."""
    return checkpoint.model_copy(update={"transcript": handover.transcript_in(checkpoint.transcript, folder)})


__all__ = ["Report", "Restored", "Resumed", "Transcript", "plan", "restore"]
