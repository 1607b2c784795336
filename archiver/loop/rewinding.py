"""Go back to a good checkpoint: which there are, and the state in which the run goes on from there."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from archiver import restore
from archiver.catalog import Catalog
from archiver.errors import NoSuchRunError
from archiver.loop.state import State
from archiver.model import Record
from archiver.scratch import Scratch

if TYPE_CHECKING:
    from archiver.setup import Setup


def ring(run: str, setup: Setup) -> tuple[Record, ...]:
    """Records of the newest checkpoints, as many as `run.ring` says, the newest first."""
    try:
        links = Catalog(setup).chain(run).links
    except NoSuchRunError:
        return ()
    found = [link.record for link in links if link.record.bundle is not None]
    return tuple(reversed(found[-setup.settings.run.ring :]))


def state_at(run: str, to: int, setup: Setup) -> State:
    """The state of checkpoint `to`, whatever the world is now: it is what the run goes back in.

    Raises what a restore of that checkpoint raises.
    """
    found = restore.plan(run, setup, at=to)
    accept = {blocker.accept for blocker in found.blockers}
    with Scratch() as scratch:
        restored = restore.restore(
            run,
            setup,
            into=scratch.path / "restored",
            at=to,
            accept={*accept, "effects"},
            workspace=False,
        )
        return State.of(restored.state)


def rewound(now: State, then: State, why: str) -> State:
    """The state `then`, with what cannot be undone as it is now: spend, and the time it took.

    Effects are not part of it: the ledger knows them all. `why` becomes the note.
    """
    return replace(
        then,
        note=why,
        spend=now.spend,
        since=now.since,
        budget=now.budget,
        dialect=now.dialect,
        environment=now.environment,
    )
