"""The harness's end of the lives: which agent, on which machine, with which death, and how it ended."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

from archiver import jsonio
from archiver.errors import ArchiverError, InputNotFoundError, UsageError
from archiver.testing.machine import Machine
from archiver.testing.points import Point

if TYPE_CHECKING:
    from archiver.deciding import Outcome

_TAIL: Final = 4000
_FAREWELL: Final = 10.0
"""Seconds that the process of all lives may take to end."""


@dataclass(frozen=True, slots=True)
class Agent:
    """A function that a life imports by itself: from `file` where it is not empty, else from `module`."""

    name: str
    module: str
    function: str
    file: str = ""


@dataclass(frozen=True, slots=True)
class Life:
    """How one life ended."""

    ended: bool
    """The agent returned, and its process ended well."""
    seconds: float
    outcome: Any = None
    died: str = ""
    """At what it was killed; empty where it was not."""
    problem: str = ""
    """Why it did not end, where nobody killed it."""
    undecided: tuple[str, ...] = ()
    """Keys of effects that a person has to decide on before it goes on."""
    counts: Mapping[str, int] = field(default_factory=dict)


def agent_of(agent: Callable[..., Any] | str) -> Agent:
    """The agent behind a function of a module, `module:function` or `path.py:function`.

    Raises `UsageError` for what another process could not import.
    """
    if isinstance(agent, str):
        return _named(agent)
    function = getattr(agent, "__qualname__", "")
    module = getattr(agent, "__module__", None) or ""
    if not function or not module or "<" in function:
        raise UsageError(
            f"the agent {agent!r:.200} cannot be run in a process of its own",
            remedy="make it a function of a module: no lambda, no function inside another, no object",
        )
    # The program that was started is imported under another name, so that it does not start anew.
    file = str(inspect.getsourcefile(agent)) if module == "__main__" else ""
    return Agent(f"{Path(file).name if file else module}:{function}", _own(module, file), function, file)


def _named(text: str) -> Agent:
    module, colon, function = text.rpartition(":")
    if not colon or not module or not function:
        raise UsageError(f"{text[:80]!r} names no agent", remedy="write module:function or path.py:function")
    if not module.endswith(".py"):
        return Agent(text, module, function)
    file = Path(module).absolute()
    if not file.is_file():
        raise InputNotFoundError(f"there is no file {file}")
    return Agent(text, _own("", str(file)), function, str(file))


def _own(module: str, file: str) -> str:
    return f"_agent_{Path(file).stem}" if file else module


class Lives:
    """Lives of agents, one at a time; all processes are gone when the block ends."""

    def __enter__(self) -> Lives:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "archiver.testing.child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        process = self._process
        if process.stdin is not None:
            process.stdin.close()
        try:
            process.wait(_FAREWELL)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()

    def live(
        self,
        agent: Agent,
        machine: Machine,
        *,
        point: Point | None = None,
        watched: bool = True,
        resolve: Mapping[str, Outcome] | None = None,
        timeout: float,
    ) -> Life:
        """One life on that machine, killed at `point` if it comes to it, and after `timeout` seconds."""
        outside = point is not None and point.kind == "time"
        tale = machine.notes / "tale"
        tale.unlink(missing_ok=True)
        order = {
            "agent": asdict(agent),
            "path": [*map(str, sys.path)],
            "environment": machine.environment(),
            "folder": str(machine.folder),
            "config": str(machine.config),
            "journal": str(machine.journal),
            "log": str(machine.notes / "log"),
            "tale": str(tale),
            "point": None if point is None or outside else asdict(point),
            "kill_after": point.number if point is not None and outside else None,
            "timeout": timeout,
            "watched": watched,
            "remote": machine.remote,
            "resolve": dict(resolve or {}),
            "because": "found in the journal" if resolve else "",
        }
        return _told(self._ask(order), tale, machine.notes / "log", timeout)

    def _ask(self, order: Mapping[str, Any]) -> dict[str, Any]:
        process, answer = self._process, ""
        if process.stdin is not None and process.stdout is not None:
            try:
                process.stdin.write(jsonio.dumps(order).decode() + "\n")
                process.stdin.flush()
                answer = process.stdout.readline()
            except BrokenPipeError:
                answer = ""
        if not answer:
            raise ArchiverError(
                "the process that runs agents under test ended", remedy="what it wrote to stderr says why"
            )
        found: dict[str, Any] = jsonio.loads(answer)
        return found


def _told(ended: Mapping[str, Any], tale: Path, log: Path, timeout: float) -> Life:
    """What the tale of a life and the end of its process say together."""
    said: dict[str, Any] = {}
    for line in tale.read_bytes().splitlines() if tale.exists() else ():
        said.update(jsonio.loads(line))
    seconds, counts = float(ended["seconds"]), said.get("counts", {})
    if ended["killed"] and seconds < timeout:
        return Life(False, seconds, died=f"after {seconds:.4f} s")
    if "died" in said:
        return Life(False, seconds, died=said["died"])
    if ended["status"] == 0 and "outcome" in said:
        return Life(True, seconds, said["outcome"], counts=counts)
    error = said.get("error") or {}
    return Life(
        False,
        seconds,
        problem=_problem(ended, error, timeout) + _tail(log),
        undecided=tuple(error.get("undecided") or ()),
    )


def _problem(ended: Mapping[str, Any], error: Mapping[str, Any], timeout: float) -> str:
    if ended["killed"]:
        return f"it did not end within {timeout:g} s"
    if error:
        return f"it ended with {error['type']}: {error['message']}"
    return f"its process ended with status {ended['status']}"


def _tail(log: Path) -> str:
    text = log.read_text(encoding="utf-8", errors="replace").strip() if log.exists() else ""
    return f"\n{_indented(text[-_TAIL:].splitlines())}" if text else ""


def _indented(lines: Iterable[str]) -> str:
    return "\n".join(f"    | {line}" for line in lines)
