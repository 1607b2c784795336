"""The state of a run at one boundary: schema version 2."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field

from archiver.model.base import Frozen, JsonValue, Utc
from archiver.model.items import Items

SCHEMA_VERSION: Final = 2

MAX_PARTS: Final = 10_000
"""Native files of one transcript."""

Outcome = Literal["running", "succeeded", "failed", "cancelled", "crashed"]
"""How a run stands; `crashed` is one that ended without a word, as others found out later."""
EffectStatus = Literal["proposed", "in_progress", "confirmed", "uncertain"]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Count = Annotated[int, Field(ge=0, le=2**63 - 1)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Spend(Frozen):
    """What the run has used so far: tokens, money, wall-clock seconds, iterations."""

    tokens_in: Count = 0
    tokens_out: Count = 0
    tokens_cached: Count = 0
    cost: Amount = 0.0
    currency: Annotated[str, Field(pattern=r"^[A-Z]{3}$")] = "USD"
    seconds: Amount = 0.0
    iterations: Count = 0


class Budget(Frozen):
    """What the run may use in all; a missing limit is no limit."""

    tokens: Count | None = None
    cost: Amount | None = None
    currency: Annotated[str, Field(pattern=r"^[A-Z]{3}$")] = "USD"
    seconds: Amount | None = None
    iterations: Count | None = None


class Step(Frozen):
    """One step of the plan."""

    id: str
    title: str
    detail: str = ""


class Approval(Frozen):
    """Something a person has been asked to allow and has not answered yet."""

    id: str
    question: str
    asked_at: Utc | None = None
    call_id: str | None = None


class Plan(Frozen):
    """What is done, what is left, and what waits for a person."""

    completed: tuple[Step, ...] = ()
    remaining: tuple[Step, ...] = ()
    pending_approvals: tuple[Approval, ...] = ()


class SubtaskResult(Frozen):
    """The outcome of one completed sub-task, so that it is not done again."""

    key: str
    output: JsonValue = None
    files: tuple[str, ...] = ()
    records: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()
    completed_at: Utc | None = None


class Artifact(Frozen):
    """A large output kept once by digest as a member of the bundle, with size, head, tail and summary."""

    sha256: Digest
    size: Count
    media_type: str = "text/plain"
    summary: str = ""
    head: str = ""
    tail: str = ""


class Evidence(Frozen):
    """What proved a state good."""

    command: str
    exit_status: int | None = None
    at: Utc | None = None
    summary: str = ""
    output: Digest | None = None


class Effect(Frozen):
    """One external side effect and what is known of it."""

    key: str
    tool: str
    arguments: JsonValue = None
    result: JsonValue = None
    status: EffectStatus = "proposed"
    replayable: bool = False
    at: Utc | None = None


class TranscriptPart(Frozen):
    """One native file of a transcript.

    `media`: `jsonl` one item a line; `json` one document, whose items array sits at `items_at` inside
    `header`; `raw` anything else, kept as chunks. In a bundle the items lie in `segments` (member paths, in
    order) and `items` is absent. `nested_at` is set where the lines, or the elements of that array, hold a
    conversation each: then an item that is an array holds one of them, and the items behind it are its
    messages, which belong into its empty array at `nested_at`.
    """

    name: str
    media: Literal["jsonl", "json", "raw"] = "jsonl"
    header: JsonValue = None
    items_at: tuple[str | int, ...] = ()
    nested_at: tuple[str | int, ...] = ()
    items: Items = Items.of(())
    segments: tuple[str, ...] = ()


class Transcript(Frozen):
    """The conversation in its provider's own item format; the first part is the main conversation."""

    dialect: str = "opaque"
    parts: Annotated[tuple[TranscriptPart, ...], Field(max_length=MAX_PARTS)] = ()


class GitState(Frozen):
    """The commit a workspace stood at."""

    commit: str | None = None
    branch: str | None = None
    dirty: bool | None = None


class Workspace(Frozen):
    """Where the run worked."""

    path: str | None = None
    git: GitState | None = None


class Environment(Frozen):
    """What the run ran in; `probes` holds what each freshness probe captured, by probe name."""

    harness: str | None = None
    model: str | None = None
    platform: str | None = None
    python: str | None = None
    probes: dict[str, JsonValue] = Field(default_factory=dict)


class Checkpoint(Frozen):
    """The smallest sufficient state of a run at one boundary."""

    schema_version: Literal[2] = SCHEMA_VERSION
    run_id: Annotated[str, Field(min_length=1, max_length=200)]
    task_id: Annotated[str, Field(min_length=1, max_length=200)]
    user_id: str | None = None
    objective: str = ""
    iteration: Count = 0
    turn: Count = 0
    phase: str = ""
    outcome: Outcome = "running"
    note: str = ""
    created_at: Utc
    checkpoint_at: Utc
    spend: Spend = Spend()
    budget: Budget | None = None
    plan: Plan = Plan()
    results: tuple[SubtaskResult, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    effects: tuple[Effect, ...] = ()
    summary: str = ""
    transcript: Transcript = Transcript()
    full_transcript: Transcript | None = None
    """The redacted transcript before compaction, where it was asked to be kept."""
    artifacts: tuple[Artifact, ...] = ()
    workspace: Workspace = Workspace()
    environment: Environment = Environment()
