"""The order in which two checkpoints are compared, and which field of a checkpoint is told of where."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from archiver.comparing import state
from archiver.comparing.conversation import transcripts
from archiver.comparing.tree import Tree, files
from archiver.model import Checkpoint, Sizes
from archiver.model.base import Utc
from archiver.model.checkpoint import Outcome
from archiver.model.difference import Difference, FileChanges, FindingChange, Point

COVERED: Final[Mapping[str, str]] = {
    **dict.fromkeys(state.FIELDS, "fields"),
    "spend": "spend",
    "plan": "plan",
    "results": "results",
    "evidence": "evidence",
    "effects": "effects",
    "transcript": "transcript",
    "artifacts": "artifacts",
    "workspace": "environment",
    "environment": "environment",
}
"""Fields of a checkpoint, and the part of the difference that tells of them."""
NOT_COMPARED: Final[Mapping[str, str]] = {
    "schema_version": "both are read in the newest version, whatever they were saved in",
    "run_id": "both are of one run",
    "checkpoint_at": "no two checkpoints have the same; it stands at the head of the difference",
    "full_transcript": "it holds what the transcript does, only longer, and whether it is kept is a setting",
}
"""Fields that are not, and why."""


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two: the checkpoint, what its record says beside it, and its workspace if it carries one."""

    seq: int
    recorded_at: Utc
    checkpoint: Checkpoint
    findings: Mapping[str, int]
    sizes: Sizes
    tree: Tree | None = None

    @property
    def point(self) -> Point:
        """How the difference names it."""
        outcome: Outcome = self.checkpoint.outcome
        return Point(
            seq=self.seq,
            checkpoint_at=self.checkpoint.checkpoint_at,
            recorded_at=self.recorded_at,
            outcome=outcome,
            sizes=self.sizes,
        )


def compare(before: Side, after: Side) -> Difference:
    """What is another in the later of two checkpoints of one run.

    Raises `ArchiveFormatError` for a tree of files that does not have its form.
    """
    old, new = before.checkpoint, after.checkpoint
    changes, unknown = _files(before.tree, after.tree)
    return Difference(
        run=new.run_id,
        before=before.point,
        after=after.point,
        fields=state.fields(old, new),
        plan=_unless_empty(state.plan(old.plan, new.plan)),
        effects=_unless_empty(state.effects(old.effects, new.effects)),
        evidence=_unless_empty(state.evidence(old.evidence, new.evidence)),
        results=_unless_empty(state.results(old.results, new.results)),
        spend=state.spend(old.spend, new.spend),
        transcript=transcripts(old.transcript, new.transcript),
        artifacts=_unless_empty(state.artifacts(old.artifacts, new.artifacts)),
        files=changes,
        files_unknown=unknown,
        findings=_findings(before.findings, after.findings),
        environment=state.environment(old, new),
    )


def _unless_empty(changes: Any) -> Any:
    """The changes, or None where there are none."""
    return changes if any(changes.model_dump().values()) else None


def _files(before: Tree | None, after: Tree | None) -> tuple[FileChanges | None, str | None]:
    if before is not None and after is not None:
        return files(before, after), None
    if before is None and after is None:
        return None, None
    which = "earlier" if before is None else "later"
    return None, f"the {which} checkpoint carries no workspace"


def _findings(before: Mapping[str, int], after: Mapping[str, int]) -> tuple[FindingChange, ...]:
    rules = sorted({*before, *after})
    pairs = ((rule, before.get(rule, 0), after.get(rule, 0)) for rule in rules)
    return tuple(FindingChange(rule=rule, before=old, after=new) for rule, old, new in pairs if old != new)
