"""The gate of effects: nobody goes on while it is not known whether an unreplayable effect happened."""

from __future__ import annotations

from collections.abc import Iterator

from archiver.model import Record
from archiver.model.report import Blocker

EFFECTS = "effects"
"""The word that `accept` takes for effects whose outcome nobody knows."""


def blockers(record: Record, *, accepted: bool) -> Iterator[Blocker]:
    """What stands against going on, unless `accepted`."""
    if record.effects.undecided and not accepted:
        yield Blocker(
            accept=EFFECTS,
            reason=f"nobody knows whether these effects happened: {', '.join(record.effects.undecided)}",
            remedy="look in the systems they act on; --accept effects hands the checkpoint over all the same",
            exit_code=7,
        )
