"""The words of the product as frozen pydantic models."""

from archiver.model.base import Frozen, JsonValue, Utc, utc_text
from archiver.model.checkpoint import (
    SCHEMA_VERSION,
    Approval,
    Artifact,
    Budget,
    Checkpoint,
    Effect,
    Environment,
    Evidence,
    GitState,
    Outcome,
    Plan,
    Spend,
    Step,
    SubtaskResult,
    Transcript,
    TranscriptPart,
    Workspace,
)
from archiver.model.items import Items
from archiver.model.member import Member
from archiver.model.note import Note, Rekeyed
from archiver.model.receipt import Finding, LeftOut, Receipt, RuleFile
from archiver.model.record import (
    RECORD_FORMAT,
    BundleRef,
    EffectCounts,
    PlanCounts,
    Record,
    RetentionClass,
    Sizes,
)

__all__ = [
    "RECORD_FORMAT",
    "SCHEMA_VERSION",
    "Approval",
    "Artifact",
    "Budget",
    "BundleRef",
    "Checkpoint",
    "Effect",
    "EffectCounts",
    "Environment",
    "Evidence",
    "Finding",
    "Frozen",
    "GitState",
    "Items",
    "JsonValue",
    "LeftOut",
    "Member",
    "Note",
    "Outcome",
    "Plan",
    "PlanCounts",
    "Receipt",
    "Record",
    "Rekeyed",
    "RetentionClass",
    "RuleFile",
    "Sizes",
    "Spend",
    "Step",
    "SubtaskResult",
    "Transcript",
    "TranscriptPart",
    "Utc",
    "Workspace",
    "utc_text",
]
