"""The report: whether the world still matches, what stands against a restore, what the open bundle tells."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING

from archiver import choosing, freshness, gate, members, rotation, telemetry, withheld
from archiver.catalog import Chain
from archiver.describe import apart
from archiver.errors import NeedsDecisionError, StaleCheckpointError
from archiver.model import Checkpoint, Record
from archiver.model.report import Blocker, ProbeVerdict, Repaired, RestoreReport
from archiver.rollback import ROLLBACK, Standing
from archiver.setup.remote import store_options
from archiver.shellwords import command, word

if TYPE_CHECKING:
    from pathlib import Path

    from archiver.config.settings import FreshnessSettings
    from archiver.redact import Redactor
    from archiver.repair import RepairReport
    from archiver.setup import Setup


_ACCEPTING = re.compile(r"(; )?`--accept [a-z0-9_]+` goes on[^;]*")
"""What a remedy says of going on without."""


def judge(
    chain: Chain,
    record: Record,
    setup: Setup,
    *,
    standing: Standing = Standing(),  # noqa: B008 - frozen and without state
    accept: Collection[str] = (),
    decided: Collection[str] = (),
    begun: Collection[str] = (),
    network: bool = False,
    current: freshness.Current | None = None,
    now: datetime,
) -> RestoreReport:
    """What is known of the checkpoint before its bundle is opened.

    `decided` are the names of effects that somebody has decided on, `begun` the keys of those that the ledger
    has besides; `network` lets probes ask the hosts that
    the settings list; `current` is what the run is going to go on with, else what the settings say.
    """
    context = _world(record, setup, network, current, now)
    fresh = freshness.judge_all(
        {**record.probes, **freshness.stated(context)},
        context,
        [name for name in accept if name not in (gate.EFFECTS, ROLLBACK)],
        policy=setup.settings.freshness.policy,
    )
    verdicts = tuple(_row(verdict) for verdict in fresh.verdicts if verdict.recorded)
    missing = tuple(verdict.probe for verdict in fresh.verdicts if not verdict.recorded)
    blockers = [
        Blocker(
            accept=v.probe,
            reason=f"{v.probe} is {v.state}: {v.evidence}",
            remedy=v.remedy,
            exit_code=7 if v.probe in fresh.asks else 3,
        )
        for v in fresh.verdicts
        if v.probe in fresh.blockers
    ]
    blockers += gate.blockers(record, accepted=gate.EFFECTS in accept, decided=decided, begun=begun)
    overruled = [v.probe for v in fresh.verdicts if v.accepted and _stood(v, setup.settings.freshness.policy)]
    if any(gate.blockers(record, accepted=False, decided=decided, begun=begun)):
        overruled.append(gate.EFFECTS)
    if standing.missing:
        overruled.append(ROLLBACK)
    lost = choosing.lost(chain, record, setup)
    return RestoreReport(
        run=chain.run,
        seq=record.seq,
        newest=chain.newest,
        record=record,
        writer=chain.links[record.seq - 1].writer,
        rollback=standing.rollback,
        witness=standing.text,
        lost=(*lost, standing.missing) if standing.missing else lost,
        freshness=verdicts,
        not_recorded=missing,
        blockers=tuple(blockers),
        warnings=(
            *standing.warnings,
            *_of_probes(verdicts, missing, fresh.warnings),
            *_warnings(chain, record, lost),
        ),
        accepted=tuple(sorted(set(overruled).intersection(accept))),
        findings=record.findings,
        replaced_before=rotation.replaced_before([link.record for link in chain.links], record),
    )


def _stood(verdict: freshness.Verdict, policy: freshness.Policy) -> bool:
    """Whether there was anything to accept; what nobody captured is certain of nothing in any restore."""
    if verdict.recorded:
        return verdict.state != "FRESH"
    return policy.action(verdict.model_copy(update={"accepted": False})) != "warn"


def _world(
    record: Record, setup: Setup, network: bool, current: freshness.Current | None, now: datetime
) -> freshness.Context:
    settings = setup.settings.freshness
    return freshness.Context(
        now=now,
        checkpoint_at=record.checkpoint_at,
        workspace=freshness.workspace_of(record.probes),
        apart=apart(setup),
        max_age=settings.max_age,
        timeout=settings.timeout.total_seconds(),
        network=network,
        hosts=settings.hosts,
        aws=store_options(setup.settings).aws,
        environ=dict(os.environ),
        current=current or _current(settings),
        budget=record.budget,
        spend=record.spend,
        pending=record.plan.pending_approvals,
        redact=_redacting(setup),
    )


def _redacting(setup: Setup) -> Callable[[str], str]:
    """Redaction for what is compared with redacted text; its rules are loaded when the first text comes."""

    @cache
    def redactor() -> Redactor:
        from archiver.redact import new_key

        return setup.redactor(new_key())

    return lambda text: redactor().text(text)


def _current(settings: FreshnessSettings) -> freshness.Current:
    return freshness.Current(
        harness=settings.harness,
        model=settings.model,
        prompt=settings.prompt_file,
        tools=settings.tools_file,
    )


def _row(verdict: freshness.Verdict) -> ProbeVerdict:
    """The verdict for the report; one that was accepted needs no advice to accept it."""
    row = ProbeVerdict(**verdict.model_dump(include=set(ProbeVerdict.model_fields)))
    if not row.accepted or row.remedy is None:
        return row
    return row.model_copy(update={"remedy": _ACCEPTING.sub("", row.remedy) or None})


def _of_probes(
    verdicts: tuple[ProbeVerdict, ...], missing: tuple[str, ...], warned: tuple[str, ...]
) -> Iterator[str]:
    """What does not stop the restore and is not certain either; what nobody captured is one line."""
    for verdict in verdicts:
        if verdict.probe in warned and not verdict.accepted:
            yield f"{verdict.probe} is {verdict.state}: {verdict.evidence}"
    if missing:
        yield f"not recorded when the checkpoint was saved: {', '.join(missing)}"


def _warnings(chain: Chain, record: Record, lost: tuple[str, ...]) -> tuple[str, ...]:
    warnings = list(chain.warnings)
    if lost:
        warnings.append(
            f"this is checkpoint {record.seq} of {chain.newest}; what came after it is not restored"
        )
    if record.left_out:
        warnings.append(f"members that could not be made safe and were left out: {record.left_out}")
    if record.cut:
        warnings.append(f"limits had no room for {record.cut} of its outputs and files, not here whole")
    return tuple(warnings)


def refuse(report: RestoreReport, but: str) -> None:
    """Raise for what stands against the restore, `but` that of this word alone; the error has it as data."""
    if not any(blocker.accept != but for blocker in report.blockers):
        return
    kind = NeedsDecisionError if report.exit_code == NeedsDecisionError.exit_code else StaleCheckpointError
    accepts = " ".join(
        f"--accept {word(blocker.accept)}" for blocker in report.blockers if blocker.accept != gate.EFFECTS
    )
    go_on = f"; to go on all the same: {accepts}" if accepts else ""
    decide = next((f"{one.remedy}; " for one in report.blockers if one.accept == gate.EFFECTS), "")
    at = (f"--at {report.seq}",) if report.seq != report.newest else ()
    look = f"`{command('archiver restore', report.run, ('--plan', *at, *report.flags))}`"
    error = kind(
        f"checkpoint {report.seq} of run {report.run} is not handed over: "
        + "; ".join(blocker.reason for blocker in report.blockers),
        remedy=f"{decide}see {look}{go_on}",
    )
    error.details = {
        "run": report.run,
        "seq": report.seq,
        "blockers": [blocker.document() for blocker in report.blockers],
    }
    if kind is StaleCheckpointError:
        telemetry.stale()
    raise error


def opened(
    report: RestoreReport, checkpoint: Checkpoint, unpacked: Path, repairs: RepairReport
) -> RestoreReport:
    """The report with what only the opened bundle tells, and what was mended in it."""
    receipt = members.receipt_in(unpacked)
    return report.model_copy(
        update={
            "undecided": gate.open_effects(checkpoint),
            "redacted": withheld.places(checkpoint),
            "left_out": (
                *(f"{left.member}: {left.reason}" for left in receipt.left_out),
                *(cut.said for cut in receipt.cut),
            ),
            "rotate": tuple(rotation.lines(receipt.findings)),
            "repairs": tuple(_repairs(repairs)),
            "warnings": (*report.warnings, *_left(repairs)),
        }
    )


def _repairs(repairs: RepairReport) -> Iterator[Repaired]:
    for one in repairs.actions:
        yield Repaired(part=one.part, item=one.item, code=one.code, action=one.action, detail=one.detail)


def _left(repairs: RepairReport) -> Iterator[str]:
    """What is wrong with the transcript and was not mended; approvals that wait are told of already."""
    for found in repairs.left:
        if found.code != "unanswered_call":
            yield f"{found.part}, item {found.item}: {found.code}: {found.detail}"
