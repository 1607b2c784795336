"""Effects of a run as objects in a store."""

from __future__ import annotations

from functools import cache
from typing import Any

from archiver.ledger import Ledger
from archiver.model.effect_entry import EffectEnd, EffectEntry
from archiver.redact import Redactor
from archiver.setup import Setup


@cache
def redactor() -> Redactor:
    return Redactor.load(b"k" * 32)


def ledger_of(setup: Setup, run: str, task: str | None = None) -> Ledger:
    """What the store has of the run was read."""
    ledger = Ledger(setup, run, task or run, redactor)
    ledger.load()
    return ledger


def act(
    setup: Setup,
    run: str,
    key: str = "invoice-7",
    status: EffectEnd | None = None,
    *,
    task: str | None = None,
    replayable: bool = False,
    result: Any = None,
) -> EffectEntry:
    """Put the intent of the next attempt, and its outcome if there is a status; returns the intent."""
    ledger = ledger_of(setup, run, task)
    subject = ledger.subject(key, "pay", {"n": 7}, replayable=replayable)
    intent = ledger.seal(ledger.intent(subject))
    ledger.put(intent)
    if status is not None:
        ledger.put(ledger.seal(ledger.outcome(intent.entry, status, result=result)))
    return intent.entry
