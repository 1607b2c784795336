"""Whether the bundle that a record signed is there, with those that it is based on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from archiver import layout
from archiver.errors import (
    BundleMissingError,
    DamagedError,
    DigestMismatchError,
    NoSuchRunError,
    ObjectNotFoundError,
    RecordError,
)
from archiver.gone import Gone, fits
from archiver.model.record import BundleRef, Record
from archiver.signed import Seal, seal_of

if TYPE_CHECKING:
    from archiver.age import Identity
    from archiver.setup import Setup


def bases_of(record: Record, known: Iterable[Record]) -> tuple[Record, ...]:
    """The records of the bundles that this one is based on, the full one first.

    `known` are verified records of the run. `RecordError` where one of them is not among these, or commits
    no bundle, or another chain than this one goes on.
    """
    numbers = bundle_of(record).bases
    if not numbers:
        return ()
    by_number = {one.seq: one for one in known if one.run == record.run}
    found: list[Record] = []
    for place, seq in enumerate(numbers):
        base = by_number.get(seq)
        if base is None or base.bundle is None:
            what = "is not there" if base is None else f"is a {base.kind} and has no bundle"
            raise RecordError(
                f"checkpoint {record.seq} of run {record.run} is based on record {seq}, and that {what}"
            )
        if base.bundle.bases != numbers[:place]:
            raise RecordError(
                f"checkpoint {record.seq} of run {record.run} is based on checkpoint {seq}, and not on what "
                "that one is based on"
            )
        found.append(base)
    return tuple(found)


def check_present(record: Record, setup: Setup, known: Iterable[Record] = ()) -> None:
    """Raise an error if the bundle or one that it is based on is not there: `DigestMismatchError` for a wrong
    size. `known` as for `bases_of`.

    For one that is gone `RunErasedError` or `BundleRemovedError` where an administrator signed that,
    `BundleExpiredError` where it may be by its class, else `BundleMissingError`.
    """
    bundle = bundle_of(record)
    if not bundle.bases:
        try:
            info = setup.store.head(bundle.name)
        except ObjectNotFoundError as error:
            raise gone(record, setup) from error
        check_size(record, info.size)
        return
    bases = bases_of(record, known)
    sizes = {info.name: info.size for info in setup.store.list(layout.bundles_prefix(record.run))}
    for one in (*bases, record):
        size = sizes.get(bundle_of(one).name)
        if size is None:
            raise needed(gone(one, setup), one, record)
        try:
            check_size(one, size)
        except DigestMismatchError as error:
            raise needed(error, one, record) from None


def check_size(record: Record, size: int) -> None:
    """Raise `DigestMismatchError` if an object of that many bytes cannot be the bundle."""
    bundle = bundle_of(record)
    if not fits(bundle, size):
        raise other(record, bundle)


def seal(record: Record, setup: Setup) -> Seal:
    """Whom the bundle is sealed to, from its header alone; raises as `fetch` does if that does not open."""
    bundle = bundle_of(record)
    try:
        with setup.store.open(bundle.name) as source:
            return seal_of(source, identities(record, setup), bundle.name, bundle.payload_sha256)
    except ObjectNotFoundError as error:
        raise gone(record, setup) from error


def needed(
    error: DamagedError | NoSuchRunError, base: Record, record: Record
) -> DamagedError | NoSuchRunError:
    """The same error, of a base, for the checkpoint that cannot be had without it."""
    if base is not record:
        error.args = (f"checkpoint {record.seq} of run {record.run} needs checkpoint {base.seq}: {error}",)
        error.details["base"] = base.seq
    return error


def identities(record: Record, setup: Setup) -> Sequence[Identity]:
    return setup.identities_for(record.run, "bundle", record.task)


def bundle_of(record: Record) -> BundleRef:
    """The bundle of a record; `RecordError` for one that has none."""
    if record.bundle is None:
        raise RecordError(f"record {record.seq} of run {record.run} is a {record.kind} and has no bundle")
    return record.bundle


def other(record: Record, bundle: BundleRef) -> DigestMismatchError:
    return DigestMismatchError(
        f"{bundle.name} is not the bundle that record {record.seq} of run {record.run} signed"
    )


def gone(record: Record, setup: Setup) -> NoSuchRunError | BundleMissingError:
    return Gone.of_run(record.run, setup).error(record)
