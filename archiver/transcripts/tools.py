"""What well-known tool calls are about: commands run and their exit, and the plan that agents keep.

Tool names and arguments are those of Claude Code, Codex and Anthropic's own tools (bash, text editor), read
in public sessions; other tools are taken by the names of their arguments.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal

from archiver.transcripts.dialect import Call, ToolResult
from archiver.transcripts.outcome import PREAMBLE

TaskStatus = Literal["pending", "in_progress", "completed"]

_COMMANDS: Final = frozenset(
    {
        *("bash", "shell", "powershell", "run_command", "execute_command", "run_terminal_cmd"),
        *("exec_command", "shell_command", "local_shell", "container.exec"),
        *("execute_bash", "execute_terminal", "terminal"),
    }
)
_ABOUT: Final = (
    "file_path",
    "notebook_path",
    "path",
    "command",
    "cmd",
    "url",
    "pattern",
    "query",
    "description",
    "prompt",
)
_MAX_TARGET: Final = 200
_EXIT = re.compile(
    rf"\s*(?:Error: )?{PREAMBLE}(?:Exit code|exit status|Process exited with code):?\s+(-?\d{{1,9}})\b", re.I
)
_CREATED = re.compile(r"Task #?([\w-]{1,64}) created")
_MAX_TASKS: Final = 1000
_LISTS: Final = {"TodoWrite": "todos", "update_plan": "plan"}


@dataclass(frozen=True, slots=True)
class Ran:
    """A command that was run: the item of its result, its exit status where the transcript states one."""

    command: str
    item: int
    exit_status: int | None
    failed: bool
    at: datetime | None


@dataclass(frozen=True, slots=True)
class Task:
    """One step of the plan that the agent keeps for itself."""

    id: str
    title: str
    status: TaskStatus


def target(call: Call) -> str | None:
    """The file, command, address or pattern the call is about; a long one is cut and ends in a digest."""
    found = _argument(call, _ABOUT)
    if found is None or len(found) <= _MAX_TARGET:
        return found
    digest = hashlib.sha256(found.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{found[: _MAX_TARGET - 14]}… {digest}"


def is_command(call: Call) -> bool:
    """True for a call that runs a shell command."""
    return call.name.lower() in _COMMANDS and _argument(call, ("command", "cmd")) is not None


def exit_status(result: ToolResult) -> int | None:
    """The exit status that a result states, or None."""
    found = _EXIT.match(result.text[:200])
    return int(found.group(1)) if found else None


def _argument(call: Call, keys: tuple[str, ...]) -> str | None:
    if isinstance(call.arguments, dict):
        for key in keys:
            value = call.arguments.get(key)
            if isinstance(value, list) and value and all(isinstance(word, str) for word in value):
                value = " ".join(value)
            if isinstance(value, str) and value:
                return value
    return None


class TaskList:
    """Follows TodoWrite and update_plan (the list at once), TaskCreate and TaskUpdate (task by task)."""

    def __init__(self) -> None:
        self._tasks: dict[str, Task] = {}
        self._new: dict[str, Task] = {}

    @property
    def tasks(self) -> tuple[Task, ...]:
        return tuple(self._tasks.values())

    def called(self, call: Call) -> None:
        """Take in a call; what is not about the plan changes nothing."""
        arguments = call.arguments
        if not isinstance(arguments, dict):
            return
        listed = arguments.get(_LISTS.get(call.name, ""))
        if isinstance(listed, list):
            made = [_task(str(number), entry) for number, entry in enumerate(listed, 1)]
            self._tasks = {task.id: task for task in made[:_MAX_TASKS] if task is not None}
        elif call.name == "TaskCreate" and len(self._new) < _MAX_TASKS:
            task = _task(call.id, arguments)
            if task is not None:
                self._new[call.id] = task
        elif call.name == "TaskUpdate":
            self._update(str(arguments.get("taskId")), arguments)

    def answered(self, result: ToolResult) -> None:
        """Take in a result: a new task gets the id that the harness gave it."""
        task = self._new.pop(result.call_id, None)
        if task is None or result.is_error or len(self._tasks) >= _MAX_TASKS:
            return
        found = _CREATED.search(result.text)
        task_id = found.group(1) if found else task.id
        self._tasks[task_id] = Task(task_id, task.title, task.status)

    def _update(self, task_id: str, arguments: Mapping[str, Any]) -> None:
        task = self._tasks.get(task_id)
        if task is None:
            return
        if arguments.get("status") == "deleted":
            del self._tasks[task_id]
            return
        subject = arguments.get("subject")
        title = subject if isinstance(subject, str) and subject else task.title
        self._tasks[task_id] = Task(task_id, title, _status(arguments.get("status", task.status)))


def _task(task_id: str, entry: Any) -> Task | None:
    if not isinstance(entry, dict):
        return None
    title = entry.get("content") or entry.get("subject") or entry.get("step")
    return Task(task_id, title, _status(entry.get("status"))) if isinstance(title, str) else None


def _status(value: Any) -> TaskStatus:
    if value == "completed":
        return "completed"
    return "in_progress" if value == "in_progress" else "pending"
