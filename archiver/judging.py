"""The report of a plan: whether the world still matches, and what stands against a restore."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import TYPE_CHECKING

from archiver import freshness, gate
from archiver.catalog import Chain
from archiver.model import Record
from archiver.model.report import Blocker, ProbeVerdict, RestoreReport

if TYPE_CHECKING:
    from archiver.setup import Setup


def judge(
    chain: Chain,
    record: Record,
    setup: Setup,
    *,
    accept: Collection[str] = (),
    network: bool = False,  # noqa: ARG001 - no probe asks the network yet
    now: datetime,
) -> RestoreReport:
    """What is known of the checkpoint before its bundle is opened; `network` lets probes ask other hosts."""
    context = freshness.Context(
        now=now,
        checkpoint_at=record.checkpoint_at,
        workspace=freshness.workspace_of(record.probes),
        max_age=setup.settings.freshness.max_age,
    )
    fresh = freshness.judge_all(
        record.probes,
        context,
        [name for name in accept if name != gate.EFFECTS],
        policy=setup.settings.freshness.policy,
    )
    verdicts = tuple(ProbeVerdict(**verdict.model_dump()) for verdict in fresh.verdicts)
    blockers = [
        Blocker(accept=v.probe, reason=f"{v.probe} is {v.state}: {v.evidence}", remedy=v.remedy)
        for v in verdicts
        if v.probe in fresh.blockers
    ]
    blockers += gate.blockers(record, accepted=gate.EFFECTS in accept)
    return RestoreReport(
        run=chain.run,
        seq=record.seq,
        newest=chain.newest,
        record=record,
        writer=chain.writer,
        freshness=verdicts,
        blockers=tuple(blockers),
        warnings=_warnings(chain, record, verdicts),
        accepted=tuple(sorted(accept)),
        findings=record.findings,
    )


def _warnings(chain: Chain, record: Record, verdicts: tuple[ProbeVerdict, ...]) -> tuple[str, ...]:
    warnings = [f"{v.probe} is UNKNOWN: {v.evidence}" for v in verdicts if v.state == "UNKNOWN"]
    if record.seq != chain.newest:
        warnings.append(
            f"this is checkpoint {record.seq} of {chain.newest}; what came after it is not restored"
            + ("" if chain.head.record.seq == chain.newest else " and was not looked at")
        )
    warnings += [
        f"approval {approval.id} waits for a person: {approval.question}"
        for approval in record.plan.pending_approvals
    ]
    if record.left_out:
        warnings.append(f"{record.left_out} members were left out because they could not be made safe")
    return tuple(warnings)
