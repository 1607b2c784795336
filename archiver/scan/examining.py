"""Look once more at what is stored, with the rules and known values of today."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from archiver.errors import ArchiverError, KeyUnavailableError
from archiver.model import Receipt
from archiver.stored import Opened, look, receipt_of_today

if TYPE_CHECKING:
    from archiver.redact import FileRedactor
    from archiver.setup import Setup


@dataclass(frozen=True, slots=True)
class Checked:
    """One checkpoint: what is found in it now although it was stored, or why it could not be looked at."""

    run: str
    seq: int | None
    receipt: Receipt | None = None
    error: ArchiverError | None = None

    @property
    def is_closed(self) -> bool:
        """True when no identity at hand opens it: nothing is wrong with it, and nothing known of it."""
        return isinstance(self.error, KeyUnavailableError)


def examine(
    setup: Setup, runs: Iterable[str], load: Callable[[bytes], FileRedactor], *, newest: bool = False
) -> Iterator[Checked]:
    """Scan all members of every checkpoint, or of the newest of each run; raises as `stored.look` does.

    `load` makes a redactor with the key of a run, so that fingerprints are those of its placeholders.
    """

    def scan(opened: Opened) -> Receipt:
        return receipt_of_today(opened, load)

    for seen in look(setup, runs, scan, newest=newest):
        yield Checked(seen.run, seen.seq, seen.answer, seen.error)
