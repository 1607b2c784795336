"""Calls as a harness makes them: real processes, real input, an answer at once, and the work afterwards."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from inside import command

from archiver.errors import InputNotFoundError, RefusedError, UsageError
from archiver.hooks import event, log, work
from hooks.sessions import PROGRAM, Session, call, lines

LOADED = """
import sys
from archiver.hooks import calling
calling._detached = lambda: True
calling.call([])
print(*sorted({name for name in sys.modules}))
"""
LIGHT = {"archiver", "archiver.hooks", "archiver.hooks.calling", "archiver.hooks.early"}


def test_a_session_is_saved_while_it_goes_on_and_when_it_is_over(session: Session) -> None:
    done = session.call("Stop", stop_hook_active=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    (first,) = lines(1)
    assert (first["hook"], first["event"], first["seq"]) == ("Stop", "archived", 1)
    assert first["run"] == session.path.stem
    assert command("list", "--json").json["runs"][0]["outcome"] == "running"

    session.call("Stop")  # within `run.floor`: nothing for it
    session.call("SessionEnd", reason="prompt_input_exit")
    second = lines(2)[-1]
    assert (second["hook"], second["event"], second["seq"]) == ("SessionEnd", "archived", 2)
    assert command("list", "--json").json["runs"][0]["outcome"] == "crashed"  # it ends in an open call

    session.call("SessionEnd", reason="other")  # the same content and the same end
    third = lines(3)[-1]
    assert (third["hook"], third["event"]) == ("SessionEnd", "unchanged")
    status = command("hook", "claude-code", "status", "--json").json
    assert status["last_save_worked"] is True
    assert status["problems"] == []
    assert command("verify", session.path.stem).code == 0


def test_a_store_that_is_away_is_a_line_and_the_next_call_saves(session: Session, home: Path) -> None:
    store = home / ".local" / "share" / "checkpoint-archiver" / "store"
    away = store.with_name("away")
    store.rename(away)
    assert session.call("PreCompact", trigger="auto").returncode == 0
    (failed,) = lines(1)
    assert (failed["event"], failed["error"]) == ("failed", "StoreMissingError")
    assert failed["remedy"]
    assert command("hook", "claude-code", "status", "--json").json["last_save_worked"] is False
    away.rename(store)
    session.call("PreCompact", trigger="manual")  # waits for no floor
    assert lines(2)[-1]["event"] == "archived"


def test_whatever_is_said_it_answers_nothing_and_writes_one_line(home: Path) -> None:
    secret = home / "secret.jsonl"
    secret.mkdir()
    pipe = home / "pipe.jsonl"
    os.mkfifo(pipe)
    text = home / ".netrc"
    text.write_text("machine")
    link = home / "link.jsonl"
    link.symlink_to("/etc/hostname")
    foreign = home / "foreign.jsonl"
    foreign.symlink_to("/etc/passwd")
    paths: list[object] = [None, 7, "", "x.jsonl", "\0", "/" * 5000, [], str(secret), str(pipe), str(text)]
    paths += [str(link), str(foreign), "/proc/self/mem", "/dev/zero", "~nobody/x.jsonl", "\ud800"]
    hostile = [
        b"null",
        b"\xff\xfe",
        b"[" * 200_000,
        b'{"hook_event_name": "Stop"',
        b'{"hook_event_name": ["Stop"]}',
        b'{"hook_event_name": "PreToolUse"}',
        *(json.dumps({"hook_event_name": "Stop", "transcript_path": path}).encode() for path in paths),
    ]
    for data in hostile:
        with pytest.raises((UsageError, RefusedError, InputNotFoundError)) as refused:
            event.read(data, 0.0)
        assert not re.search("proc|zero|netrc|secret|passwd", str(refused.value))
    called = [b"", b"x" * (8 << 20) + b"yz", hostile[-1]]
    for data in called:
        done = call(data)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b""), data[:80]
    found = lines(len(called))
    assert len(found) == len(called)
    assert {line["event"] for line in found} == {"failed"}
    assert {line["error"] for line in found} == {"UsageError"}
    assert all(line["remedy"] for line in found)


def test_a_path_that_is_none_is_named_without_what_is_secret(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "hunter" + "-2-" + os.urandom(9).hex()
    monkeypatch.setenv("HOOK_TEST_PASSWORD", secret)
    event_ = {"hook_event_name": "Stop", "transcript_path": f"sessions/{secret}/" + "x" * 5000}
    work.work([], json.dumps(event_).encode(), 0.0)
    work.work([], b"{", 0.0)
    bad, none = lines(2)
    assert (bad["event"], bad["hook"], bad["error"]) == ("failed", "Stop", "UsageError")
    assert bad["path"].startswith("sessions/[REDACTED")
    assert len(bad["path"]) < 400
    assert secret not in log.place().read_text()
    assert (none["hook"], none["path"], none["run"]) == (None, None, None)


def test_a_file_that_is_not_there_is_no_failure(session: Session) -> None:
    session.path.unlink()
    session.call("SessionEnd", reason="other")  # of a session in which nothing was said
    assert lines(1)[0]["event"] == "nothing"
    assert command("hook", "claude-code", "status", "--json").json["last_save_worked"] is None


def test_words_and_a_configuration_that_are_wrong_are_lines(session: Session, home: Path) -> None:
    said = json.dumps(session.event("Stop")).encode()
    work.work(["--config"], said, 0.0)
    for arguments in (["--bogus"], ["--config", str(home / "none.toml")]):
        done = call(said, *arguments)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert {line["error"] for line in lines(3)} == {"UsageError", "ConfigError"}


def test_nothing_heavy_is_loaded_before_the_harness_goes_on(home: Path) -> None:
    done = subprocess.run([sys.executable, "-c", LOADED], input=b"{}", capture_output=True, check=True)
    ours = {name for name in done.stdout.decode().split() if name.split(".")[0] == "archiver"}
    assert ours == LIGHT
    heavy = {"pydantic", "typer", "orjson", "cryptography", "boto3", "hyperscan", "asyncio", "subprocess"}
    assert not heavy & set(done.stdout.decode().split())


def test_the_program_takes_the_same_short_way(home: Path) -> None:
    """The whole command line is not loaded for a call: its process holds only what a call needs."""
    main = (
        "from archiver.cli import main\ntry:\n    main()\nexcept SystemExit as end:\n    assert not end.code"
    )
    program = "import sys; sys.argv = ['archiver', 'hook', 'claude-code', 'run']\n"
    program += LOADED.replace("calling.call([])", main)
    done = subprocess.run([sys.executable, "-c", program], input=b"{}", capture_output=True, check=True)
    ours = {name for name in done.stdout.decode().split() if name.split(".")[0] == "archiver"}
    assert ours == {*LIGHT, "archiver.cli"}


DETACHED = """
import json, os, sys
from archiver.hooks import calling, work
def told(arguments, data, at):
    fds = [name for name in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{name}")]
    about = {"sid": os.getsid(0), "pgid": os.getpgid(0), "cwd": os.getcwd(), "nice": os.nice(0)}
    about |= {"ppid": os.getppid(), "fds": sorted(map(int, fds)), "data": data.decode()}
    with open(sys.argv[1] + ".new", "w") as file:
        json.dump(about, file)
    os.rename(sys.argv[1] + ".new", sys.argv[1])
work.work = told
sys.exit(calling.call([]))
"""


def test_the_work_has_nothing_of_the_harness(home: Path, tmp_path: Path) -> None:
    told = tmp_path / "told"
    reader, writer = os.pipe()
    running = subprocess.Popen(
        [sys.executable, "-c", DETACHED, str(told)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        pass_fds=[writer],
    )
    os.close(writer)
    assert running.communicate(b'{"a": 1}', timeout=60) == (b"", None)
    assert os.read(reader, 1) == b""  # nobody holds the other end any more
    os.close(reader)
    until = time.monotonic() + 60
    while not told.exists() and time.monotonic() < until:
        time.sleep(0.02)
    about = json.loads(told.read_text())
    assert about["sid"] != os.getsid(0)
    assert about["pgid"] not in (os.getpgid(0), running.pid)
    assert about["cwd"] == "/"
    assert about["nice"] >= os.nice(0) + 10 or about["nice"] == 19
    assert about["ppid"] != running.pid
    assert set(about["fds"]) <= {0, 1, 2, 3, 4}  # 3 and 4 are the listing of this very folder and the file
    assert about["data"] == '{"a": 1}'


def test_input_that_never_ends_is_not_waited_for(home: Path) -> None:
    running = subprocess.Popen([PROGRAM, "hook", "claude-code", "run"], stdin=subprocess.PIPE)
    try:
        assert running.wait(30) == 0
    finally:
        assert running.stdin is not None
        running.stdin.close()
    assert lines(1)[0]["error"] == "UsageError"


def test_the_log_is_put_aside_when_it_is_full(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "MAX_SIZE", 1000)
    for number in range(20):
        log.write("Stop", "s" * 100, "failed", number=number)
    old = log.place().with_name("hooks.jsonl.1")
    numbers = [
        json.loads(line)["number"] for path in (old, log.place()) for line in path.read_text().splitlines()
    ]
    assert numbers == list(range(numbers[0], 20))
    assert log.place().stat().st_size < 1300 > old.stat().st_size > 1000
    assert log.place().stat().st_mode & 0o777 == 0o600
    with log.place().open("a") as file:
        file.write("torn")
    assert [line["number"] for line in log.tail()][-1] == 19


def test_a_call_whose_group_is_killed_goes_on(session: Session) -> None:
    running = subprocess.Popen(
        [PROGRAM, "hook", "claude-code", "run"], stdin=subprocess.PIPE, start_new_session=True
    )
    running.communicate(json.dumps({**session.event("Stop"), "transcript_path": "x"}).encode(), timeout=60)
    with suppress(ProcessLookupError):  # nobody is left in it
        os.killpg(running.pid, signal.SIGKILL)
    assert lines(1)[0]["error"] == "UsageError"
