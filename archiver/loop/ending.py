"""How a run ends by what leaves its block."""

from __future__ import annotations

from typing import Final, Literal

from archiver.errors import NeedsDecisionError, RefusedError, StoreError
from archiver.safetext import shorten

End = Literal["succeeded", "failed", "cancelled"]
MAX_NOTE: Final = 500
"""Characters of an error that a note says."""
_GOES_ON: Final = (SystemExit, GeneratorExit, NeedsDecisionError, RefusedError, StoreError)
"""After these a person has to decide, or something has to come back: the run goes on when it is opened."""


def outcome_of(error: BaseException | None) -> End | None:
    """What an error that leaves the block says of the run; None where it goes on when it is opened again.

    A group of errors, as a task group raises, says what those in it say; Ctrl-C before what came of it.
    """
    if error is None or isinstance(error, _GOES_ON):
        return None
    if isinstance(error, BaseExceptionGroup):
        said = {outcome_of(one) for one in error.exceptions}
        return "cancelled" if "cancelled" in said else "failed" if "failed" in said else None
    return "failed" if isinstance(error, Exception) else "cancelled"


def note_of(error: BaseException | None) -> str:
    """What happened, in one line; of a group what the first error in it says."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    try:
        said = str(error)
    except Exception:  # an error of somebody else's that cannot even be told
        said = ""
    return shorten(f"{type(error).__name__}: {said}" if said else type(error).__name__, MAX_NOTE)
