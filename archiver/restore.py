"""Restore a run: records → verify → choose → judge → get, open, unpack → migrate → repair → hand over.

This file and `archive.py` alone know the order of the stages.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from archiver import bundles, choosing, gate, handover, judging, members, rotation, saved, withheld
from archiver.errors import (
    ArchiveFormatError,
    NeedsDecisionError,
    StaleCheckpointError,
)
from archiver.model import Checkpoint, Transcript
from archiver.model.report import Repaired
from archiver.model.report import RestoreReport as Report
from archiver.progress import Progress, Silent
from archiver.repair import RepairReport, repair

if TYPE_CHECKING:
    from archiver.scratch import Scratch
    from archiver.setup import Setup


@dataclass(frozen=True, slots=True)
class Restored:
    """A checkpoint that was verified, migrated and repaired, and the folder it was handed over in."""

    checkpoint: Checkpoint
    report: Report
    folder: Path


def plan(
    run: str,
    setup: Setup,
    *,
    at: int | None = None,
    previous: bool = False,
    accept: Collection[str] = (),
    network: bool = False,
    now: datetime | None = None,
) -> Report:
    """What a restore would do and whether anything stands against it, from records alone.

    `previous` takes the newest whole checkpoint before the newest. Raises what `choosing.find`
    raises; a stale world is not an error here but a blocker of the report.
    """
    now = now or datetime.now(UTC)
    found = choosing.find(run, setup, at=at, previous=previous, accept=accept, now=now)
    chain, record, standing = found.chain, found.record, found.standing
    saved.demand_supported(record)
    with choosing.advising(record, setup):
        bundles.check_present(record, setup)
    return judging.judge(chain, record, setup, standing=standing, accept=accept, network=network, now=now)


def restore(
    run: str,
    setup: Setup,
    *,
    into: Path,
    at: int | None = None,
    previous: bool = False,
    accept: Collection[str] = (),
    progress: Progress | None = None,
    now: datetime | None = None,
) -> Restored:
    """Hand a checkpoint over in the new folder `into`; nothing appears there unless everything holds.

    Raises `StaleCheckpointError` or `NeedsDecisionError` for a blocker that was not accepted,
    `BundleMissingError`, `DigestMismatchError` and whatever a stage finds wrong.
    """
    handover.check_target(into)
    progress = progress or Silent()
    report = plan(run, setup, at=at, previous=previous, accept=accept, network=True, now=now)
    _refuse(report)
    with handover.target(into) as scratch:
        unpacked = scratch.path / "bundle"
        with choosing.advising(report.record, setup):
            found = saved.fetch(report.record, setup, unpacked, progress)
        original = found.checkpoint
        checkpoint, repairs = _repaired(original, scratch)
        checkpoint = withheld.check_replay(checkpoint, accepted=gate.EFFECTS in accept)
        if checkpoint.effects != original.effects:
            (unpacked / members.EFFECTS).write_bytes(members.effect_lines(checkpoint))
        receipt = members.receipt_in(unpacked)
        report = report.model_copy(
            update={
                "migrations": found.steps,
                "repairs": tuple(
                    Repaired(part=r.part, item=r.item, code=r.code, action=r.action, detail=r.detail)
                    for r in repairs.actions
                ),
                "warnings": (*report.warnings, *_left(repairs)),
                "redacted": withheld.places(checkpoint),
                "left_out": tuple(f"{left.member}: {left.reason}" for left in receipt.left_out),
                "rotate": tuple(rotation.lines(receipt.findings)),
            }
        )
        progress.stage("write", None)
        report = handover.write(checkpoint, original.transcript, report, unpacked, into, scratch)
    return Restored(_in_folder(checkpoint, into), report, into)


def _left(repairs: RepairReport) -> Iterator[str]:
    """What is wrong with the transcript and was not mended; approvals that wait are told of already."""
    for found in repairs.left:
        if found.code != "unanswered_call":
            yield f"{found.part}, item {found.item}: {found.code}: {found.detail}"


def _refuse(report: Report) -> None:
    if not report.blockers:
        return
    kind = NeedsDecisionError if report.exit_code == NeedsDecisionError.exit_code else StaleCheckpointError
    accepts = " ".join(f"--accept {shlex.quote(blocker.accept)}" for blocker in report.blockers)
    raise kind(
        f"checkpoint {report.seq} of run {report.run} is not handed over: "
        + "; ".join(blocker.reason for blocker in report.blockers),
        remedy=f"see `archiver restore {shlex.quote(report.run)} --plan`; to go on all the same: {accepts}",
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


__all__ = ["Report", "Restored", "Transcript", "plan", "restore"]
