"""What changed between two checkpoints of a run, as `archiver diff` tells it."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field, WithJsonSchema

from archiver.model.base import Frozen, JsonValue, Utc
from archiver.model.checkpoint import (
    Approval,
    Artifact,
    Count,
    Digest,
    EffectStatus,
    Evidence,
    Outcome,
    Step,
)
from archiver.model.record import Sizes

DIFFERENCE_FORMAT: Final = 1
MAX_PATHS: Final = 1000
"""Paths of a workspace that are named; beyond that they are counted."""

FilePath = Annotated[JsonValue, WithJsonSchema({"type": "string"})]
"""A path as the file system has it: bytes that are no UTF-8 stand as lone surrogates."""


class Point(Frozen):
    """One of the two checkpoints."""

    seq: int
    checkpoint_at: Utc
    recorded_at: Utc
    outcome: Outcome
    sizes: Sizes


class Change(Frozen):
    """A field that has another value; null where it has none."""

    name: str
    before: JsonValue = None
    after: JsonValue = None


class PlanChanges(Frozen):
    """Steps by their id, and what people were asked."""

    completed: tuple[Step, ...] = ()
    reopened: tuple[Step, ...] = ()
    """Completed before, and left to do now."""
    added: tuple[Step, ...] = ()
    removed: tuple[Step, ...] = ()
    reworded: tuple[Change, ...] = ()
    """Steps and questions with another text, by id."""
    reordered: bool = False
    """What both have stands in another order."""
    asked: tuple[Approval, ...] = ()
    answered: tuple[Approval, ...] = ()
    """Questions that wait no more."""


class EffectSeen(Frozen):
    """An effect without what it was given and what came of it."""

    key: str
    tool: str
    status: EffectStatus


class EffectChange(Frozen):
    """An effect of which something is said anew."""

    key: str
    tool: str
    before: EffectStatus
    after: EffectStatus
    fields: tuple[str, ...] = ()
    """What else of it is another now."""


class EffectChanges(Frozen):
    """External side effects, by key."""

    new: tuple[EffectSeen, ...] = ()
    changed: tuple[EffectChange, ...] = ()
    gone: tuple[EffectSeen, ...] = ()


class EvidenceChanges(Frozen):
    """What proved a state good."""

    new: tuple[Evidence, ...] = ()
    gone: tuple[Evidence, ...] = ()


class ResultChange(Frozen):
    """A result of which something is another now."""

    key: str
    fields: tuple[str, ...]


class ResultChanges(Frozen):
    """Results of sub-tasks by key, and the files that they name."""

    new: tuple[str, ...] = ()
    changed: tuple[ResultChange, ...] = ()
    gone: tuple[str, ...] = ()
    files_new: tuple[str, ...] = ()
    files_gone: tuple[str, ...] = ()


class SpendChange(Frozen):
    """How much more was used; less than nothing where a run was rewound."""

    tokens_in: int = 0
    tokens_out: int = 0
    tokens_cached: int = 0
    cost: float | None = 0.0
    """None where the two are in different currencies."""
    currency: str
    currency_before: str | None = None
    """Where it was another one."""
    seconds: float = 0.0
    iterations: int = 0


class PartChange(Frozen):
    """One file of the transcript, in messages, or in bytes where its format is not known."""

    name: str
    state: Literal["added", "gone", "continued", "parted"]
    unit: Literal["messages", "bytes"] = "messages"
    before: Count
    after: Count
    added: Count
    """Those that the later one has beyond what both begin with."""
    by_role: dict[str, Count] = Field(default_factory=dict)
    """The added ones, by who speaks."""
    common: Count = 0
    """With how many both begin; where they part if the later one does not continue the earlier one."""
    header: bool = False
    """Whether what stands around the messages, such as a system prompt, is another now."""


class ArtifactChanges(Frozen):
    """Large outputs, by digest."""

    new: tuple[Artifact, ...] = ()
    gone: tuple[Artifact, ...] = ()
    described: tuple[Digest, ...] = ()
    """Those of which something else is said now."""


class FileChanges(Frozen):
    """Files of the workspace that both checkpoints carry."""

    added: Count = 0
    changed: Count = 0
    gone: Count = 0
    paths_added: tuple[FilePath, ...] = ()
    paths_changed: tuple[FilePath, ...] = ()
    paths_gone: tuple[FilePath, ...] = ()
    base_before: str | None = None
    base_after: str | None = None
    """Commits that the files of a git workspace are the difference to: what a commit took in is not told."""
    state: tuple[Change, ...] = ()
    """What else the workspace says of itself: where it lies, branch and commit."""


class FindingChange(Frozen):
    """How often a rule of redaction found something."""

    rule: str
    before: Count
    after: Count


class Difference(Frozen):
    """What is another in the later of two checkpoints; what is null or empty did not change."""

    format: Literal[1] = DIFFERENCE_FORMAT
    run: str
    before: Point
    after: Point
    fields: tuple[Change, ...] = ()
    """Texts and numbers of the state: objective, phase, outcome, note, turn, budget and the like."""
    plan: PlanChanges | None = None
    effects: EffectChanges | None = None
    evidence: EvidenceChanges | None = None
    results: ResultChanges | None = None
    spend: SpendChange | None = None
    transcript: tuple[PartChange, ...] = ()
    artifacts: ArtifactChanges | None = None
    files: FileChanges | None = None
    files_unknown: str | None = None
    """Why files could not be compared, where one of the two carries a workspace and the other does not."""
    findings: tuple[FindingChange, ...] = ()
    environment: tuple[Change, ...] = ()
    """What the run ran in: workspace, versions, and what the probes captured."""

    @property
    def empty(self) -> bool:
        """Whether nothing of the state changed; sizes, numbers and times of saving do not count."""
        said = self.model_dump(exclude={"format", "run", "before", "after"})
        return not any(said.values())


class FolderChange(Frozen):
    """What is otherwise in a folder: `path` below it, absent where it is of the whole, and `what` in words.

    `unknown` is what could not be compared.
    """

    kind: Literal["state", "index", "missing", "extra", "type", "content", "mode", "link", "unknown"]
    path: FilePath = None
    what: str


class FolderDifference(Frozen):
    """The workspace that a checkpoint carries, compared with a folder on disk."""

    format: Literal[1] = DIFFERENCE_FORMAT
    run: str
    seq: int
    checkpoint_at: Utc
    folder: FilePath
    workspace: Literal["folder", "git"]
    """How it was captured."""
    differing: Count = 0
    changes: tuple[FolderChange, ...] = ()
    """The first of these."""
    not_compared: Count = 0
    unknown: tuple[FolderChange, ...] = ()
    """The first of those that could not be compared, which are no change."""

    @property
    def empty(self) -> bool:
        """Whether nothing of what could be compared is another."""
        return not self.differing
