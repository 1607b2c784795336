"""What the witness has seen against many runs at once: for lists, and for a look at a whole store.

The witness is asked after a list here, run by run, so what does not fit is looked up once more: another
process may have committed in between, and a list of all runs does not tell which version of a record counts.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from archiver import noting, rollback
from archiver.catalog import Catalog, Head
from archiver.errors import ArchiverError, StoreError

if TYPE_CHECKING:
    from archiver.setup import Setup


class Witnessed:
    """Compares the newest records of runs with what was seen of them; `warnings` has what could not be."""

    def __init__(self, setup: Setup, now: datetime) -> None:
        self._setup = setup
        self._now = now
        self._catalog = Catalog(setup)
        self._unread: list[tuple[str, ArchiverError]] = []

    def heads(self, heads: Iterable[Head]) -> Iterator[Head]:
        """The same; one that is behind what was seen, or is another record, has that as its error."""
        for head in heads:
            yield self._head(head)

    def vanished(self, known: Container[str]) -> Iterator[Head]:
        """The runs that were seen in this store, and have no record in it any more though they should.

        One that was erased is none of them, if its tombstone is believed.
        """
        witness, store = self._setup.witness, self._setup.store_id
        if witness is None or store is None:
            return
        for one in witness:
            if one.store != store or one.run in known:
                continue
            if one.seen is None:
                if one.error is not None:
                    self._unread.append((one.run, one.error))
                continue
            error: ArchiverError | None = None
            try:
                error = rollback.Sight(one.run, self._setup, one.seen).vanished(self._now)
                # It may have begun since the list was made, or be hidden by delete markers.
                found = None if error is None else self._catalog.newest_of(one.run)
            except ArchiverError as failed:
                error, found = failed.with_traceback(None), None
            if found is not None:
                yield self._head(found)
            elif error is not None and self._catalog.notes.tombstone(one.run) is None:
                yield Head(one.run, one.seen.seq, error=error)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What kept runs from being compared, for all of them together."""
        if not self._unread:
            return ()
        run, error = self._unread[0]
        more = f" and {len(self._unread) - 1} more" if len(self._unread) > 1 else ""
        return (f"whether the store is as new as it was seen to be is not known of run {run}{more}: {error}",)

    def _head(self, head: Head) -> Head:
        try:
            sight = rollback.look(head.run, self._setup)
        except ArchiverError as error:
            self._unread.append((head.run, error))
            return head
        damaged = head.error is not None and not isinstance(head.error, StoreError)
        if not damaged and sight.glance(head, self._now) is None:
            return head
        try:
            head = self._catalog.newest_of(head.run) or head
        except ArchiverError as error:
            return replace(head, error=error.with_traceback(None))
        wrong = sight.glance(head, self._now) or head.error
        return replace(head, error=wrong and (self._erased(head.run) or wrong))

    def _erased(self, run: str) -> ArchiverError | None:
        """What explains that less is there than was seen, or that it does not hold together."""
        tombstone = self._catalog.notes.tombstone(run)
        return None if tombstone is None else noting.erased(run, tombstone)
