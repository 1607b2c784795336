"""The running summary: what the transcript itself states, so that nothing has to be believed of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from archiver.compact.notes import Conclusion
from archiver.compact.text import one_line
from archiver.errors import UsageError
from archiver.model import Evidence, Plan, Transcript
from archiver.transcripts.tools import Task

_LINE: Final = 300
_SHOWN: Final = 30
_LONGEST: Final = 1 << 20
_MARKS: Final = {"completed": "[x]", "in_progress": "[>]", "pending": "[ ]"}


@dataclass(frozen=True, slots=True)
class CommandRun:
    """A command with how its latest run ended; `conclusion` is None when no result is known."""

    command: str
    conclusion: Conclusion | None


@dataclass(frozen=True, slots=True)
class SummaryFacts:
    """What a summary may be made of: redacted text only.

    Files and commands come oldest first, each once, at its latest call; `tasks` is the plan that the agent
    keeps for itself. They are the same before and after compaction. `previous` is the summary that the
    checkpoint came with, `transcript` the redacted transcript before compaction, to be read item by item.
    """

    objective: str
    files_written: tuple[str, ...]
    commands: tuple[CommandRun, ...]
    tasks: tuple[Task, ...]
    plan: Plan
    evidence: tuple[Evidence, ...]
    last_text: str
    previous: str
    transcript: Transcript


Summarise = Callable[[SummaryFacts], str]


def default_summary(facts: SummaryFacts) -> str:
    """A bounded text of plain lines under fixed headings; empty when nothing is known."""
    sections = (
        ("Objective", [facts.objective] if facts.objective else []),
        ("Files written", facts.files_written),
        ("Commands, latest run of each", [_command(run) for run in facts.commands]),
        ("Plan", _plan(facts)),
        ("Evidence", [_evidence(evidence) for evidence in facts.evidence]),
        ("Last said", [facts.last_text] if facts.last_text else []),
    )
    return "\n".join(line for title, lines in sections for line in _section(title, lines))


def checked(summary: object) -> str:
    """A callable's summary, if it is text that can be kept; else `UsageError`."""
    if not isinstance(summary, str):
        raise UsageError(
            f"the summary callable gave {type(summary).__name__}, not str",
            remedy="let it return the summary's text",
        )
    try:
        size = len(summary.encode())
    except UnicodeEncodeError as error:
        raise UsageError("the summary holds a lone surrogate", remedy="let it return sound text") from error
    if size > _LONGEST:
        raise UsageError(
            f"the summary has {size} bytes, more than {_LONGEST}", remedy="let it return less text"
        )
    return summary


def _section(title: str, lines: Iterable[str]) -> list[str]:
    short = [line for line in (one_line(line, _LINE) for line in lines) if line]
    if not short:
        return []
    more = len(short) - _SHOWN
    shown = short[-_SHOWN:]
    left = [f"- ({more} earlier ones are not shown)"] if more > 0 else []
    return [f"{title}:", *left, *(f"- {line}" for line in shown)]


def _command(run: CommandRun) -> str:
    if run.conclusion is None:
        return f"{run.command}: no result recorded"
    said = f"; {run.conclusion.last}" if run.conclusion.last else ""
    return f"{run.command}: {run.conclusion.status}{said}"


def _plan(facts: SummaryFacts) -> list[str]:
    """The checkpoint's plan, and of the agent's own list what that does not say."""
    titles = {step.title for step in (*facts.plan.completed, *facts.plan.remaining)}
    return [*_steps(facts.plan), *(_task(task) for task in facts.tasks if task.title not in titles)]


def _steps(plan: Plan) -> list[str]:
    return [
        *(f"[x] {step.title}" for step in plan.completed),
        *(f"[ ] {step.title}" for step in plan.remaining),
        *(f"[?] waits for approval: {approval.question}" for approval in plan.pending_approvals),
    ]


def _task(task: Task) -> str:
    return f"{_MARKS[task.status]} {task.title}"


def _evidence(evidence: Evidence) -> str:
    status = "" if evidence.exit_status is None else f": exit {evidence.exit_status}"
    said = f"; {evidence.summary}" if evidence.summary else ""
    return f"{evidence.command}{status}{said}"
