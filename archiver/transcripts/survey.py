"""One pass over the items of a transcript file: the facts of the run, its plan and its commands."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from archiver.model import Items
from archiver.transcripts.dialect import Call, Dialect, Facts, ToolResult, Usage
from archiver.transcripts.tools import Ran, Task, TaskList, exit_status, is_command, target

MAX_RAN: Final = 100
"""Commands that a survey remembers."""


@dataclass(slots=True)
class RunFacts:
    """What the items say of their run; a message's usage is counted once.

    `instructions` counts what people typed; `objective` is the first of it. `seconds` of wall clock can be
    taken from `first_at` and `last_at`.
    """

    first_at: datetime | None = None
    last_at: datetime | None = None
    session: str | None = None
    cwd: str | None = None
    git_branch: str | None = None
    model: str | None = None
    harness: str | None = None
    tokens_in: int = 0
    tokens_out: int = 0
    tokens_cached: int = 0
    cost: float | None = None
    turns: int = 0
    instructions: int = 0
    objective: str = ""
    system_prompt: str = ""


@dataclass(slots=True)
class PartSurvey:
    """What one part says: its number of items, the facts of the run, its plan, and the commands it ran."""

    items: int = 0
    facts: RunFacts = field(default_factory=RunFacts)
    tasks: tuple[Task, ...] = ()
    """The plan as it stood last."""
    ran: deque[Ran] = field(default_factory=lambda: deque(maxlen=MAX_RAN))
    """The newest commands, in order."""


class Surveyor:
    """Collects the survey of one part from its items, seen in order."""

    def __init__(self, dialect: Dialect) -> None:
        self._out = PartSurvey()
        self._dialect = dialect
        self._tasks = TaskList()
        self._usage = _UsageTotal()
        self._home: str | None = None
        self._home_known = False
        self._message: str | None = None
        self._saying = False
        self._commands: dict[str, str] = {}

    def see(self, item: Any) -> Facts:
        """Take in the next item; what it says is given back, so that others need not ask again."""
        facts = self._dialect.facts(item)
        self._out.items += 1
        if facts.starts:
            self._commands.clear()
        self._turn(facts)
        for call in facts.calls:
            self._call(call)
        for result in facts.results:
            self._result(result, facts)
        self._run(facts)
        return facts

    def _turn(self, facts: Facts) -> None:
        """A turn is one model response; those of side conversations belong to the turn of the main one."""
        if facts.role == "meta":
            return
        if not self._home_known:
            self._home, self._home_known = facts.branch, True
        if facts.branch != self._home:
            return
        before, self._saying = self._saying, facts.role == "assistant"
        if self._saying:
            same = facts.message is not None and facts.message == self._message
            self._out.facts.turns += not (before if facts.piece else same)
            self._message = facts.message

    def _call(self, call: Call) -> None:
        self._tasks.called(call)
        if is_command(call) and not call.answered_elsewhere:
            self._commands[call.id] = target(call) or ""

    def _result(self, result: ToolResult, facts: Facts) -> None:
        self._tasks.answered(result)
        command = self._commands.pop(result.call_id, None)
        if command is not None:
            ran = Ran(command, self._out.items - 1, exit_status(result), result.is_error, facts.at)
            self._out.ran.append(ran)

    def _run(self, facts: Facts) -> None:
        run = self._out.facts
        if facts.at is not None:
            run.first_at = run.first_at or facts.at
            run.last_at = max(run.last_at or facts.at, facts.at)
        run.session = run.session or facts.session
        run.cwd = run.cwd or facts.cwd  # where it was started, and is resumed; a `cd` moves later ones
        run.git_branch = facts.git_branch or run.git_branch
        run.model = facts.model or run.model
        run.harness = facts.harness or run.harness
        if facts.cost is not None:
            run.cost = facts.cost
        if facts.usage is not None:
            self._usage.add(facts.message, facts.usage)
        if facts.instruction:
            run.instructions += 1
            run.objective = run.objective or facts.instruction
        if facts.role == "system" and facts.text and not run.system_prompt:
            run.system_prompt = facts.text

    def finish(self, header: Any = None) -> PartSurvey:
        """The survey; `header` is that of a `json` part, for the system prompt and the model."""
        out, total = self._out, self._usage
        facts = out.facts
        if header is not None:
            self._run(self._dialect.facts([header]))
        facts.tokens_in, facts.tokens_out, facts.tokens_cached = total.into, total.out, total.cached
        if facts.cost is None and total.cost:
            facts.cost = total.cost
        out.tasks = self._tasks.tasks
        if isinstance(header, Mapping):
            facts.system_prompt = facts.system_prompt or _prompt(header.get("system"))
            model = header.get("model")
            facts.model = facts.model or (model if isinstance(model, str) else None)
        return out


def survey(items: Items, dialect: Dialect, header: Any = None) -> PartSurvey:
    """Survey the items of one part in a pass of its own."""
    surveyor = Surveyor(dialect)
    if not items.raw:
        for item in items.values():
            surveyor.see(item)
    return surveyor.finish(header)


class _UsageTotal:
    """Adds up usage; the pieces of one response repeat theirs, and the last piece has the full counts."""

    def __init__(self) -> None:
        self.into = self.out = self.cached = 0
        self.cost = 0.0
        self._seen: dict[int, Usage] = {}

    def add(self, message: str | None, usage: Usage) -> None:
        before = Usage()
        if message is not None:
            before = self._seen.get(hash(message), before)
            self._seen[hash(message)] = usage
        self.into += usage.tokens_in - before.tokens_in
        self.out += usage.tokens_out - before.tokens_out
        self.cached += usage.tokens_cached - before.tokens_cached
        self.cost += usage.cost - before.cost


def _prompt(system: Any) -> str:
    """A system prompt as text; as a list of blocks, their texts joined by line ends."""
    if isinstance(system, str):
        return system
    return "\n".join(_texts(system)) if isinstance(system, list) else ""


def _texts(system: list[Any]) -> Iterator[str]:
    for block in system:
        if isinstance(block, Mapping) and isinstance(block.get("text"), str):
            yield block["text"]
