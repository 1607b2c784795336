"""A repair where the file lies: killed at each step, or with a harness that writes on, it loses nothing."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

from archiver.mending import check, mend

SESSION = "0b0c1b5e-51a7-4f36-8d0e-6c9f5b8f2a47"
PROGRAM = """
import os, sys
from pathlib import Path
from archiver.errors import RefusedError
from archiver.mending import mend

folder, path, wanted, what = sys.argv[1:]
steps = 0

def seen(event, given):
    global steps
    changes = event in ("os.link", "os.rename", "os.remove", "os.chmod")
    writes = event == "open" and isinstance(given[2], int) and given[2] & (os.O_WRONLY | os.O_RDWR)
    if not (changes or writes) or not str(given[0]).startswith(folder):
        return
    if what == "append" and event == "os.rename" and given[1] == path:
        with open(path, "a") as out:
            out.write('{"appended": true}\\n')
    steps += 1
    if what == "kill" and steps == int(wanted):
        os.kill(os.getpid(), 9)

sys.addaudithook(seen)
try:
    mend(Path(path), in_place=True)
except RefusedError:
    sys.exit(3)
"""


def session(folder: Path) -> Path:
    call = [{"type": "tool_use", "id": "toolu_1", "name": "bash", "input": {}}]
    shared = {"sessionId": SESSION, "isSidechain": False}
    lines = [
        {
            "parentUuid": None,
            "uuid": "u1",
            **shared,
            "type": "user",
            "message": {"role": "user", "content": "go"},
        },
        {
            "parentUuid": "u1",
            "uuid": "u2",
            **shared,
            "type": "assistant",
            "message": {"role": "assistant", "content": call},
        },
    ]
    path = folder / f"{SESSION}.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def run(path: Path, what: str, step: int = 0) -> int:
    words = [sys.executable, "-c", PROGRAM, str(path.parent), str(path), str(step), what]
    return subprocess.run(words, capture_output=True, check=False).returncode


def test_killed_at_any_step_the_original_is_there_and_a_second_repair_ends_it(tmp_path: Path) -> None:
    for step in range(1, 20):
        folder = tmp_path / str(step)
        folder.mkdir()
        path = session(folder)
        original = path.read_bytes()
        code = run(path, "kill", step)
        backup = path.with_name(path.name + ".orig")
        assert original in [one.read_bytes() for one in (path, backup) if one.exists()]
        if code == 0:
            break
        assert code == -signal.SIGKILL
        mend(path, in_place=True)
        assert check(path).findings == ()
        assert backup.read_bytes() == original
    assert step > 3


def test_what_a_harness_appends_until_the_last_moment_stays_in_its_place(tmp_path: Path) -> None:
    path = session(tmp_path)
    original = path.read_bytes()
    assert run(path, "append") == 3
    assert path.read_bytes() == original + b'{"appended": true}\n'
    assert list(tmp_path.iterdir()) == [path]
