"""What would be lost if a key were distrusted from some time on; nothing is changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from archiver.catalog import Catalog, Entry
from archiver.errors import ArchiverError, NoSuchRunError, UntrustedWriterError
from archiver.gone import newest_whole
from archiver.notes import Notes
from archiver.parallel import in_order
from archiver.shellwords import run_word

if TYPE_CHECKING:
    from archiver.setup import Setup


@dataclass(frozen=True, slots=True)
class Loss:
    """What one run would lose, or what keeps that from being known."""

    run: str
    records: int = 0
    """Records that would not be believed any more."""
    first: int = 0
    """Number of the first of them: nothing from it on could be restored."""
    written: datetime | None = None
    """When that one was written, by the store's clock."""
    newest: int = 0
    left: int | None = None
    """Number of the newest whole checkpoint before it; None where there is none."""
    error: ArchiverError | None = None
    """What is wrong with the run already; records behind that were not looked at."""

    @property
    def command(self) -> str | None:
        """How to restore what would be left."""
        return None if self.left is None else f"archiver restore --at {self.left} {run_word(self.run)}"


def losses(setup: Setup, key: str, since: datetime, run: str | None = None) -> Iterator[Loss]:
    """Each run (or the one) that would lose records if `key` were distrusted from `since` on.

    What is refused already because the key is distrusted is part of it. Runs with an error come too. Raises
    `NoSuchRunError` for a run that is not there, and what keeps the store from being read at all.
    """
    # As exactly as the list of writers has it: what is said here has to be what is refused then.
    judged = _Judged(setup, key, since.replace(microsecond=since.microsecond // 1000 * 1000))
    if run is not None:
        found: Iterable[Loss | None] = [judged.loss(run, only=True)]
    else:
        catalog = Catalog(setup)
        found = in_order(judged.loss, catalog.runs(), workers=catalog.workers)
    yield from (loss for loss in found if loss is not None)


class _Judged:
    """Reads runs as if the key were still trusted, and judges their records as if it no longer were."""

    def __init__(self, setup: Setup, key: str, since: datetime) -> None:
        self._setup = setup
        believing = replace(setup, writers=setup.writers.believing(key))
        self._catalog = Catalog(believing, workers=1)
        # Notes by the key are no longer believed either, and what they say of the age of records with them.
        self._notes = Notes(replace(setup, writers=setup.writers.distrusting(key, since)))

    def loss(self, run: str, *, only: bool = False) -> Loss | None:
        """None for a run that is whole and would lose nothing."""
        try:
            beginning = self._catalog.beginning(run)
            lost = [link for link in beginning.links if not self._believed(link)]
            if not lost:
                return Loss(run, error=beginning.error) if beginning.error else None
            first = lost[0].record.seq
            left = newest_whole([link.record for link in beginning.links[: first - 1]], self._setup)
        except NoSuchRunError as error:
            if only:
                raise
            return Loss(run, error=error)
        except ArchiverError as error:
            return Loss(run, error=error.with_traceback(None))
        return Loss(
            run,
            len(lost),
            first,
            lost[0].written,
            beginning.newest,
            left.seq if left else None,
            beginning.error,
        )

    def _believed(self, link: Entry) -> bool:
        try:
            self._notes.judge(link, replace(link.info, modified=link.written))
        except UntrustedWriterError:
            return False
        return True
