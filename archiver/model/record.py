"""The body of a record: signed, sealed, the commit point, and all that `list` and `restore --plan` need."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Final, Literal

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from archiver.model.base import Frozen, JsonValue, Utc
from archiver.model.checkpoint import Approval, Budget, Count, Digest, Outcome, Spend
from archiver.model.limits import MAX_CHAIN

RECORD_FORMAT: Final = 1

RetentionClass = Literal["live", "intermediate", "success", "failure", "hold", "record"]
Version = Annotated[int, Field(ge=1, le=1_000_000)]
RecordKind = Literal["checkpoint", "claim", "skipped"]


class BundleRef(Frozen):
    """The bundle a record commits, by what does not change when its header is re-keyed."""

    name: str
    payload_sha256: Digest
    payload_length: Count
    manifest_sha256: Digest
    members: Count
    """Members that lie in this bundle, whatever its bases hold."""
    unpacked: Count
    """Bytes of these members together."""
    bases: Annotated[
        tuple[Annotated[int, Field(ge=1, le=99_999_999)], ...], Field(max_length=MAX_CHAIN - 1)
    ] = ()
    """Sequence numbers of the earlier bundles that this one is based on, all of its chain, ascending: the
    first is full, each other is based on the one before it, and this one on the last."""
    frames: tuple[Annotated[int, Field(ge=1)], ...] = ()
    """Sealed into it, compressed: bytes of each frame after the manifest's, where there are two or more."""

    @model_serializer(mode="wrap")
    def _without_what_is_rare(self, as_usual: SerializerFunctionWrapHandler) -> dict[str, JsonValue]:
        document: dict[str, JsonValue] = as_usual(self)
        if not self.frames:
            document.pop("frames", None)
        return document

    @model_validator(mode="after")
    def _bases_ascend(self) -> BundleRef:
        if any(one >= following for one, following in pairwise(self.bases)):
            raise ValueError("the bases of a bundle ascend, each once")
        return self


class Sizes(Frozen):
    """Bytes at each stage of the save."""

    raw: Count = 0
    compacted: Count = 0
    stored: Count = 0


class EffectCounts(Frozen):
    """Effects by status, and the keys a person has to look at before going on."""

    proposed: Count = 0
    in_progress: Count = 0
    confirmed: Count = 0
    uncertain: Count = 0
    undecided: tuple[str, ...] = ()
    """Keys of unreplayable effects whose outcome is not known."""


class PlanCounts(Frozen):
    """How far the plan is, and what waits for a person."""

    completed: Count = 0
    remaining: Count = 0
    pending_approvals: tuple[Approval, ...] = ()


class Decision(Frozen):
    """What a person said of an effect whose outcome was not known, when they took a run over."""

    effect: Annotated[str, Field(min_length=1)]
    """The key of the effect."""
    outcome: Literal["done", "not-done"]
    by: str
    at: Utc
    reason: str = ""


class SourceRef(Frozen):
    """Which finished run on disk a checkpoint was made of, so that the same content is saved once."""

    kind: Annotated[str, Field(pattern=r"^[a-z][a-z-]{0,31}$")]
    """The kind of source, such as `claude-code`."""
    content: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
    """Keyed digest of the files as they were read; only the writer can compute it."""


class Record(Frozen):
    """One link of a run's chain."""

    format: Literal[1] = RECORD_FORMAT
    kind: RecordKind = "checkpoint"
    store: str
    run: str
    task: str
    user: str | None = None
    seq: Annotated[int, Field(ge=1, le=99_999_999)]
    schema_version: Version
    min_reader: Version
    created_at: Utc
    checkpoint_at: Utc
    recorded_at: Utc
    outcome: Outcome
    retention: RetentionClass
    objective: str = ""
    phase: str = ""
    note: str = ""
    iteration: Count = 0
    turn: Count = 0
    spend: Spend = Spend()
    budget: Budget | None = None
    plan: PlanCounts = PlanCounts()
    effects: EffectCounts = EffectCounts()
    dialect: str = "opaque"
    probes: dict[str, JsonValue] = Field(default_factory=dict)
    findings: dict[str, Count] = Field(default_factory=dict)
    """Number of findings by rule."""
    left_out: Count = 0
    cut: Count = 0
    """Outputs that limits had no room for; the receipt in the bundle names them."""
    sizes: Sizes = Sizes()
    writer: str
    """The signing key, `ed25519:` and base64 of the 32-byte public key."""
    recipients: tuple[str, ...]
    """Fingerprints of those the bundle was sealed to; of a claim, this record."""
    missing_recipients: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    """Fingerprints of those that bundle or record should have been sealed to too, while KMS was away."""
    bundle: BundleRef | None = None
    source: SourceRef | None = None
    """Of a checkpoint that was made of a finished run on disk."""
    decisions: tuple[Decision, ...] = ()
    """Of a claim: what a person said of effects whose outcome was not known."""
    previous: Digest | None = None
    """SHA-256 of the body of the record with the number before; null for the first."""
    software: str = ""

    @model_serializer(mode="wrap")
    def _without_what_is_rare(self, as_usual: SerializerFunctionWrapHandler) -> dict[str, JsonValue]:
        """What is rare and absent has one form, that of records made before there was any of it."""
        document: dict[str, JsonValue] = as_usual(self)
        for name in ("cut", "decisions", "missing_recipients", "source"):
            if not getattr(self, name):
                document.pop(name, None)
        return document

    @model_validator(mode="after")
    def _kind_fits(self) -> Record:
        if (self.bundle is None) != (self.kind != "checkpoint"):
            raise ValueError(f"a {self.kind} {'has no' if self.bundle else 'needs a'} bundle")
        if self.decisions and self.kind != "claim":
            raise ValueError("only a claim has decisions")
        if self.bundle is not None and any(not 0 < base < self.seq for base in self.bundle.bases):
            raise ValueError("the bases of a bundle come before it")
        return self
