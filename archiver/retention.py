"""How long a checkpoint is kept, by what became of its run."""

from __future__ import annotations

from archiver.model.checkpoint import Outcome
from archiver.model.record import RetentionClass

_CLASSES: dict[Outcome, RetentionClass] = {
    "running": "live",
    "succeeded": "success",
    "failed": "failure",
    "cancelled": "success",
}


def class_of(outcome: Outcome) -> RetentionClass:
    """The class a writer may create objects with: `live` while the run goes on, else the final one.

    A cancelled run is kept as long as one that succeeded: there is no failure to look into.
    """
    return _CLASSES[outcome]
