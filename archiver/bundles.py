"""The bundle that a record signed: is it there, and is it what was signed?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from archiver import age, pack
from archiver.errors import BundleMissingError, DigestMismatchError, ObjectNotFoundError, RecordError
from archiver.model.record import BundleRef, Record
from archiver.progress import Progress

if TYPE_CHECKING:
    from archiver.model.manifest import Manifest
    from archiver.setup import Setup


def check_present(record: Record, setup: Setup) -> None:
    """Raise `BundleMissingError` if the bundle is gone, `DigestMismatchError` if it is plainly too short."""
    bundle = _of(record)
    try:
        info = setup.store.head(bundle.name)
    except ObjectNotFoundError as error:
        raise _gone(record, bundle) from error
    if info.size <= bundle.payload_length:
        raise _other(record, bundle)


def fetch(record: Record, setup: Setup, into: Path, progress: Progress) -> Manifest:
    """Unpack the bundle into the new private folder `into`, and prove that it is the one the record signed.

    The digest of the sealed payload is compared first: nothing of a bundle that nobody signed is opened, let
    alone unpacked. Raises `BundleMissingError`, `DigestMismatchError` and what opening and unpacking raise.
    """
    bundle = _of(record)
    into.mkdir(mode=0o700)
    progress.stage("open and unpack", bundle.unpacked)
    signed = (bundle.payload_sha256, bundle.payload_length)
    try:
        with setup.store.open(bundle.name) as source:
            found = age.payload_digest(source)
        if found != signed:
            raise _other(record, bundle)
        with (
            setup.store.open(bundle.name) as source,
            age.unseal(_identities(record, setup), source, name=bundle.name) as opened,
        ):
            manifest = pack.unpack(opened, into, limits=setup.settings.limits, progress=progress)
            found = (opened.payload_sha256, opened.payload_length)
    except ObjectNotFoundError as error:
        raise _gone(record, bundle) from error
    if found != signed:  # it was swapped between the two readings
        raise _other(record, bundle)
    if _said(record, bundle) != _held(manifest):
        raise DigestMismatchError(f"{bundle.name} holds another manifest than its record signed")
    return manifest


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


def _gone(record: Record, bundle: BundleRef) -> BundleMissingError:
    return BundleMissingError(
        f"the bundle of checkpoint {record.seq} of run {record.run} is gone: {bundle.name}"
    )
