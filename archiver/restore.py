"""Restore a run: records → verify → choose → judge → get, open, unpack → migrate → repair → hand over.

This file, and `preparing.py` with `archive.py`, know the order of the stages.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from archiver import (
    audit,
    bundles,
    choosing,
    claiming,
    deciding,
    gate,
    handover,
    judging,
    ledger,
    saved,
    taking_over,
    target,
    telemetry,
)
from archiver.catalog import Catalog
from archiver.deciding import Outcome
from archiver.errors import ArchiveFormatError, ArchiverError, StaleCheckpointError
from archiver.freshness import Current
from archiver.model import Checkpoint, Transcript
from archiver.model.base import JsonValue
from archiver.model.record import Decision
from archiver.model.report import RestoreReport as Report
from archiver.progress import Progress, Silent
from archiver.repair import RepairReport, repair
from archiver.restored import Restored
from archiver.safetext import one_line
from archiver.taking_over import Planned, Resumed

_LEFT_OUT: Final = (
    "workspace: it was left out, as was asked; restore again without --no-workspace, or fetch files of it "
    "with --only 'workspace/PATH'"
)
_ALL_ELSE: Final = "to hand over everything but the workspace: --no-workspace"

if TYPE_CHECKING:
    from archiver.scratch import Scratch
    from archiver.setup import Setup


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
    `resolve` says of effects by key or name what somebody found out; `Setup.why` is then needed; `previous`
    takes the newest whole checkpoint before the newest. Raises what `choosing.find` raises, and
    `UsageError` for an effect that is not to be decided on; a stale world is not an error here but a blocker
    of the report.
    """
    now, resolve = now or datetime.now(UTC), deciding.by_name(resolve or {})
    planned = _planned(run, setup, at, previous, accept, resolve, network, current, now)
    report = planned.report
    hints = (
        *_not_sure(resolve, planned.undecided),
        *gate.hidden(report.record, bool(report.replaced_before)),
    )
    return report.model_copy(update={"warnings": (*report.warnings, *hints)})


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
) -> Planned:
    deciding.check_words(resolve, setup.why)
    catalog = Catalog(setup)
    found = choosing.find(run, setup, at=at, previous=previous, accept=accept, now=now)
    chain, record, standing = found.chain, found.record, found.standing
    saved.demand_supported(record)
    with choosing.advising(record, setup):
        bundles.check_present(record, setup, chain.records)
    end = claiming.end_of(chain, record, catalog)
    reason, new = taking_over.words(resolve, setup.why, setup, now)
    entries = ledger.known(run, setup)
    past = ledger.unspent(deciding.latest(end.decisions()), entries)
    undecided = taking_over.undecided(record, entries)
    if not gate.may_hide(record):
        deciding.check_names(resolve, undecided, deciding.about(past, undecided))
    decisions = (*deciding.about(past, undecided), *new)
    decided = {*ledger.happened(entries), *(decision.effect for decision in decisions)}
    report = judging.judge(
        chain,
        record,
        setup,
        standing=standing,
        accept=accept,
        decided=decided,
        begun=ledger.begun(entries),
        network=network,
        current=current,
        now=now,
    )
    own = setup.signing_key.public if setup.signing_key else None
    report = report.model_copy(
        update={
            **end.standing(record, report.writer, own, behind=bool(standing.missing)),
            "flags": setup.session.words(),
            "decisions": decisions,
            "reason": reason,
            "warnings": (*report.warnings, *end.warnings()),
        }
    )
    return Planned(report, end, past, new, entries, chain.records)


@telemetry.span("archiver.restore")
def restore(
    run: str,
    setup: Setup,
    *,
    into: Path,
    at: int | None = None,
    previous: bool = False,
    accept: Collection[str] = (),
    asked: Collection[str] = (),
    resolve: Mapping[str, Outcome] | None = None,
    claim: bool = False,
    force: bool = False,
    repository: Path | None = None,
    workspace: bool = True,
    current: Current | None = None,
    progress: Progress | None = None,
    now: datetime | None = None,
) -> Restored:
    """Hand a checkpoint over in the new folder `into`; nothing appears there unless everything holds.

    `resolve` and `current` as for `plan`. What `asked` names stops nothing and counts as accepted by nobody:
    the caller asks about it afterwards, by itself. `claim` also takes the run over, just before the folder
    appears. `force` replaces a folder in which an earlier restore of this run was handed over, and nothing
    else. Without `workspace` the folder that was saved with it is neither fetched nor made.

    Raises `StaleCheckpointError` or `NeedsDecisionError` for a blocker that was not accepted,
    `BundleMissingError`, `DigestMismatchError`, what `Restored.resume` raises, and whatever a stage finds
    wrong.
    """
    replaced, began = run if force else None, time.monotonic()
    target.check(into, replaced, store=setup.store.url)
    progress, now, resolve = progress or Silent(), now or datetime.now(UTC), deciding.by_name(resolve or {})
    passed = {*accept, *asked}
    planned = _planned(run, setup, at, previous, passed, resolve, True, current, now)
    report = planned.report
    unlisted = set(resolve).difference(planned.undecided)
    with _noted(report, setup):
        judging.refuse(report, but=gate.EFFECTS if unlisted else "")  # those are looked for in the bundle
    if claim:
        claiming.check_possible(run, planned.end, setup, now)
    with target.beside(into) as scratch:
        unpacked = scratch.path / "bundle"
        with choosing.advising(report.record, setup):
            found = saved.fetch(report.record, setup, unpacked, progress, planned.known, workspace=workspace)
        checkpoint, repairs = _repaired(found.checkpoint, scratch)
        checkpoint = taking_over.with_ledger(checkpoint, planned.entries)
        checkpoint, decisions = taking_over.decide(checkpoint, planned, resolve)
        if claim or gate.EFFECTS not in passed:
            gate.refuse_undecided(checkpoint)
        report = judging.opened(report, checkpoint, unpacked, repairs).model_copy(
            update={
                "opened_by": found.opened_by,
                "break_glass": found.break_glass,
                "decisions": decisions,
                "migrations": found.steps,
            }
        )
        report = report.model_copy(update={"accepted": _accepted(report, accept)})
        report = _audited(report, setup, planned.new, into)
        progress.stage("write", None)
        lay_out: handover.LayOut = partial(_workspace, unpacked, setup=setup, repository=repository)
        if found.workspace and not workspace:
            lay_out = _left_out
        taking = taking_over.Taking(planned, setup, checkpoint, now) if claim else None
        report = handover.write(
            checkpoint,
            found.checkpoint.transcript,
            report,
            unpacked,
            into,
            scratch,
            replaced,
            taking,
            lay_out,
        )
    if taking is not None:
        report = report.model_copy(update={"warnings": (*report.warnings, *taking.warnings)})
    bundle = report.record.bundle
    telemetry.restored(time.monotonic() - began, bundle.unpacked if bundle is not None else 0)
    return Restored(_in_folder(checkpoint, into), report, into, planned, setup)


@contextmanager
def _noted(report: Report, setup: Setup) -> Iterator[None]:
    """Write down that a restore was refused because of the world; the refusal stands if that fails too."""
    try:
        yield
    except StaleCheckpointError:
        with suppress(ArchiverError):
            detail = {"blockers": len(report.blockers)}
            said = audit.note(setup, "refuse", run=report.run, seq=report.seq, detail=detail)
            setup.session.warnings.extend(said)
        raise


def _not_sure(resolve: Mapping[str, Outcome], undecided: Collection[str]) -> Iterator[str]:
    """What a plan cannot tell of decisions, because the bundle has to be opened for it."""
    for name in resolve:
        if name not in undecided:
            yield f"whether effect {gate.told([name])} is to be decided on is known once the bundle is open"


def _accepted(report: Report, accept: Collection[str]) -> tuple[str, ...]:
    """What the caller accepted and stood against it; effects also where the open bundle alone names them."""
    stood = {*report.accepted, gate.EFFECTS} if report.undecided else {*report.accepted}
    return tuple(sorted(stood.intersection(accept)))


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

    # To look is not to go on: for a part of `show` or `drill` nobody has accepted anything.
    accepted = report.accepted if not setup.session.within else ()
    said = note("accept", probes=list(accepted)) if accepted else ()
    if decided:
        said += note("resolve", effects={one.effect: one.outcome for one in decided})
    said += note("restore", into=str(into))
    return report.model_copy(update={"warnings": (*report.warnings, *said)})


def _left_out(_folder: Path) -> tuple[str, ...]:
    return (_LEFT_OUT,)


def _workspace(unpacked: Path, folder: Path, setup: Setup, repository: Path | None) -> tuple[str, ...]:
    """Make the workspace that was saved, if one was; what somebody who goes on in it has to know."""
    from archiver.workspace_out import lay_out  # most bundles hold none

    try:
        laid = lay_out(unpacked, folder, entries=setup.settings.workspace.entries, repository=repository)
    except ArchiverError as error:
        error.remedy = f"{error.remedy}; {_ALL_ELSE}" if error.remedy else _ALL_ELSE
        raise
    if laid is None:
        return ()
    said = tuple(f"workspace: {note}" for note in laid.notes)
    if laid.redacted:
        named = ", ".join(map(one_line, laid.redacted))
        said += (f"workspace: placeholders stand where credentials were, in {named}: put them back by hand",)
    return said


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
