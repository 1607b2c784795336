"""One checkpoint opened for a look: verified as for a restore, unpacked into a private folder, then gone.

Looking is not going on: whether the world still matches is not asked, and nothing is handed over.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from archiver import audit, choosing, members, saved
from archiver.catalog import Chain
from archiver.errors import NoSuchRunError, UsageError
from archiver.model import Checkpoint, Receipt, Record
from archiver.progress import Progress
from archiver.scratch import Scratch

if TYPE_CHECKING:
    from archiver.setup import Setup

_NEAR: Final = 8
"""Numbers that an error names."""


@dataclass(frozen=True, slots=True)
class Looked:
    """A checkpoint and the members of its bundle, which lie in `folder` as long as the look lasts."""

    record: Record
    checkpoint: Checkpoint
    receipt: Receipt
    folder: Path


def chain_of(run: str, setup: Setup, now: datetime) -> Chain:
    """The verified records of a run; raises what `choosing.find` raises."""
    return choosing.find(run, setup, now=now).chain


def numbered(chain: Chain, number: int) -> Record:
    """The checkpoint of that number; `NoSuchRunError` names those that there are."""
    for link in chain.links:
        if link.record.seq == number and link.record.bundle is not None:
            return link.record
    raise NoSuchRunError(
        f"run {chain.run} has no checkpoint {number}", remedy=f"its checkpoints: {_numbers(chain)}"
    )


def newest(chain: Chain, count: int) -> list[Record]:
    """The newest checkpoints, oldest first; `UsageError` where there are fewer."""
    found = [link.record for link in chain.links if link.record.bundle is not None]
    if len(found) < count:
        raise UsageError(
            f"run {chain.run} has {len(found)} of the {count} checkpoints that are needed",
            remedy="wait until another one is saved",
        )
    return found[-count:]


@contextmanager
def look(record: Record, chain: Chain, setup: Setup, progress: Progress, within: str) -> Iterator[Looked]:
    """Open a checkpoint of the chain for the action `within`, as the audit will have it.

    Raises what `saved.fetch` raises, with the way to an older checkpoint where the bundle is damaged or gone.
    """
    with Scratch() as scratch, audit.within(setup, within):
        folder = scratch.path / "bundle"
        with choosing.advising(record, setup):
            found = saved.fetch(record, setup, folder, progress, chain.records)
        yield Looked(record, found.checkpoint, members.receipt_in(folder), folder)


def _numbers(chain: Chain) -> str:
    found = [link.record.seq for link in chain.links if link.record.bundle is not None]
    more = "… " if len(found) > _NEAR else ""
    return more + ", ".join(map(str, found[-_NEAR:]))
