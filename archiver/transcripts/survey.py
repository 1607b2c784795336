"""One pass over the items of a transcript file: who says what in which turn, calls, results, run facts.

Memory: a dozen bytes an item, about a third of a kilobyte a call.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from archiver import jsonio
from archiver.model import Items
from archiver.transcripts.dialect import Call, Dialect, Facts, Role, ToolResult, Usage
from archiver.transcripts.tools import Ran, Task, TaskList, exit_status, is_command, target, written_file

ROLES: Final[tuple[Role, ...]] = ("meta", "system", "user", "assistant", "tool")
"""A role's code in `PartSurvey.roles` is its index here."""

_CODES: Final = {role: code for code, role in enumerate(ROLES)}


class Flag:
    """What an item holds: bits of an entry of `PartSurvey.flags`."""

    CALLS: Final = 1
    RESULTS: Final = 2
    REASONING: Final = 4
    FOLDABLE: Final = 8
    BLOBS: Final = 16
    INSTRUCTION: Final = 32
    BOUNDARY: Final = 64
    BRANCH: Final = 128
    """It belongs to a side conversation (of this part, also in a part that is all side conversation)."""


@dataclass(frozen=True, slots=True)
class CallSite:
    """Where a call was made. `target` is the file path, command or the like that it is about, shortened when
    long; `digest` is equal for equal name and arguments."""

    item: int
    name: str
    target: str | None
    digest: bytes


@dataclass(frozen=True, slots=True)
class ResultSite:
    """Where a result stands; `size` is that of its text in UTF-8 bytes."""

    item: int
    size: int
    is_error: bool


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
    """What one part holds; the arrays have one entry an item.

    A turn is one model response with its results; `turns[i]` is 0 before the first. An instruction belongs to
    the response that follows it, an item of a side conversation to the turn of the main one. `repeated` holds
    ids that were called or answered more than once: `calls` and `results` know their last place only.
    """

    roles: bytearray = field(default_factory=bytearray)
    turns: array[int] = field(default_factory=lambda: array("I"))
    flags: bytearray = field(default_factory=bytearray)
    sizes: array[int] = field(default_factory=lambda: array("Q"))
    calls: dict[str, CallSite] = field(default_factory=dict)
    results: dict[str, ResultSite] = field(default_factory=dict)
    repeated: set[str] = field(default_factory=set)
    written: dict[str, int] = field(default_factory=dict)
    """Files the calls wrote, in the order of their last write, with the item of the call."""
    ran: list[Ran] = field(default_factory=list)
    tasks: tuple[Task, ...] = ()
    """The plan as it stood last."""
    boundary: int | None = None
    """The last compaction marker of the main conversation."""
    facts: RunFacts = field(default_factory=RunFacts)

    def __len__(self) -> int:
        return len(self.roles)

    def role(self, item: int) -> Role:
        return ROLES[self.roles[item]]

    def has(self, item: int, flag: int) -> bool:
        return bool(self.flags[item] & flag)

    @property
    def unanswered(self) -> list[str]:
        """Ids of calls without a result, in order; those that are answered elsewhere are not in `calls`."""
        return [call_id for call_id in self.calls if call_id not in self.results]


def survey(
    part_items: Items,
    dialect: Dialect,
    header: Any = None,
    watch: Callable[[Any, Facts], object] | None = None,
) -> PartSurvey:
    """Survey the items of one part.

    `header` is that of a `json` part, for the system prompt and the model. `watch` sees each item with its
    facts on the way, so that others need no pass of their own.
    """
    surveyor = Surveyor(dialect)
    for line, item in () if part_items.raw else part_items.pairs():
        facts = surveyor.see(line, item)
        if watch is not None:
            watch(item, facts)
    return surveyor.finish(header)


class Surveyor:
    """Surveys items as they pass by; for who has them parsed anyway. `finish` gives the result."""

    def __init__(self, dialect: Dialect) -> None:
        self.out = PartSurvey()
        self._dialect = dialect
        self._tasks = TaskList()
        self._usage = _UsageTotal()
        self._home: str | None = None
        self._home_known = False
        self._message: str | None = None
        self._opened = False
        self._commands: dict[str, str] = {}

    def see(self, line: bytes, item: Any) -> Facts:
        """Take in the next item and give its facts."""
        facts = self._dialect.facts(item)
        out = self.out
        self._turn(facts)
        index = len(out.roles)
        out.roles.append(_CODES[facts.role])
        out.turns.append(out.facts.turns + self._opened)
        out.sizes.append(len(line))
        out.flags.append(self._flags(facts, item))
        for call in facts.calls:
            self._call(index, call)
        for result in facts.results:
            self._result(index, result, facts)
        self._run(index, facts)
        return facts

    def _turn(self, facts: Facts) -> None:
        if facts.role not in ("user", "assistant"):
            return
        if not self._home_known:
            self._home, self._home_known = facts.branch, True
        if facts.branch != self._home:
            return
        if facts.role == "assistant":
            if facts.message is None or facts.message != self._message:
                self.out.facts.turns += 1
                self._opened = False
            self._message = facts.message
        elif facts.instruction:
            self._opened = True

    def _flags(self, facts: Facts, item: Any) -> int:
        dialect = self._dialect
        flags = 0
        if facts.calls:
            flags |= Flag.CALLS
        if facts.results:
            flags |= Flag.RESULTS
        if facts.has_reasoning:
            flags |= Flag.REASONING
        if facts.instruction:
            flags |= Flag.INSTRUCTION
        if facts.boundary:
            flags |= Flag.BOUNDARY
        if facts.branch is not None:
            flags |= Flag.BRANCH
        if dialect.fold(item) is not item:
            flags |= Flag.FOLDABLE
        if next(dialect.blobs(item), None) is not None:
            flags |= Flag.BLOBS
        return flags

    def _call(self, index: int, call: Call) -> None:
        self._tasks.called(call)
        if call.answered_elsewhere:
            return
        out = self.out
        if call.id in out.calls:
            out.repeated.add(call.id)
        about = target(call)
        out.calls[call.id] = CallSite(index, call.name, about, _digest(call))
        path = written_file(call)
        if path is not None:
            out.written.pop(path, None)
            out.written[path] = index
        if is_command(call):
            self._commands[call.id] = about or ""

    def _result(self, index: int, result: ToolResult, facts: Facts) -> None:
        out = self.out
        if result.call_id in out.results:
            out.repeated.add(result.call_id)
        size = len(result.text.encode("utf-8", "surrogatepass"))
        out.results[result.call_id] = ResultSite(index, size, result.is_error)
        self._tasks.answered(result)
        command = self._commands.pop(result.call_id, None)
        if command is not None:
            out.ran.append(Ran(command, index, exit_status(result), result.is_error, facts.at))

    def _run(self, index: int, facts: Facts) -> None:
        run = self.out.facts
        if facts.at is not None:
            run.first_at = run.first_at or facts.at
            run.last_at = max(run.last_at or facts.at, facts.at)
        run.session = run.session or facts.session
        run.cwd = run.cwd or facts.cwd
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
        if facts.boundary and facts.branch == self._home:
            self.out.boundary = index

    def finish(self, header: Any = None) -> PartSurvey:
        """The survey of all that was seen."""
        out = self.out
        total = self._usage
        out.facts.tokens_in, out.facts.tokens_out, out.facts.tokens_cached = (
            total.into,
            total.out,
            total.cached,
        )
        out.tasks = self._tasks.tasks
        if isinstance(header, Mapping):
            out.facts.system_prompt = out.facts.system_prompt or _prompt(header.get("system"))
            model = header.get("model")
            out.facts.model = out.facts.model or (model if isinstance(model, str) else None)
        return out


class _UsageTotal:
    """Adds up usage; the pieces of one response repeat theirs, and the last piece has the full counts."""

    def __init__(self) -> None:
        self.into = self.out = self.cached = 0
        self._seen: dict[int, Usage] = {}

    def add(self, message: str | None, usage: Usage) -> None:
        before = Usage()
        if message is not None:
            before = self._seen.get(hash(message), before)
            self._seen[hash(message)] = usage
        self.into += usage.tokens_in - before.tokens_in
        self.out += usage.tokens_out - before.tokens_out
        self.cached += usage.tokens_cached - before.tokens_cached


def _digest(call: Call) -> bytes:
    try:
        text = jsonio.again([call.name, call.arguments])
    except RecursionError:  # nested too deeply to be written: equal to nothing but itself
        text = call.id.encode("utf-8", "surrogatepass")
    return hashlib.sha256(text).digest()[:12]


def _prompt(system: Any) -> str:
    """A system prompt as text; as a list of blocks, their texts joined by line ends."""
    if isinstance(system, str):
        return system
    return "\n".join(_texts(system)) if isinstance(system, list) else ""


def _texts(system: list[Any]) -> Iterator[str]:
    for block in system:
        if isinstance(block, Mapping) and isinstance(block.get("text"), str):
            yield block["text"]
