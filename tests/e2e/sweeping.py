"""Runs on disk for sweeps, a sweep in this process, and many processes that are killed or sweep at once.

python sweeping.py kill CONFIG FOLDER EVERY [PARALLEL]   die at the n-th step of a sweep, for each n
python sweeping.py race CONFIG FOLDER HOSTS              so many hosts sweep at once; prints their errors
python sweeping.py serve CONFIG FOLDER                   sweep once for each line that is read
"""

from __future__ import annotations

import json
import os
import sys
import time
import uuid
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from archiver.catalog import Catalog
from archiver.config import Settings, load
from archiver.config.sweeping import SourceSettings
from archiver.setup import Setup, open_setup
from archiver.sources import configured
from archiver.sweep.report import Report, Row
from archiver.sweep.sweeping import Options, Sweep

DAYS = 2 * 86_400
"""Seconds that a run is old by default: it is quiet, and the world that it was in is not captured."""


def session(folder: Path, number: int = 1, turns: int = 1, *, age: float = DAYS, words: str = "") -> Path:
    """A small session of Claude Code, always the same for one number; it grows with its turns."""
    run = str(uuid.uuid5(uuid.NAMESPACE_OID, str(number)))
    lines: list[dict[str, Any]] = []
    for turn in range(turns):
        common = {"sessionId": run, "timestamp": f"2026-01-02T03:{turn:02}:05.000Z", "cwd": "/nowhere"}
        asked = {"role": "user", "content": f"Rename table {number}, step {turn}. {words}"}
        answer = {
            "id": f"msg_{number}_{turn}",
            "type": "message",
            "role": "assistant",
            "model": "claude-x",
            "content": [{"type": "text", "text": f"Done with {turn}."}],
            "stop_reason": "end_turn",
            "usage": {"input_tokens": 10, "output_tokens": 5},
        }
        parent = lines[-1]["uuid"] if lines else None
        first, second = (str(uuid.uuid5(uuid.NAMESPACE_OID, f"{run} {turn} {part}")) for part in (0, 1))
        lines.append({"type": "user", "uuid": first, "parentUuid": parent, "message": asked, **common})
        lines.append({"type": "assistant", "uuid": second, "parentUuid": first, "message": answer, **common})
    return written(folder / "-p" / f"{run}.jsonl", "".join(json.dumps(line) + "\n" for line in lines), age)


def written(path: Path, text: str, age: float = DAYS) -> Path:
    """A file that was written so many seconds ago."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    at = time.time() - age
    os.utime(path, (at, at))
    return path


def run_of(path: Path) -> str:
    return path.stem


def with_sources(settings: Settings, *sources: tuple[str, Path], **sweep: Any) -> Settings:
    """The settings with these sources, each a kind and a folder."""
    made = tuple(SourceSettings.model_validate({"kind": kind, "path": path}) for kind, path in sources)
    return settings.model_copy(update={"sweep": settings.sweep.model_copy(update={"sources": made, **sweep})})


def swept(setup: Setup, *sources: tuple[str, Path], state: Path | None = None, **options: Any) -> Swept:
    """One sweep in this process; `state` is the memory of another host."""
    changed = {"state": state} if state is not None else {}
    setup = replace(setup, settings=with_sources(setup.settings, *sources, **changed))
    work = Sweep(setup, configured(setup.settings), Options(**options))
    return Swept(list(work), work.report)


class Swept:
    """What came of one."""

    def __init__(self, rows: list[Row], report: Report) -> None:
        self.rows, self.report, self.total = rows, report, report.total()

    def __repr__(self) -> str:
        return f"{self.total} {self.report.errors}"

    def of(self, what: str) -> list[str]:
        """Runs of which that became."""
        return sorted(row.run for row in self.rows if row.what == what)


def numbers(setup: Setup) -> dict[str, list[int]]:
    """The numbers of each run in the store; their chains are whole."""
    catalog = Catalog(setup)
    return {run: [link.record.seq for link in catalog.chain(run).links] for run in catalog.runs()}


def objects(setup: Setup) -> set[str]:
    """Names of all that lies in the store."""
    return {info.name for info in setup.store.list()}


# --- as processes ---


def _once(config: Path, folder: Path, **sweep: Any) -> list[str]:
    settings = with_sources(load(config), ("claude-code", folder), **sweep)
    setup = open_setup(settings, need="write")
    work = Sweep(setup, configured(settings), Options(wait=timedelta(0)))
    list(work)
    return [f"{where}: {type(error).__name__}: {error}" for where, error in work.report.errors]


def _warm(config: Path, folder: Path) -> None:
    """Once before, so that no child needs time and steps for imports and rules."""
    session(folder.parent / "warm", 0)
    _once(config, folder.parent / "warm")


def kill(config: Path, folder: Path, every: int, parallel: int) -> None:
    """At every so many events of a sweep of one new run; the next sweep finishes what was left."""
    from killing import dies_at, remove_just_made
    from starting_over import Beginning

    from archiver.sources import OpenFiles

    def sweep() -> None:
        assert not _once(config, folder, parallel=parallel)

    _warm(config, folder)
    OpenFiles.look = classmethod(lambda cls: cls())  # thousands of steps, and others each time
    session(folder)
    beginning, event, done = Beginning(config), 1, False
    while not done:
        done = not dies_at(event, sweep)
        setup = open_setup(load(config), need="write")
        found = numbers(setup)
        assert all(one == [1] for one in found.values()), (event, found)
        print(json.dumps({"event": event, "runs": len(found)}), flush=True)
        assert not dies_at(0, sweep)  # at none
        assert list(numbers(setup).values()) == [[1], [1]], event
        remove_just_made(setup)
        beginning.again()
        event += every
    assert len(found) == 2, found


def race(config: Path, folder: Path, hosts: int) -> None:
    _warm(config, folder)
    gate_out, gate_in = os.pipe()
    children = []
    for host in range(hosts):
        child = os.fork()
        if child == 0:
            code = 70
            try:
                os.close(gate_in)
                os.environ["XDG_STATE_HOME"] = str(folder.parent / f"host-{host}")
                os.read(gate_out, 1)
                wrong = _once(config, folder)
                os.write(1, json.dumps(wrong).encode() + b"\n")
                code = 1 if wrong else 0
            finally:
                os._exit(code)
        children.append(child)
    os.close(gate_in)
    for child in children:
        os.waitpid(child, 0)


def serve(config: Path, folder: Path) -> None:
    _warm(config, folder)
    print("ready", flush=True)
    for _ in sys.stdin:
        child = os.fork()
        if child == 0:
            code = 70
            try:
                os.environ["AWS_SDK_UA_APP_ID"] = f"process-{os.getpid()}"
                code = 1 if _once(config, folder) else 0
            finally:
                os._exit(code)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    command, config, folder = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    if command == "kill":
        kill(config, folder, int(sys.argv[4]), int(sys.argv[5]) if sys.argv[5:] else 2)
    elif command == "race":
        race(config, folder, int(sys.argv[4]))
    else:
        serve(config, folder)
