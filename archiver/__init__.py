"""Save, redact, seal and restore the smallest sufficient state of an AI-agent run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from archiver.deciding import Outcome
    from archiver.errors import (
        ArchiverError,
        BudgetExhaustedError,
        EffectDoneError,
        EffectNotRecordedError,
        NeedsDecisionError,
        NotSerialisableError,
        RefusedError,
        RunFinishedError,
        StaleCheckpointError,
        StaleWriterError,
        StoreUnreachableError,
        UsageError,
    )
    from archiver.gate import Answer, Effects
    from archiver.loop.asynchronous import AsyncRun
    from archiver.loop.current import current_run
    from archiver.loop.effect_call import EffectCall
    from archiver.loop.entry import Opening, run
    from archiver.loop.face import Run
    from archiver.loop.given import Budget
    from archiver.loop.left import Left
    from archiver.loop.snapshot import Ticket
    from archiver.loop.tools import effect
    from archiver.model import Approval, Checkpoint, Effect, Evidence, Plan, Record, Spend, Step
    from archiver.model.record import Decision
    from archiver.model.report import Blocker, RestoreReport
    from archiver.policy import Policy
    from archiver.restored import Restored
    from archiver.taking_over import Resumed

__version__ = "0.1.0"

__all__ = [
    "Answer",
    "Approval",
    "ArchiverError",
    "AsyncRun",
    "Blocker",
    "Budget",
    "BudgetExhaustedError",
    "Checkpoint",
    "Decision",
    "Effect",
    "EffectCall",
    "EffectDoneError",
    "EffectNotRecordedError",
    "Effects",
    "Evidence",
    "Left",
    "NeedsDecisionError",
    "NotSerialisableError",
    "Opening",
    "Outcome",
    "Plan",
    "Policy",
    "Record",
    "RefusedError",
    "RestoreReport",
    "Restored",
    "Resumed",
    "Run",
    "RunFinishedError",
    "Spend",
    "StaleCheckpointError",
    "StaleWriterError",
    "Step",
    "StoreUnreachableError",
    "Ticket",
    "UsageError",
    "__version__",
    "current_run",
    "effect",
    "run",
]

_FROM: Final = {
    "Answer": "archiver.gate",
    "Approval": "archiver.model",
    "ArchiverError": "archiver.errors",
    "AsyncRun": "archiver.loop.asynchronous",
    "Blocker": "archiver.model.report",
    "Budget": "archiver.loop.given",
    "BudgetExhaustedError": "archiver.errors",
    "Checkpoint": "archiver.model",
    "Decision": "archiver.model.record",
    "Effect": "archiver.model",
    "EffectCall": "archiver.loop.effect_call",
    "EffectDoneError": "archiver.errors",
    "EffectNotRecordedError": "archiver.errors",
    "Effects": "archiver.gate",
    "Evidence": "archiver.model",
    "Left": "archiver.loop.left",
    "NeedsDecisionError": "archiver.errors",
    "NotSerialisableError": "archiver.errors",
    "Opening": "archiver.loop.entry",
    "Outcome": "archiver.deciding",
    "Plan": "archiver.model",
    "Policy": "archiver.policy",
    "Record": "archiver.model",
    "RefusedError": "archiver.errors",
    "RestoreReport": "archiver.model.report",
    "Restored": "archiver.restored",
    "Resumed": "archiver.taking_over",
    "Run": "archiver.loop.face",
    "RunFinishedError": "archiver.errors",
    "Spend": "archiver.model",
    "StaleCheckpointError": "archiver.errors",
    "StaleWriterError": "archiver.errors",
    "Step": "archiver.model",
    "StoreUnreachableError": "archiver.errors",
    "Ticket": "archiver.loop.snapshot",
    "UsageError": "archiver.errors",
    "current_run": "archiver.loop.current",
    "effect": "archiver.loop.tools",
    "run": "archiver.loop.entry",
}


def __getattr__(name: str) -> Any:
    """Load what is public when it is asked for: a command that needs none of it starts without it."""
    if name not in _FROM:
        raise AttributeError(f"module 'archiver' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_FROM[name]), name)
