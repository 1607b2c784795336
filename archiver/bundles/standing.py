"""Bundles of one run that are looked at one after the other: does each hold with all that it is based on?"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType

from archiver import pack
from archiver.bundles import presence
from archiver.errors import ArchiverError, DamagedError, NoSuchRunError
from archiver.model.limits import Limits
from archiver.model.manifest import Manifest
from archiver.model.record import Record
from archiver.scratch import Scratch


class Standing:
    """What was found of the bundles so far; each is looked at once, however many are based on it."""

    def __init__(self, records: Sequence[Record], limits: Limits) -> None:
        self._records = records
        self._limits = limits
        self._wrong: dict[int, ArchiverError] = {}
        self._manifests: dict[int, Manifest] = {}
        self._scratch = Scratch()
        self._texts: dict[tuple[int, str], Path] = {}
        """Files with the ends of texts, by number and path."""
        self._until: dict[int, int] = {}
        """For each base the last number that needs it."""
        for record in records:
            for base in record.bundle.bases if record.bundle else ():
                self._until[base] = record.seq

    def __enter__(self) -> Standing:
        self._scratch.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._scratch.__exit__(kind, error, trace)

    def found(
        self, record: Record, error: ArchiverError | None, manifest: Manifest | None = None
    ) -> ArchiverError | None:
        """Take in what was found of the next bundle alone; gives what is wrong with its bases, if anything.

        `manifest` is its own, where it was opened.
        """
        if error is None:
            error = wrong = self._based(record, manifest)
        else:
            wrong = None
        if error is not None:
            self._wrong[record.seq] = error
        if manifest is not None and record.seq in self._until:
            self._manifests[record.seq] = manifest
        self._manifests = {seq: one for seq, one in self._manifests.items() if self._until[seq] > record.seq}
        return wrong

    def take(self, record: Record, manifest: Manifest, folder: Path) -> None:
        """Keep of the unpacked bundle what the dictionaries of others are made of."""
        if record.seq in self._until:
            for member in manifest.members:
                if pack.is_text(member.path):
                    kept = self._scratch.path / f"{record.seq}-{len(self._texts)}"
                    kept.write_bytes(pack.end_of(folder / member.path))
                    self._texts[record.seq, member.path] = kept

    def lender(self, record: Record) -> Callable[[Manifest, str], bytes]:
        """What gives the bundle of this record its dictionary; raises what is wrong with a base."""

        def lend(manifest: Manifest, _opened_by: str) -> bytes:
            bases = presence.bases_of(record, self._records)
            for base in bases:
                error = self._wrong.get(base.seq)
                if error is not None:
                    raise _for(error, base, record)
            chain = self._chain(bases, record, manifest)
            places = pack.demand_chain(chain, self._limits)
            texts = (self._texts[bases[number].seq, path].read_bytes() for number, path in places)
            return pack.joined(texts, manifest.dictionary or 0)

        return lend

    def _based(self, record: Record, manifest: Manifest | None) -> ArchiverError | None:
        try:
            bases = presence.bases_of(record, self._records)
            for base in bases:
                error = self._wrong.get(base.seq)
                if error is not None:
                    return _for(error, base, record)
            if manifest is not None and bases and all(base.seq in self._manifests for base in bases):
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
