"""Before anything of the archiver is loaded: turns, last words, and an answer of 0 whatever happens."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from archiver.config import state_home
from archiver.hooks import early, log
from hooks.sessions import lines

BROKEN = """
import sys
from archiver.hooks import calling
class Broken:
    def find_spec(self, name, path=None, target=None):
        if name == "archiver.hooks.work":
            raise SyntaxError("half of a file, with sk-nothing-of-it")
sys.meta_path.insert(0, Broken())
sys.exit(calling.call([]))
"""
DETACHED = """
import json, os, sys
from archiver.hooks import calling
if not calling._detached():
    try:
        os.fstat(int(sys.argv[2]))
        kept = True
    except OSError:
        kept = False
    inputs = [os.readlink(f"/proc/self/fd/{number}") for number in (0, 1, 2)]
    said = {"session": os.getsid(0), "folder": os.getcwd(), "kept": kept, "inputs": inputs}
    said["nice"] = os.nice(0)
    with open(sys.argv[1] + ".new", "w") as file:
        json.dump(said, file)
    os.rename(sys.argv[1] + ".new", sys.argv[1])
"""
WAITS = """
import sys
from archiver.hooks import calling, early
early._PATIENCE = 0
calling.wait_for_turn = lambda: early.wait_for_turn(0)
sys.exit(calling.call([]))
"""
PRESSED = """
import os, signal, sys, time
from archiver.hooks import calling
print("up", flush=True)
sys.exit(calling.call([]))
"""


def run(program: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([sys.executable, "-c", program], input=b"{}", capture_output=True, timeout=60)


def test_the_state_home_is_the_same(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for value in ("", "relative", str(home / "a b")):
        monkeypatch.setenv("XDG_STATE_HOME", value)
        assert early.state() == str(state_home())


def test_a_program_that_cannot_be_loaded_is_a_line(home: Path) -> None:
    done = run(BROKEN)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    (line,) = lines(1)
    assert (line["event"], line["error"], line["message"]) == (
        "failed",
        "SyntaxError",
        "the work could not be begun",
    )
    assert log.place().stat().st_mode & 0o777 == 0o600


def test_few_are_at_work_at_once(home: Path) -> None:
    turns = [early.wait_for_turn(0) for _ in range(early.AT_WORK)]
    assert None not in turns
    assert early.wait_for_turn(0) is None
    assert run(WAITS).returncode == 0
    assert lines(1)[0]["error"] == "TimeoutError"
    for turn in turns:
        assert turn is not None
        os.close(turn)
    last = early.wait_for_turn(0)
    assert last is not None
    os.close(last)
    run(WAITS)
    assert lines(2)[-1]["error"] == "UsageError"  # it came to its work


def test_an_interrupt_is_no_answer_either(home: Path) -> None:
    running = subprocess.Popen(
        [sys.executable, "-c", PRESSED], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert running.stdout is not None
    running.stdout.readline()
    time.sleep(0.1)  # it waits for its input, for longer than that
    running.send_signal(signal.SIGINT)
    said = running.communicate(timeout=60)
    assert (running.returncode, said[1]) == (0, b"")
    assert lines(1)[0]["error"] == "KeyboardInterrupt"


def test_without_an_input_it_is_a_line(home: Path) -> None:
    done = subprocess.run(
        ["sh", "-c", f"exec {sys.executable} -c 'from archiver.hooks import calling; calling.call([])' <&-"],
        capture_output=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert lines(1)[0]["error"] == "UsageError"


def test_what_the_system_says_is_no_bug(home: Path) -> None:
    log.failed("Stop", "s", OSError(28, "No space left on device"))
    (line,) = log.tail()
    assert "No space left on device" in line["message"]
    assert "bug" not in line["message"]


def test_a_torn_line_costs_no_other_one(home: Path) -> None:
    log.write("Stop", "s", "failed", number=1)
    with log.place().open("ab") as file:
        file.write(b'{"time": "20')
    log.write("Stop", "s", "failed", number=2)
    assert [line["number"] for line in log.tail()] == [1, 2]
    assert json.loads(log.place().read_bytes().splitlines()[-1])["number"] == 2


def test_what_goes_on_has_nothing_of_the_harness(tmp_path: Path) -> None:
    """No terminal, no folder, no open file: a harness that waits for these to be let go can end."""
    said = tmp_path / "said.json"
    reading, writing = os.pipe()
    try:
        done = subprocess.run(
            [sys.executable, "-c", DETACHED, str(said), str(writing)], cwd=tmp_path, pass_fds=(writing,)
        )
    finally:
        os.close(writing)
    assert done.returncode == 0
    until = time.monotonic() + 30
    while not said.exists() and time.monotonic() < until:
        time.sleep(0.01)
    found = json.loads(said.read_text())
    os.close(reading)
    assert found["session"] != os.getsid(0)
    assert found["folder"] == "/"
    assert not found["kept"]
    assert found["inputs"] == [os.devnull] * 3
    assert found["nice"] > os.nice(0)
