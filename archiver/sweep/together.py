"""Which files tell of one run: they are saved one by one, so that the one written last is the newest."""

from __future__ import annotations

from collections.abc import Iterable

from archiver.sources.agents import ids_in
from archiver.sweep.belonging import HARNESSES
from archiver.sweep.looking import Task


def together(tasks: Iterable[Task]) -> list[list[Task]]:
    """The tasks by run, each run's in the order in which they were written."""
    groups: dict[str, list[Task]] = {}
    for number, task in enumerate(tasks):
        run = _run(task)
        groups.setdefault(f"run {run}" if run is not None else f"task {number}", []).append(task)
    return [sorted(group, key=_turn) for group in groups.values()]


def _turn(task: Task) -> tuple[str, object, int]:
    """Of folders and messages one alone can be the run: the first by name, where none was before."""
    found = task.found
    return ("" if found.kind in HARNESSES else found.key), found.written, task.size


def _run(task: Task) -> str | None:
    """Its id; a session of Claude Code that is not called by it names it inside."""
    found = task.found
    if found.run_id is not None or found.kind != "claude-code":
        return found.run_id
    ids = ids_in(found.paths[0])
    return ids.pop() if len(ids) == 1 else None
