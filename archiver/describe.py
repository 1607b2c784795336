"""A checkpoint from what a transcript says and what the caller adds."""

from __future__ import annotations

import os
import platform
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from archiver import freshness, jsonio
from archiver.freshness.shown import shown
from archiver.model import (
    Checkpoint,
    Environment,
    Evidence,
    JsonValue,
    Outcome,
    Plan,
    Spend,
    Step,
    Transcript,
    Workspace,
    utc_text,
)
from archiver.safetext import shorten
from archiver.transcripts import get_dialect

if TYPE_CHECKING:
    from archiver.config.settings import FreshnessSettings
    from archiver.setup import Setup
    from archiver.transcripts.survey import PartSurvey
    from archiver.transcripts.tools import Ran

MAX_OBJECTIVE = 2000
"""Characters of the first instruction that become the objective; the transcript holds the whole of it."""
MAX_COMMAND = 500
"""Characters of a command that serves as evidence."""
MAX_EVIDENCE = 20
ITEMS_TO_LOOK_AT = 64
"""Items among which a session id is looked for."""


@dataclass(frozen=True, slots=True)
class Given:
    """What the caller says about a run; None where the transcript or the run's last record is to say it."""

    run_id: str | None = None
    task_id: str | None = None
    user_id: str | None = None
    outcome: Outcome | None = None
    phase: str | None = None
    note: str | None = None


def run_id_of(transcript: Transcript, paths: Sequence[Path]) -> str:
    """The session id that the first items state, or else a name that is always the same for this file."""
    dialect = get_dialect(transcript.dialect)
    main = transcript.parts[0] if transcript.parts else None
    if main is not None and main.media != "raw":
        if session := dialect.facts([main.header]).session:
            return session
        for line in islice(main.items.lines(), ITEMS_TO_LOOK_AT):
            if session := dialect.facts(jsonio.loads(line)).session:
                return session
    path = paths[0].resolve()
    return f"{path.stem}-{uuid.uuid5(uuid.NAMESPACE_URL, path.as_uri()).hex[:8]}"


def from_transcript(
    transcript: Transcript, surveys: Sequence[PartSurvey], run: str, task: str, now: datetime
) -> Checkpoint:
    """The state that the main part of a transcript states: objective, turns, spend, times, where it ran."""
    facts = surveys[0].facts if surveys else None
    if facts is None:
        return Checkpoint(
            run_id=run,
            task_id=task,
            created_at=now,
            checkpoint_at=now,
            transcript=transcript,
            environment=host(),
        )
    last = facts.last_at or now
    first = min(facts.first_at or last, last)
    return Checkpoint(
        run_id=run,
        task_id=task,
        objective=shorten(facts.objective, MAX_OBJECTIVE),
        iteration=facts.turns,
        turn=facts.turns,
        created_at=first,
        checkpoint_at=last,
        spend=Spend(
            tokens_in=sum(s.facts.tokens_in for s in surveys),
            tokens_out=sum(s.facts.tokens_out for s in surveys),
            tokens_cached=sum(s.facts.tokens_cached for s in surveys),
            cost=facts.cost or 0.0,
            seconds=(last - first).total_seconds(),
            iterations=facts.turns,
        ),
        plan=_plan(surveys[0]),
        evidence=_evidence(surveys[0]),
        transcript=transcript,
        workspace=Workspace(path=facts.cwd),
        environment=host(harness=facts.harness, model=facts.model),
    )


def _plan(survey: PartSurvey) -> Plan:
    """The agent's own task list, as it stood last."""
    steps = [(task.status, Step(id=task.id, title=task.title)) for task in survey.tasks]
    return Plan(
        completed=tuple(step for status, step in steps if status == "completed"),
        remaining=tuple(step for status, step in steps if status != "completed"),
    )


def _evidence(survey: PartSurvey) -> tuple[Evidence, ...]:
    """How each of the last commands ended when it was run last."""
    ended: dict[str, Ran] = {}
    for ran in survey.ran:
        ended.pop(ran.command, None)
        ended[ran.command] = ran
    return tuple(
        Evidence(
            command=shorten(ran.command, MAX_COMMAND),
            exit_status=ran.exit_status,
            at=ran.at,
            summary="failed" if ran.failed else "ended without an error",
        )
        for ran in list(ended.values())[-MAX_EVIDENCE:]
    )


def complete(
    checkpoint: Checkpoint, given: Given, run: str, task: str, probes: dict[str, JsonValue]
) -> Checkpoint:
    """The checkpoint with what the caller says instead of what was read, and with these captures."""
    said = {
        name: value
        for name in ("user_id", "outcome", "phase", "note")
        if (value := getattr(given, name)) is not None
    }
    environment = checkpoint.environment.model_copy(update={"probes": probes})
    return checkpoint.model_copy(update={**said, "run_id": run, "task_id": task, "environment": environment})


def apart(setup: Setup) -> tuple[Path, ...]:
    """What a save or a restore itself writes to: in a work tree that is no change of the run's."""
    url = urlsplit(setup.store.url)
    store = (Path(unquote(url.path)),) if url.scheme == "file" else ()
    trail = (setup.settings.trust.witness, setup.settings.audit.file)
    return (*store, *(path for path in trail if path is not None))


def is_captured(checkpoint: Checkpoint) -> bool:
    """Whether probes were asked already when this very checkpoint was taken, as their time says."""
    return checkpoint.environment.probes.get("age") == {"at": utc_text(checkpoint.checkpoint_at)}


def captured(checkpoint: Checkpoint, probes: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """What probes captured now, with what the checkpoint brings along.

    What the caller put there counts before it, but not what is left of an earlier checkpoint of the run: a
    probe that finds nothing now must not speak of what it found then.
    """
    brought = checkpoint.environment.probes
    if "age" not in brought:
        return {**probes, **brought}
    asked = {probe.name for probe in freshness.all_probes()}
    return {name: value for name, value in brought.items() if name not in asked} | probes


def world(
    checkpoint: Checkpoint, settings: FreshnessSettings, watch: Sequence[str], now: datetime
) -> freshness.Context:
    """What probes may look at when a redacted checkpoint is saved."""
    return freshness.Context(
        now=now,
        checkpoint_at=checkpoint.checkpoint_at,
        workspace=workspace_folder(checkpoint),
        max_age=settings.max_age,
        timeout=settings.timeout.total_seconds(),
        network=True,
        hosts=settings.hosts,
        watch=tuple(dict.fromkeys((*settings.watch, *watch))),
        environ=dict(os.environ),
        environment=checkpoint.environment,
        shown=shown(checkpoint.transcript),
        budget=checkpoint.budget,
        spend=checkpoint.spend,
        pending=checkpoint.plan.pending_approvals,
    )


def workspace_folder(checkpoint: Checkpoint) -> Path | None:
    """The folder the run worked in, when it is on this machine and can be looked at."""
    path = checkpoint.workspace.path
    if not path or "\0" in path:
        return None
    folder = Path(path)
    try:
        return folder if folder.is_absolute() and folder.is_dir() else None
    except (OSError, ValueError):  # another user's folder, a name too long, half a character
        return None


def captured_folder(checkpoint: Checkpoint) -> Path | None:
    """The folder whose files are saved with a run, also where it is not there: that is worth a word."""
    path = checkpoint.workspace.path
    return Path(path) if path and os.path.isabs(path) else None  # noqa: PTH117 - whatever it holds


def host(harness: str | None = None, model: str | None = None) -> Environment:
    """This machine, and what a run says it ran in."""
    return Environment(
        harness=harness, model=model, platform=platform.platform(), python=platform.python_version()
    )
