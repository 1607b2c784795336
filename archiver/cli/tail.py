"""The last items of a run's transcript, for a look without a restore."""

from __future__ import annotations

import json
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from archiver.setup import Setup
    from archiver.transcripts.dialect import Facts

_MAX_TEXT = 500


def last_items(run: str, setup: Setup, count: int) -> list[dict[str, Any]]:
    """The last `count` items of the main conversation: `text` for people, `value` as it was archived.

    Looking is not going on: whatever stands against a restore is accepted for the private copy.
    """
    from archiver import audit
    from archiver.restore import plan, restore
    from archiver.scratch import Scratch
    from archiver.transcripts import get_dialect

    accept = [blocker.accept for blocker in plan(run, setup).blockers]
    with Scratch() as scratch, audit.within(setup, "show"):
        restored = restore(run, setup, into=Path(scratch.path) / "restored", accept=accept)
        transcript = restored.checkpoint.transcript
        if not transcript.parts:
            return []
        dialect = get_dialect(transcript.dialect)
        values = deque(transcript.parts[0].items.values(), maxlen=count)
    return [{"text": _told(dialect.facts(value), value), "value": value} for value in values]


def _told(facts: Facts, value: Any) -> str:
    """Who said or did what, in one line."""
    said = [facts.instruction or facts.text]
    said += [f"→ {call.name} {json.dumps(call.arguments, ensure_ascii=False)}" for call in facts.calls]
    said += [f"← {'error: ' if result.is_error else ''}{result.text}" for result in facts.results]
    text = " ".join(filter(None, said))
    if not text:
        text = json.dumps(value, ensure_ascii=False)
    text = " ".join(text.split())
    return f"{facts.role}: {text if len(text) <= _MAX_TEXT else text[:_MAX_TEXT] + '…'}"
