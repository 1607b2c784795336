"""What one session of a run came to: an audit line at its end, for nothing else has room for it.

What the session did not do again because of the claim stands in the claim itself, which repeats the spend of
the checkpoint that it goes on from.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, Final

from archiver.audit.writing import note
from archiver.errors import ArchiverError
from archiver.model.audit import Act

if TYPE_CHECKING:
    from archiver.setup import Setup

ACTION: Final = "session"
_MOST: Final = 1e12
"""A count or a time beyond is nobody's: what a session says of itself is added up with that of others."""


@dataclass(frozen=True, slots=True)
class Session:
    """From the claim of a run, or its begin, to the end of the process or of the `with` block; in seconds."""

    seconds: float = 0.0
    restore_seconds: float = 0.0
    """From asking the store to having the state, the claim with it; 0 for a run that was begun anew."""
    checkpoints: int = 0
    """Those that were saved: in the store, or sealed in the spool."""
    create_seconds: float = 0.0
    """Time that saving them took, of all together, from the snapshot to being durable."""
    slowest_create: float = 0.0
    failed: int = 0
    """Saves that were not made, for whatever reason."""
    duplicates_prevented: int = 0
    """Effects that were asked for again and had their recorded result given."""
    steps_replayed: int = 0
    """Steps whose recorded output was given."""


def note_session(
    setup: Setup, run: str, session: Session, *, claim: int | None = None, local: bool = False
) -> tuple[str, ...]:
    """Write down what a session came to, at its end; `claim` is the number it took the run over with.

    What keeps it from being written down is a warning among those that are returned: the session is over.
    `local` leaves it to the file of this machine, where the store is known to be away.
    """
    try:
        return note(setup, "session", run=run, seq=claim, detail=asdict(session), local=local)
    except ArchiverError as error:
        return (f"what this session of run {run} came to is not written down: {error}",)


def session_of(act: Act) -> Session | None:
    """What an audit line or object says of a session, None where it says nothing of one.

    A value that is missing or is no count or time is 0: whoever signed it, it is added up and not believed.
    """
    if act.action != ACTION:
        return None
    kinds = {one.name: one.type for one in fields(Session)}
    return Session(**{name: _number(act.detail.get(name), kind == "int") for name, kind in kinds.items()})


def _number(value: Any, whole: bool) -> Any:
    good = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= _MOST
    if not good or not math.isfinite(value):
        return 0
    return int(value) if whole else float(value)
