"""Values of a checkpoint that hold a placeholder of what redaction took out, and so are no values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from archiver.model import Checkpoint, Effect
from archiver.redact import contains_placeholder


def places(checkpoint: Checkpoint) -> tuple[str, ...]:
    """Where in the state a value holds a placeholder, as `effects[0].arguments`; transcripts are text."""
    return tuple(place for place, value in _values(checkpoint) if contains_placeholder(value))


def without_replay(checkpoint: Checkpoint) -> Checkpoint:
    """The checkpoint in which no effect whose arguments hold a placeholder counts as replayable.

    To run it again with a placeholder would act on the wrong thing.
    """
    if not any(_lost(effect) for effect in checkpoint.effects):
        return checkpoint
    effects = tuple(
        effect.model_copy(update={"replayable": False}) if _lost(effect) else effect
        for effect in checkpoint.effects
    )
    return checkpoint.model_copy(update={"effects": effects})


def _lost(effect: Effect) -> bool:
    return effect.replayable and contains_placeholder(effect.arguments)


def _values(checkpoint: Checkpoint) -> Iterator[tuple[str, Any]]:
    for number, result in enumerate(checkpoint.results):
        for name in ("output", "files", "records", "urls"):
            yield f"results[{number}].{name}", getattr(result, name)
    for number, effect in enumerate(checkpoint.effects):
        yield f"effects[{number}].arguments", effect.arguments
        yield f"effects[{number}].result", effect.result
    for number, evidence in enumerate(checkpoint.evidence):
        yield f"evidence[{number}].command", evidence.command
    for number, approval in enumerate(checkpoint.plan.pending_approvals):
        yield f"plan.pending_approvals[{number}].call_id", approval.call_id
    yield "workspace.path", checkpoint.workspace.path
    yield "workspace.git", checkpoint.workspace.document().get("git")
    yield "environment.probes", dict(checkpoint.environment.probes)
