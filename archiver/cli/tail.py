"""The last items of a run's transcript, and what its bundle holds beside it, for a look without a restore."""

from __future__ import annotations

import json
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from archiver.catalog import Chain
    from archiver.model.workspace import WorkspaceDocument
    from archiver.setup import Setup
    from archiver.transcripts.dialect import Facts

_MAX_TEXT = 500


@dataclass(frozen=True, slots=True)
class Tail:
    """The last items, `text` for people and `value` as it was archived; the workspace, if there is one."""

    items: tuple[dict[str, Any], ...]
    workspace: WorkspaceDocument | None


def tail_of(chain: Chain, setup: Setup, count: int) -> Tail:
    """The last `count` items of the main conversation of the newest checkpoint, whose bundle is opened.

    Raises what `looking.look` raises.
    """
    from archiver import looking
    from archiver.progress import Silent
    from archiver.transcripts import get_dialect
    from archiver.workspace_out import document_in

    (record,) = looking.newest(chain, 1)
    with looking.look(record, chain, setup, Silent(), "show") as looked:
        workspace = document_in(looked.folder)
        transcript = looked.checkpoint.transcript
        if not transcript.parts:
            return Tail((), workspace)
        dialect = get_dialect(transcript.dialect)
        values = deque(transcript.parts[0].items.values(), maxlen=count)
    items = ({"text": _told(dialect.facts(value), value), "value": value} for value in values)
    return Tail(tuple(items), workspace)


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
