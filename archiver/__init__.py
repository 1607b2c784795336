"""Save, redact, seal and restore the smallest sufficient state of an AI-agent run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from archiver.deciding import Outcome
    from archiver.errors import ArchiverError, NeedsDecisionError, StaleCheckpointError, StaleWriterError
    from archiver.gate import Answer, Effects
    from archiver.model import Checkpoint, Effect
    from archiver.model.record import Decision
    from archiver.model.report import Blocker, RestoreReport
    from archiver.restored import Restored
    from archiver.taking_over import Resumed

__version__ = "0.1.0"

__all__ = [
    "Answer",
    "ArchiverError",
    "Blocker",
    "Checkpoint",
    "Decision",
    "Effect",
    "Effects",
    "NeedsDecisionError",
    "Outcome",
    "RestoreReport",
    "Restored",
    "Resumed",
    "StaleCheckpointError",
    "StaleWriterError",
    "__version__",
]

_FROM: Final = {
    "Answer": "archiver.gate",
    "ArchiverError": "archiver.errors",
    "Blocker": "archiver.model.report",
    "Checkpoint": "archiver.model",
    "Decision": "archiver.model.record",
    "Effect": "archiver.model",
    "Effects": "archiver.gate",
    "NeedsDecisionError": "archiver.errors",
    "Outcome": "archiver.deciding",
    "RestoreReport": "archiver.model.report",
    "Restored": "archiver.restored",
    "Resumed": "archiver.taking_over",
    "StaleCheckpointError": "archiver.errors",
    "StaleWriterError": "archiver.errors",
}


def __getattr__(name: str) -> Any:
    """Load what is public when it is asked for: a command that needs none of it starts without it."""
    if name not in _FROM:
        raise AttributeError(f"module 'archiver' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_FROM[name]), name)
