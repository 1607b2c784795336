"""One bundle by itself: its payload compared, then opened, written down, and unpacked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from archiver import age, audit, pack
from archiver.bundles import presence
from archiver.bundles.part import demand_payload, demand_said, fetch_whole
from archiver.errors import ObjectNotFoundError
from archiver.model.record import BundleRef, Record
from archiver.progress import Progress
from archiver.store import ObjectStore, Remote

if TYPE_CHECKING:
    from archiver.model.manifest import Manifest
    from archiver.setup import Setup

_UNPACK: Final = "open and unpack"
Lend = Callable[["Manifest", str], bytes]
"""The dictionary of a bundle that has this manifest, and was opened by that identity (its fingerprint)."""


@dataclass(frozen=True, slots=True)
class Chained:
    """What a bundle has to do with others of its chain."""

    lend: Lend
    ends: pack.Ends | None = None
    """Texts of it that dictionaries of others are made of."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """What was unpacked, and the fingerprint of the identity that opened it."""

    manifest: Manifest
    """The table of all members, as that of a full bundle, wherever they lay."""
    opened_by: str
    break_glass: bool


def alone(
    record: Record, setup: Setup, into: Path, progress: Progress, chained: Chained | None = None
) -> Fetched:
    """A full bundle, or of another the members that lie in it."""
    bundle = presence.bundle_of(record)
    store = setup.store
    try:
        if isinstance(store, Remote):
            fetched = _by_copy(record, bundle, setup, store, into, progress, chained)
        else:
            fetched = _in_place(record, bundle, setup, store, into, progress, chained)
    except ObjectNotFoundError as error:
        raise presence.gone(record, setup) from error
    demand_said(record, bundle, fetched.manifest)
    return fetched


def note(setup: Setup, record: Record, opened_by: str) -> bool:
    loud = audit.is_break_glass(setup, opened_by)
    setup.session.tasks[record.run] = record.task
    audit.note(setup, "open", run=record.run, seq=record.seq, opened_by=opened_by, break_glass=loud)
    return loud


def _unpacked(
    opened: age.Unsealer,
    record: Record,
    setup: Setup,
    into: Path,
    progress: Progress,
    chained: Chained | None,
) -> Fetched:
    """Nothing of a bundle appears before it is written down who opened it."""
    opened.demand_context(record.run, record.task, "bundle")
    loud = note(setup, record, opened.opened_by)
    limits, bundle = setup.settings.limits, presence.bundle_of(record)
    by = opened.opened_by

    def lent(manifest: Manifest) -> bytes:
        found = chained.lend(manifest, by) if chained is not None else b""
        progress.stage(_UNPACK, bundle.unpacked)  # to fetch its bases was a stage of its own
        return found

    ends = chained.ends if chained is not None else None
    manifest = pack.unpack(
        opened, into, limits=limits, progress=progress, sizes=bundle.frames, lend=lent, ends=ends
    )
    return Fetched(manifest, by, loud)


def _by_copy(
    record: Record,
    bundle: BundleRef,
    setup: Setup,
    store: Remote,
    into: Path,
    progress: Progress,
    chained: Chained | None,
) -> Fetched:
    """Fetch once. The copy is private, so what was hashed is what is opened, without a second digest."""
    copy = into.with_name(f"{into.name}.age")
    progress.stage("download", None)
    try:
        fetch_whole(record, store, copy)
        with copy.open("rb") as source:
            progress.stage(_UNPACK, bundle.unpacked)
            own = presence.identities(record, setup)
            with age.unseal(own, source, name=bundle.name, digest=False) as opened:
                return _unpacked(opened, record, setup, into, progress, chained)
    finally:
        copy.unlink(missing_ok=True)


def _in_place(
    record: Record,
    bundle: BundleRef,
    setup: Setup,
    store: ObjectStore,
    into: Path,
    progress: Progress,
    chained: Chained | None,
) -> Fetched:
    """Read a folder's file twice, and hash it both times: it could be written to between the two."""
    progress.stage(_UNPACK, bundle.unpacked)
    with store.open(bundle.name) as source:
        demand_payload(record, bundle, age.payload_digest(source))
    with (
        store.open(bundle.name) as source,
        age.unseal(presence.identities(record, setup), source, name=bundle.name) as opened,
    ):
        fetched = _unpacked(opened, record, setup, into, progress, chained)
        demand_payload(record, bundle, (opened.payload_sha256, opened.payload_length))
    return fetched
