"""The checkpoint that a bundle holds: opened, migrated on a copy, validated, and what its record says."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from archiver import bundles, members
from archiver.errors import (
    ArchiveFormatError,
    ContextMismatchError,
    DigestMismatchError,
    InvalidDocumentError,
    NotSerialisableError,
    UnsupportedSchemaError,
)
from archiver.migrate import migrate, version_of
from archiver.model import SCHEMA_VERSION, Checkpoint, Record
from archiver.model.workspace import WORKSPACE
from archiver.progress import Progress
from archiver.record_of import effect_counts

if TYPE_CHECKING:
    from archiver.model.manifest import Manifest
    from archiver.setup import Setup


@dataclass(frozen=True, slots=True)
class Saved:
    """A checkpoint in the current schema, the document as it was saved, and the steps between the two."""

    checkpoint: Checkpoint
    document: dict[str, Any]
    steps: tuple[str, ...]
    opened_by: str
    """Fingerprint of the identity that opened the bundle."""
    break_glass: bool
    """Whether that is one for emergencies only."""
    workspace: bool
    """Whether the bundle holds a workspace, fetched or not."""


def demand_supported(record: Record) -> None:
    """`UnsupportedSchemaError` if this release is too old for the bundle that the record commits."""
    if max(record.min_reader, record.schema_version) > SCHEMA_VERSION:
        raise UnsupportedSchemaError(
            f"checkpoint {record.seq} of run {record.run} has schema version {record.schema_version}; "
            f"this release reads up to {SCHEMA_VERSION}",
            remedy="install a checkpoint-archiver release that reads schema version "
            f"{max(record.min_reader, record.schema_version)}",
        )


def fetch(
    record: Record,
    setup: Setup,
    unpacked: Path,
    progress: Progress,
    known: Iterable[Record],
    *,
    workspace: bool = True,
) -> Saved:
    """Unpack the bundle into the new folder `unpacked` and read its checkpoint, whose items lie there.

    `known` are verified records of the run, among them those of the bases of the bundle. Without `workspace`
    nothing is read of the folder that was saved with it.

    Raises what `bundles.fetch` does, `ArchiveFormatError` for a document that is not valid, and
    `ContextMismatchError` or `DigestMismatchError` where it is not what the record says.
    """
    demand_supported(record)
    choose = None if workspace else _without_workspace
    fetched = bundles.unpack(record, setup, unpacked, progress, known, choose=choose)
    document = members.document_in(unpacked)
    migrated, steps = _migrated(document, record)
    checkpoint = members.with_items(_validated(migrated, record), unpacked, fetched.manifest)
    _demand_agreement(checkpoint, record)
    held = any(member.path == WORKSPACE for member in fetched.manifest.members)
    return Saved(checkpoint, document, steps, fetched.opened_by, fetched.break_glass, held)


def _without_workspace(manifest: Manifest) -> list[str]:
    below = f"{WORKSPACE.partition('/')[0]}/"
    return [member.path for member in manifest.members if not member.path.startswith(below)]


def _migrated(document: dict[str, Any], record: Record) -> tuple[dict[str, Any], tuple[str, ...]]:
    try:
        if version_of(document) != record.schema_version:
            raise ArchiveFormatError(
                f"checkpoint {record.seq} of run {record.run} has another schema than its record"
            )
        return migrate(document)
    except InvalidDocumentError as error:
        raise ArchiveFormatError(f"checkpoint {record.seq} of run {record.run}: {error}") from error


def _validated(document: dict[str, Any], record: Record) -> Checkpoint:
    try:
        checkpoint = Checkpoint.model_validate(document)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise ArchiveFormatError(
            f"checkpoint {record.seq} of run {record.run} is not valid: {place}: {first['msg']}"
        ) from error
    except NotSerialisableError as error:
        raise ArchiveFormatError(
            f"checkpoint {record.seq} of run {record.run} is not valid: {error}"
        ) from error
    if (checkpoint.run_id, checkpoint.task_id) != (record.run, record.task):
        raise DigestMismatchError(f"the bundle of run {record.run} holds a checkpoint of another run or task")
    return checkpoint


def _demand_agreement(checkpoint: Checkpoint, record: Record) -> None:
    """The plan was made from the record: what it says must be what the bundle holds."""
    effects = effect_counts(checkpoint)
    if (checkpoint.outcome, checkpoint.checkpoint_at, effects) != (
        record.outcome,
        record.checkpoint_at,
        record.effects,
    ):
        raise ContextMismatchError(
            f"the record of checkpoint {record.seq} of run {record.run} says something else than its bundle"
        )
