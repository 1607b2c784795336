"""Unpack a bundle: the one that a record signed whole, and of its bases what its table takes from them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from archiver import age, audit, pack
from archiver.bundles import presence
from archiver.bundles.part import Part, demand_payload, demand_said, fetch_whole
from archiver.errors import DamagedError, ObjectNotFoundError
from archiver.model.record import BundleRef, Record
from archiver.parallel import in_order
from archiver.progress import Progress
from archiver.store import ObjectStore, Remote

if TYPE_CHECKING:
    from archiver.model.manifest import Manifest
    from archiver.setup import Setup

FOLDER_WORKERS = 2
"""Bases that are read at the same time from a folder."""
MOST_WORKERS = 8
"""The same from any store: each has a frame in memory, and its copy on disk."""

T = TypeVar("T")
Choose = Callable[["Manifest"], Collection[str]]
"""Which members of a table are wanted, by path."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """What was unpacked, and the fingerprint of the identity that opened it."""

    manifest: Manifest
    """The table of all members, as that of a full bundle, wherever they lay."""
    opened_by: str
    break_glass: bool


def fetch(record: Record, setup: Setup, into: Path, progress: Progress, known: Iterable[Record]) -> Manifest:
    """The manifest of what `unpack` unpacks."""
    return unpack(record, setup, into, progress, known).manifest


def fetch_own(record: Record, setup: Setup, into: Path, progress: Progress) -> Manifest:
    """Unpack what lies in this bundle itself, whatever it is based on; raises as `unpack` does."""
    into.mkdir(mode=0o700)
    return _alone(record, setup, into, progress).manifest


def unpack(
    record: Record,
    setup: Setup,
    into: Path,
    progress: Progress,
    known: Iterable[Record],
    *,
    choose: Choose | None = None,
    then: Sequence[Choose] = (),
) -> Fetched:
    """Unpack the bundle into the new private folder `into`, and prove that it is the one the record signed.

    `known` are verified records of the run, among them those of its bases. `choose` picks members: then only
    as much is read as these need, by ranges where that pays. Each of `then` picks more, once
    what was picked before it lies in `into`.

    The digest of the sealed payload is compared first: nothing of a bundle that nobody signed is opened, let
    alone unpacked. Of a part it is the tags of its chunks and the digests of its manifest and members. From
    a store over a network it is first copied beside `into`, in a folder that must be private. Before anything
    is unpacked the audit line is written. Raises `AuditError` where it cannot be, `BundleMissingError`,
    `DigestMismatchError` and what opening and unpacking raise.
    """
    bases = presence.bases_of(record, known)
    into.mkdir(mode=0o700)
    if bases or choose is not None:
        return _Gathering(record, bases, setup, into, progress).gathered(choose, then)
    return _alone(record, setup, into, progress)


def _alone(record: Record, setup: Setup, into: Path, progress: Progress) -> Fetched:
    """A full bundle, or of another the members that lie in it."""
    bundle = presence.bundle_of(record)
    store = setup.store
    try:
        if isinstance(store, Remote):
            fetched = _by_copy(record, bundle, setup, store, into, progress)
        else:
            fetched = _in_place(record, bundle, setup, store, into, progress)
    except ObjectNotFoundError as error:
        raise presence.gone(record, setup) from error
    demand_said(record, bundle, fetched.manifest)
    return fetched


class _Gathering:
    """One bundle of which not everything lies in one place, or is wanted."""

    def __init__(
        self, record: Record, bases: tuple[Record, ...], setup: Setup, into: Path, progress: Progress
    ) -> None:
        self._record, self._bases = record, bases
        self._setup, self._into, self._progress = setup, into, progress
        store = setup.store
        self._workers = min(store.parallel, MOST_WORKERS) if isinstance(store, Remote) else FOLDER_WORKERS

    def gathered(self, choose: Choose | None, then: Sequence[Choose]) -> Fetched:
        own = _alone(self._record, self._setup, self._into, self._progress) if choose is None else None
        records = self._bases if own is not None else (*self._bases, self._record)
        parts: list[Part] = []
        try:
            with closing(in_order(self._part, records, workers=self._workers)) as found:
                parts.extend(found)
            whole = self._whole(parts, own)
            wanted = whole.taken if choose is None else _wanted(whole, choose)
            by, loud = self._noted(parts, own)
            self._unpack(list(zip(parts, wanted, strict=False)))
            for one in then:
                more = [paths - had for paths, had in zip(_wanted(whole, one), wanted, strict=True)]
                self._unpack(list(zip(parts, more, strict=False)))
                wanted = tuple(had | paths for paths, had in zip(more, wanted, strict=True))
        finally:
            for part in parts:
                part.close()
        return Fetched(whole.manifest, by, loud)

    def _whole(self, parts: list[Part], own: Fetched | None) -> pack.Whole:
        chain = [(part.bundle.name, part.manifest) for part in parts]
        if own is not None:
            chain.append((presence.bundle_of(self._record).name, own.manifest))
        return pack.whole(chain, self._setup.settings.limits)

    def _noted(self, parts: list[Part], own: Fetched | None) -> tuple[str, bool]:
        """Write down who opens it, and other identities that open a base of it."""
        first = own.opened_by if own is not None else parts[-1].opened_by
        told = {first} if own is not None else set()
        for part in reversed(parts):
            if part.opened_by not in told:
                told.add(part.opened_by)
                _note(self._setup, part.record, part.opened_by)
        return first, audit.is_break_glass(self._setup, first)

    def _part(self, record: Record) -> Part:
        return self._translated(record, lambda: Part(record, self._setup, self._into))

    def _unpack(self, work: list[tuple[Part, Collection[str]]]) -> None:
        """Take what is wanted out of each, several at the same time."""
        wanted = [(part, paths) for part, paths in work if paths]
        self._progress.stage("fetch", sum(part.size(paths) for part, paths in wanted))

        def one(given: tuple[Part, Collection[str]]) -> int:
            part, paths = given
            self._translated(part.record, lambda: part.unpack(paths, self._into))
            return part.size(paths)

        with closing(in_order(one, wanted, workers=self._workers)) as sizes:
            for size in sizes:
                self._progress.advance(size)

    def _translated(self, record: Record, work: Callable[[], T]) -> T:
        """What goes wrong with a base is said to be of the checkpoint that needs it."""
        try:
            return work()
        except ObjectNotFoundError as error:
            raise presence.needed(presence.gone(record, self._setup), record, self._record) from error
        except DamagedError as error:
            raise presence.needed(error, record, self._record) from error.__cause__


def _wanted(whole: pack.Whole, choose: Choose) -> tuple[frozenset[str], ...]:
    chosen = frozenset(choose(whole.manifest))
    return tuple(paths & chosen for paths in whole.taken)


def _note(setup: Setup, record: Record, opened_by: str) -> bool:
    loud = audit.is_break_glass(setup, opened_by)
    setup.session.tasks[record.run] = record.task
    audit.note(setup, "open", run=record.run, seq=record.seq, opened_by=opened_by, break_glass=loud)
    return loud


def _unpacked(opened: age.Unsealer, record: Record, setup: Setup, into: Path, progress: Progress) -> Fetched:
    """Nothing of a bundle appears before it is written down who opened it."""
    opened.demand_context(record.run, record.task, "bundle")
    loud = _note(setup, record, opened.opened_by)
    limits, sizes = setup.settings.limits, presence.bundle_of(record).frames
    manifest = pack.unpack(opened, into, limits=limits, progress=progress, sizes=sizes)
    return Fetched(manifest, opened.opened_by, loud)


def _by_copy(
    record: Record, bundle: BundleRef, setup: Setup, store: Remote, into: Path, progress: Progress
) -> Fetched:
    """Fetch once. The copy is private, so what was hashed is what is opened, without a second digest."""
    copy = into.with_name(f"{into.name}.age")
    progress.stage("download", None)
    try:
        fetch_whole(record, store, copy)
        with copy.open("rb") as source:
            progress.stage("open and unpack", bundle.unpacked)
            own = presence.identities(record, setup)
            with age.unseal(own, source, name=bundle.name, digest=False) as opened:
                return _unpacked(opened, record, setup, into, progress)
    finally:
        copy.unlink(missing_ok=True)


def _in_place(
    record: Record, bundle: BundleRef, setup: Setup, store: ObjectStore, into: Path, progress: Progress
) -> Fetched:
    """Read a folder's file twice, and hash it both times: it could be written to between the two."""
    progress.stage("open and unpack", bundle.unpacked)
    with store.open(bundle.name) as source:
        demand_payload(record, bundle, age.payload_digest(source))
    with (
        store.open(bundle.name) as source,
        age.unseal(presence.identities(record, setup), source, name=bundle.name) as opened,
    ):
        fetched = _unpacked(opened, record, setup, into, progress)
        demand_payload(record, bundle, (opened.payload_sha256, opened.payload_length))
    return fetched
