"""Bundles of one run that are looked at one after the other: does each hold with all that it is based on?"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from types import TracebackType

from archiver import pack
from archiver.bundles import presence
from archiver.bundles.texts import Texts
from archiver.errors import ArchiverError, DamagedError, NoSuchRunError
from archiver.model.limits import Limits
from archiver.model.manifest import Manifest
from archiver.model.record import Record


class Standing:
    """What was found of the bundles so far; each is looked at once, however many are based on it."""

    def __init__(self, records: Sequence[Record], limits: Limits) -> None:
        self._records = records
        self._limits = limits
        self._wrong: dict[int, ArchiverError] = {}
        self._manifests: dict[int, Manifest] = {}
        self._refused: ArchiverError | None = None
        """What was said last where a bundle wanted the text of a base that is not as it should be."""
        self._fits: int | None = None
        """The number of the bundle whose table was compared last with those of its bases."""
        self._texts = Texts()
        self._until: dict[int, int] = {}
        """For each base the last number that needs it."""
        for record in records:
            for base in record.bundle.bases if record.bundle else ():
                self._until[base] = record.seq

    def __enter__(self) -> Standing:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._texts.__exit__(kind, error, trace)

    def found(
        self, record: Record, error: ArchiverError | None, manifest: Manifest | None = None
    ) -> ArchiverError | None:
        """Take in what was found of the next bundle alone; gives what is wrong with its bases, if anything.

        `manifest` is its own, where it was opened.
        """
        if error is None:
            error = wrong = self._based(record, manifest)
        else:
            wrong = error if error is self._refused else None
        if error is not None:
            self._wrong[record.seq] = error.with_traceback(None)
        if manifest is not None and record.seq in self._until:
            self._manifests[record.seq] = manifest
        self._manifests = {seq: one for seq, one in self._manifests.items() if self._until[seq] > record.seq}
        self._texts.keep_only(self._manifests)
        return wrong

    def ends(self, record: Record) -> pack.Ends:
        """Keeps of the bundle of this record what the dictionaries of others are made of."""
        needed = record.seq in self._until
        return self._texts.of(record.seq, lambda path: needed and pack.is_text(path))

    def lender(self, record: Record) -> Callable[[Manifest, str], bytes]:
        """What gives the bundle of this record its dictionary; raises what is wrong with a base."""

        def lend(manifest: Manifest, _opened_by: str) -> bytes:
            bases = presence.bases_of(record, self._records)
            for base in bases:
                error = self._wrong.get(base.seq)
                if error is not None:
                    self._refused = _for(error, base, record)
                    raise self._refused
            places = pack.demand_chain(self._chain(bases, record, manifest), self._limits)
            self._fits = record.seq
            texts = ((bases[number].seq, path) for number, path in places)
            return self._texts.dictionary(texts, manifest.dictionary or 0)

        return lend

    def _based(self, record: Record, manifest: Manifest | None) -> ArchiverError | None:
        try:
            bases = presence.bases_of(record, self._records)
            for base in bases:
                error = self._wrong.get(base.seq)
                if error is not None:
                    return _for(error, base, record)
            if manifest is None or not bases or self._fits == record.seq:
                return None
            if all(base.seq in self._manifests for base in bases):
                pack.demand_chain(self._chain(bases, record, manifest), self._limits)
        except ArchiverError as error:
            return error.with_traceback(None)
        return None

    def _chain(
        self, bases: Sequence[Record], record: Record, manifest: Manifest
    ) -> list[tuple[str, Manifest]]:
        named = [(presence.bundle_of(base).name, self._manifests[base.seq]) for base in bases]
        return [*named, (presence.bundle_of(record).name, manifest)]


def _for(error: ArchiverError, base: Record, record: Record) -> ArchiverError:
    own = copy.copy(error)
    own.details = dict(error.details)
    if isinstance(own, DamagedError | NoSuchRunError):
        return presence.needed(own, base, record)
    return own
