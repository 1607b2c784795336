"""The record that commits a checkpoint: what `list` and `restore --plan` need, bounded."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import TYPE_CHECKING

from archiver import retention
from archiver.model.checkpoint import Checkpoint
from archiver.model.receipt import Receipt
from archiver.model.record import BundleRef, EffectCounts, PlanCounts, Record, Sizes, SourceRef
from archiver.redact import contains_placeholder
from archiver.safetext import shorten

if TYPE_CHECKING:
    from archiver.position import Position
    from archiver.setup import Setup

MAX_TEXT = 500
"""Characters of objective, phase and note in a record; the bundle holds the whole of them."""
MAX_LISTED = 50
"""Pending approvals and undecided effects that a record lists."""


def record_of(
    checkpoint: Checkpoint,
    place: Position,
    setup: Setup,
    *,
    bundle: BundleRef,
    sizes: Sizes,
    receipt: Receipt,
    recipients: tuple[str, ...],
    missing: tuple[str, ...] = (),
    recorded_at: datetime,
    software: str,
    source: SourceRef | None = None,
) -> Record:
    """The record for a redacted checkpoint whose bundle is sealed to `recipients`, not to those `missing`."""
    findings: Counter[str] = Counter()
    for finding in receipt.findings:
        findings[finding.rule] += finding.count
    return Record(
        store=setup.require_store_id(),
        run=checkpoint.run_id,
        task=checkpoint.task_id,
        user=checkpoint.user_id,
        seq=place.seq,
        schema_version=checkpoint.schema_version,
        min_reader=checkpoint.schema_version,
        created_at=checkpoint.created_at,
        checkpoint_at=checkpoint.checkpoint_at,
        recorded_at=recorded_at,
        outcome=checkpoint.outcome,
        retention=retention.class_of(checkpoint.outcome),
        objective=shorten(checkpoint.objective, MAX_TEXT),
        phase=shorten(checkpoint.phase, MAX_TEXT),
        note=shorten(checkpoint.note, MAX_TEXT),
        iteration=checkpoint.iteration,
        turn=checkpoint.turn,
        spend=checkpoint.spend,
        budget=checkpoint.budget,
        plan=PlanCounts(
            completed=len(checkpoint.plan.completed),
            remaining=len(checkpoint.plan.remaining),
            pending_approvals=checkpoint.plan.pending_approvals[:MAX_LISTED],
        ),
        effects=effect_counts(checkpoint),
        dialect=checkpoint.transcript.dialect,
        probes=checkpoint.environment.probes,
        findings=dict(findings),
        left_out=len(receipt.left_out),
        cut=len(receipt.cut),
        sizes=sizes,
        writer=setup.require_signing_key().public,
        recipients=recipients,
        missing_recipients=missing,
        bundle=bundle,
        source=source,
        previous=place.previous,
        software=software,
    )


def effect_counts(checkpoint: Checkpoint) -> EffectCounts:
    """Effects by status, and the unreplayable ones of which nobody knows whether they happened.

    One whose arguments hold a placeholder cannot be done again, whatever it was before it was redacted.
    """
    counts = Counter(effect.status for effect in checkpoint.effects)
    undecided = [
        effect.key
        for effect in checkpoint.effects
        if effect.status in ("in_progress", "uncertain")
        and (not effect.replayable or contains_placeholder(effect.arguments))
    ]
    return EffectCounts(
        proposed=counts["proposed"],
        in_progress=counts["in_progress"],
        confirmed=counts["confirmed"],
        uncertain=counts["uncertain"],
        undecided=tuple(undecided[:MAX_LISTED]),
    )
