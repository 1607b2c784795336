"""What of a run is sealed to other recipients than the configuration names; nothing is changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, BinaryIO

from archiver import age, layout
from archiver.catalog import Catalog, Chain, demand_unchanged
from archiver.errors import ArchiverError, KmsUnreachableError, ObjectNotFoundError, StoreError
from archiver.notes import Believed
from archiver.parallel import in_order
from archiver.recipients import to_seal_to
from archiver.rekey.repeating import to_repeat
from archiver.signed import Seal, seal_of

if TYPE_CHECKING:
    from archiver.age import Identity, ObjectKind
    from archiver.setup import Setup
    from archiver.store import ObjectInfo


NEXT_FAILS_TOO = (StoreError, KmsUnreachableError)
"""Errors after which there is no use in going on with the next run."""


@dataclass(frozen=True, slots=True)
class Target:
    """An object whose header is for other keys than the configuration names."""

    name: str
    kind: ObjectKind
    size: int
    before: tuple[str, ...]
    """Fingerprints that its authentic header names."""
    payload_sha256: str
    written: datetime
    """When the store got it, before its header was ever rewritten."""
    opened_by: str = ""
    """Fingerprint of the identity that opens its header."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What there is to do for one run."""

    run: str
    task: str
    targets: tuple[Target, ...]
    fitting: int
    """Objects that have the right header already."""
    gone: tuple[str, ...]
    """Bundles that a record names and the store no longer has."""
    error: ArchiverError | None = None
    """Why the run cannot be rewritten."""
    repeats: tuple[Believed, ...] = ()
    """Notes on how long it is kept that the new recipients cannot read yet."""

    @property
    def size(self) -> int:
        """Bytes to be written again."""
        return sum(target.size for target in self.targets)


def plans(runs: Iterable[str], setup: Setup) -> Iterator[Plan]:
    """The plan of each run; what is wrong with one comes with it. Raises the store's errors."""
    for run in runs:
        try:
            yield plan(run, setup)
        except NEXT_FAILS_TOO:
            raise
        except ArchiverError as error:
            yield Plan(run, "", (), 0, (), error.with_traceback(None))


def plan(run: str, setup: Setup) -> Plan:
    """Look at every object of the run.

    Raises what `Catalog.chain` raises: only a run that holds is rewritten. `KeyUnavailableError` for an
    object that none of the identities opens.
    """
    look = _Look(run, setup)
    # Before notes are read: if somebody else rewrites these now, his note is not missed.
    bundles = {info.name: info for info in setup.store.list(layout.bundles_prefix(run))}
    effects = list(setup.store.list(layout.effects_prefix(run)))
    repeats = to_repeat(run, look.catalog.notes, to_seal_to(setup))
    tombstone = look.catalog.notes.newest(run, "erase")
    if tombstone is not None:
        return Plan(run, tombstone.note.task, (), 0, (), repeats=repeats)
    chain = look.catalog.chain(run)
    task = chain.head.record.task
    signed = _signed_bundles(chain)
    there = {name: info for name in signed if (info := bundles.get(name) or _head(name, setup)) is not None}
    jobs = [
        *(_Job("bundle", task, info, signed[name]) for name, info in there.items()),
        *(_Job("effect", task, info) for info in effects),
    ]
    found = [one for one in in_order(look.opened, jobs, workers=look.catalog.workers) if one is not None]
    found += [look.judged("record", link.info, link.seal) for link in chain.links]
    targets = tuple(target for target, fits in found if not fits)
    gone = tuple(name for name in signed if name not in there)
    return Plan(run, task, targets, len(found) - len(targets), gone, repeats=repeats)


def _head(name: str, setup: Setup) -> ObjectInfo | None:
    """A bundle that was not listed: saved since then, or gone."""
    try:
        return setup.store.head(name)
    except ObjectNotFoundError:
        return None


def _signed_bundles(chain: Chain) -> dict[str, str]:
    """Names and payload digests of the bundles that the records commit."""
    refs = [link.record.bundle for link in chain.links]
    return {ref.name: ref.payload_sha256 for ref in refs if ref is not None}


def _whole(source: BinaryIO, identities: Sequence[Identity], name: str) -> Seal:
    """The seal of an object of which no record says what it must be: at least it is whole and authentic."""
    with age.unseal(identities, source, name=name) as opened:
        while opened.read1():
            pass
        return Seal(opened.fingerprints, opened.unnamed, opened.payload_sha256, opened.opened_by)


@dataclass(frozen=True, slots=True)
class _Job:
    """An object to be opened."""

    kind: ObjectKind
    task: str
    info: ObjectInfo
    payload_sha256: str | None = None
    """As it was signed, where it was."""


class _Look:
    """Looks at headers, each authenticated before it counts."""

    def __init__(self, run: str, setup: Setup) -> None:
        self.catalog = Catalog(setup)
        self._run = run
        self._setup = setup
        self._wanted = to_seal_to(setup)

    def opened(self, job: _Job) -> tuple[Target, bool] | None:
        """The object and whether its header is right; None if it is gone since it was listed."""
        identities = self._setup.identities_for(self._run, job.kind, job.task)
        name, digest = job.info.name, job.payload_sha256
        try:
            with self._setup.store.open(name) as source:
                seal = (
                    seal_of(source, identities, name, digest) if digest else _whole(source, identities, name)
                )
        except ObjectNotFoundError:
            return None
        return self.judged(job.kind, job.info, seal)

    def judged(self, kind: ObjectKind, info: ObjectInfo, seal: Seal) -> tuple[Target, bool]:
        """The object as a target, and whether it is none because its header is right."""
        fits = seal.is_for(self._wanted)
        written = info.modified
        if not fits:
            demand_unchanged(info, self._setup.store)  # the note will vouch for this time and this digest
            written = self.catalog.notes.written(self._run, info.name, seal.payload_sha256, written)
        target = Target(
            info.name, kind, info.size, seal.recipients, seal.payload_sha256, written, seal.opened_by
        )
        return target, fits
