"""Bundles of one run that are looked at one after the other: does each hold with all that it is based on?"""

from __future__ import annotations

import copy
from collections.abc import Sequence

from archiver import pack
from archiver.bundles import presence
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
        self._until: dict[int, int] = {}
        """For each base the last number that needs it."""
        for record in records:
            for base in record.bundle.bases if record.bundle else ():
                self._until[base] = record.seq

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

    def _based(self, record: Record, manifest: Manifest | None) -> ArchiverError | None:
        try:
            bases = presence.bases_of(record, self._records)
            for base in bases:
                error = self._wrong.get(base.seq)
                if error is not None:
                    return _for(error, base, record)
            opened = [self._manifests.get(base.seq) for base in bases]
            if manifest is not None and bases and None not in opened:
                chain = [*zip(bases, opened, strict=True), (record, manifest)]
                named = [(presence.bundle_of(one).name, table) for one, table in chain if table is not None]
                pack.demand_chain(named, self._limits)
        except ArchiverError as error:
            return error.with_traceback(None)
        return None


def _for(error: ArchiverError, base: Record, record: Record) -> ArchiverError:
    own = copy.copy(error)
    own.details = dict(error.details)
    if isinstance(own, DamagedError | NoSuchRunError):
        return presence.needed(own, base, record)
    return own
