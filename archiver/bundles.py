"""The bundle that a record signed: is it there, and is it what was signed?"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from archiver import age, audit, pack
from archiver.age.header import MAX_HEADER
from archiver.errors import (
    BundleMissingError,
    DigestMismatchError,
    LimitExceededError,
    NoSuchRunError,
    ObjectNotFoundError,
    RecordError,
)
from archiver.gone import Gone, fits
from archiver.model.record import BundleRef, Record
from archiver.progress import Progress
from archiver.signed import Seal, seal_of
from archiver.store import ObjectStore, Remote

if TYPE_CHECKING:
    from archiver.model.manifest import Manifest
    from archiver.setup import Setup


def check_present(record: Record, setup: Setup) -> None:
    """Raise an error if the bundle is not there: `DigestMismatchError` for a wrong size.

    For one that is gone `RunErasedError` or `BundleRemovedError` where an administrator signed that,
    `BundleExpiredError` where it may be by its class, else `BundleMissingError`.
    """
    bundle = _of(record)
    try:
        info = setup.store.head(bundle.name)
    except ObjectNotFoundError as error:
        raise _gone(record, setup) from error
    check_size(record, info.size)


def check_size(record: Record, size: int) -> None:
    """Raise `DigestMismatchError` if an object of that many bytes cannot be the bundle."""
    bundle = _of(record)
    if not fits(bundle, size):
        raise _other(record, bundle)


def seal(record: Record, setup: Setup) -> Seal:
    """Whom the bundle is sealed to, from its header alone; raises as `fetch` does if that does not open."""
    bundle = _of(record)
    try:
        with setup.store.open(bundle.name) as source:
            return seal_of(source, _identities(record, setup), bundle.name, bundle.payload_sha256)
    except ObjectNotFoundError as error:
        raise _gone(record, setup) from error


@dataclass(frozen=True, slots=True)
class Fetched:
    """What was unpacked, and the fingerprint of the identity that opened it."""

    manifest: Manifest
    opened_by: str
    break_glass: bool


def fetch(record: Record, setup: Setup, into: Path, progress: Progress) -> Manifest:
    """The manifest of what `unpack` unpacks."""
    return unpack(record, setup, into, progress).manifest


def unpack(record: Record, setup: Setup, into: Path, progress: Progress) -> Fetched:
    """Unpack the bundle into the new private folder `into`, and prove that it is the one the record signed.

    The digest of the sealed payload is compared first: nothing of a bundle that nobody signed is opened, let
    alone unpacked. From a store over a network it is first copied beside `into`, in a folder that must be
    private. Before anything is unpacked the audit line is written. Raises `AuditError` where it cannot be,
    `BundleMissingError`, `DigestMismatchError` and what opening and unpacking raise.
    """
    bundle = _of(record)
    into.mkdir(mode=0o700)
    store = setup.store
    try:
        if isinstance(store, Remote):
            fetched = _by_copy(record, bundle, setup, store, into, progress)
        else:
            fetched = _in_place(record, bundle, setup, store, into, progress)
    except ObjectNotFoundError as error:
        raise _gone(record, setup) from error
    if _said(record, bundle) != _held(fetched.manifest):
        raise DigestMismatchError(f"{bundle.name} holds another manifest than its record signed")
    return fetched


def _unpacked(opened: age.Unsealer, record: Record, setup: Setup, into: Path, progress: Progress) -> Fetched:
    """Nothing of a bundle appears before it is written down who opened it."""
    opened.demand_context(record.run, record.task, "bundle")
    by, loud = opened.opened_by, audit.is_break_glass(setup, opened.opened_by)
    setup.session.tasks[record.run] = record.task
    audit.note(setup, "open", run=record.run, seq=record.seq, opened_by=by, break_glass=loud)
    return Fetched(pack.unpack(opened, into, limits=setup.settings.limits, progress=progress), by, loud)


def _by_copy(
    record: Record, bundle: BundleRef, setup: Setup, store: Remote, into: Path, progress: Progress
) -> Fetched:
    """Fetch once. The copy is private, so what was hashed is what is opened, without a second digest."""
    copy = into.with_name(f"{into.name}.age")
    progress.stage("download", None)
    try:
        _download(record, bundle, store, copy)
        with copy.open("rb") as source:
            _compare(record, bundle, age.payload_digest(source))
            source.seek(0)
            progress.stage("open and unpack", bundle.unpacked)
            identities = _identities(record, setup)
            with age.unseal(identities, source, name=bundle.name, digest=False) as opened:
                return _unpacked(opened, record, setup, into, progress)
    finally:
        copy.unlink(missing_ok=True)


def _download(record: Record, bundle: BundleRef, store: Remote, copy: Path) -> None:
    try:
        store.download(bundle.name, copy, limit=bundle.payload_length + MAX_HEADER)
    except LimitExceededError as error:
        raise _other(record, bundle) from error


def _in_place(
    record: Record, bundle: BundleRef, setup: Setup, store: ObjectStore, into: Path, progress: Progress
) -> Fetched:
    """Read a folder's file twice, and hash it both times: it could be written to between the two."""
    progress.stage("open and unpack", bundle.unpacked)
    with store.open(bundle.name) as source:
        _compare(record, bundle, age.payload_digest(source))
    with (
        store.open(bundle.name) as source,
        age.unseal(_identities(record, setup), source, name=bundle.name) as opened,
    ):
        fetched = _unpacked(opened, record, setup, into, progress)
        _compare(record, bundle, (opened.payload_sha256, opened.payload_length))
    return fetched


def _compare(record: Record, bundle: BundleRef, found: tuple[str, int]) -> None:
    if found != (bundle.payload_sha256, bundle.payload_length):
        raise _other(record, bundle)


def _identities(record: Record, setup: Setup) -> tuple[age.Identity, ...]:
    return setup.identities_for(record.run, "bundle", record.task)


def _said(record: Record, bundle: BundleRef) -> tuple[object, ...]:
    return (
        *(bundle.manifest_sha256, record.run, record.seq),
        *(record.schema_version, bundle.members, bundle.unpacked),
    )


def _held(manifest: Manifest) -> tuple[object, ...]:
    return (
        *(manifest.sha256, manifest.run, manifest.seq),
        *(manifest.schema_version, len(manifest.members), manifest.unpacked),
    )


def _of(record: Record) -> BundleRef:
    if record.bundle is None:
        raise RecordError(f"record {record.seq} of run {record.run} is a {record.kind} and has no bundle")
    return record.bundle


def _other(record: Record, bundle: BundleRef) -> DigestMismatchError:
    return DigestMismatchError(
        f"{bundle.name} is not the bundle that record {record.seq} of run {record.run} signed"
    )


def _gone(record: Record, setup: Setup) -> NoSuchRunError | BundleMissingError:
    return Gone.of_run(record.run, setup).error(record)
