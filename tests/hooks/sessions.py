"""Sessions on disk, and calls of the hook as a harness makes them: a real process with JSON on its input."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from archiver.hooks import log

SAMPLE = next((Path(__file__).parents[2] / "examples" / "sample-run").glob("*.jsonl"))
PROGRAM = Path(sys.executable).with_name("archiver")
PATIENCE = 120.0


@dataclass(frozen=True)
class Session:
    path: Path

    def event(self, name: str, **more: Any) -> dict[str, Any]:
        """As Claude Code says it, with fields that are of no interest here."""
        return {
            "session_id": self.path.stem,
            "transcript_path": str(self.path),
            "cwd": str(self.path.parent),
            "permission_mode": "default",
            "hook_event_name": name,
            **more,
        }

    def call(self, name: str, **more: Any) -> subprocess.CompletedProcess[bytes]:
        return call(json.dumps(self.event(name, **more)).encode())


def put_session(home: Path) -> Session:
    folder = home / ".claude" / "projects" / "-srv-price-feed"
    folder.mkdir(parents=True)
    path = folder / SAMPLE.name
    path.write_bytes(SAMPLE.read_bytes())
    return Session(path)


def call(data: bytes, *arguments: str, line: str | None = None) -> subprocess.CompletedProcess[bytes]:
    """Call the hook; what it returns it has returned with its output closed, as a harness waits for that."""
    command = line or shlex.join([str(PROGRAM), "hook", "claude-code", "run", *arguments])
    return subprocess.run(["sh", "-c", command], input=data, capture_output=True, timeout=60)


def lines(count: int, *, of: Callable[[dict[str, Any]], bool] = lambda line: True) -> list[dict[str, Any]]:
    """The lines of the log, once there are that many."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        found = [line for line in log.tail() if of(line)]
        if len(found) >= count:
            return found
        time.sleep(0.05)
    raise AssertionError(f"no {count} lines in {PATIENCE} s: {log.tail()}")
