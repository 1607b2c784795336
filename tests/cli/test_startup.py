"""What the real program loads, and how it behaves as a process: pipes, signals, encodings."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from inside import completed

HEAVY = {
    "pydantic",
    "pydantic_core",
    "boto3",
    "botocore",
    "hyperscan",
    "cryptography",
    "zstandard",
    "orjson",
    "rich",
    "opentelemetry",
}
PROBE = """
import sys
from archiver.cli import main
sys.argv = ["archiver", *sys.argv[1:]]
try:
    main()
except SystemExit as end:
    print(end.code, *sorted({name.partition(".")[0] for name in sys.modules}), file=sys.stderr)
"""


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["--version"],
        ["archive", "--help"],
        ["restore", "-h"],
        ["doctor", "-h"],
        ["recipients", "-h"],
        ["recipients", "list", "-h"],
    ],
)
def test_help_loads_nothing_heavy(arguments: list[str], home: Path) -> None:
    done = subprocess.run([sys.executable, "-c", PROBE, *arguments], capture_output=True, text=True)
    code, *modules = done.stderr.split()
    assert code == "0"
    assert "typer" in modules
    assert not HEAVY & set(modules)


def test_a_closed_pipe_is_quiet(home: Path, process: Callable[..., subprocess.Popen[str]]) -> None:
    for arguments in (["schema", "--list"], ["schema", "checkpoint"], ["--help"]):
        running = process(*arguments)
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.close()
        assert running.stderr.read() == ""
        assert running.wait() in {141, 1}
        running.stderr.close()


def test_a_closed_pipe_has_the_code_that_shells_know(process: Callable[..., subprocess.Popen[str]]) -> None:
    running = process("schema", "checkpoint")
    assert running.stdout is not None
    assert running.stderr is not None
    running.stdout.close()
    running.stderr.close()
    assert running.wait() == 141


SLEEPER = """
import sys, time
from archiver.cli import app, main
from archiver.scratch import Scratch

def schema() -> None:
    with Scratch() as scratch:
        print(scratch.path, flush=True)
        time.sleep(30)

app.COMMANDS["schema"] = schema
sys.argv = ["archiver", "schema"]
main()
"""


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_signals_end_it_tidily(number: signal.Signals, code: int, home: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SLEEPER],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),  # noqa: PLW1509 - `nohup make test` ignores one
    ) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        scratch = Path(running.stdout.readline().strip())
        assert scratch.is_dir()
        running.send_signal(number)
        assert running.wait(120) == code
        assert running.stderr.read() == ""
        assert not scratch.exists()


def test_an_ignored_hangup_stays_ignored(home: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SLEEPER],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),  # noqa: PLW1509 - as `nohup` does
    ) as running:
        assert running.stdout is not None
        running.stdout.readline()
        running.send_signal(signal.SIGHUP)
        with pytest.raises(subprocess.TimeoutExpired):
            running.wait(0.3)
        running.send_signal(signal.SIGTERM)
        assert running.wait(120) == 143


def test_a_terminal_that_knows_only_ascii(home: Path, process: Callable[..., subprocess.Popen[str]]) -> None:
    running = process("show", "日本", env={**os.environ, "PYTHONIOENCODING": "ascii"})
    _, err = running.communicate()
    assert running.returncode == 2
    assert "Traceback" not in err


def test_completion_knows_commands_and_options(home: Path) -> None:
    program = "import sys; from archiver.cli import main; sys.argv = ['archiver']; main()"
    answers = {
        "archiver res": "restore",
        "archiver restore --pl": "--plan",
        "archiver doc": "doctor",
        "archiver init --with": "--without-fencing",
        "archiver recipients ": "list",
        "archiver recipients list --ru": "--run",
        "archiver restore r --accept git_d": "git_dirty",
        "archiver restore --vers": "--version",
    }
    for words, answer in answers.items():
        assert completed(words).split() == [answer]
    words, answer = next(iter(answers.items()))
    environ = {"_ARCHIVER_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": "1"}
    done = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, **environ}, capture_output=True, text=True
    )
    assert done.stdout.split() == [answer]


def test_first_use_at_a_real_terminal(home: Path) -> None:
    (home / "work" / "notes.txt").write_text("a \x1b]0;title\x07 note\n")
    program = "import sys; from archiver.cli import main; main()"
    outer, inner = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", program, "archive", "notes.txt", "--run-id", "r"],
        stdin=inner,
        stdout=inner,
        stderr=inner,
    ) as running:
        os.close(inner)
        shown = b""
        while chunk := _read(outer):
            shown += chunk
        os.close(outer)
        assert running.wait(120) == 0
    text = shown.decode()
    assert "New identity" in text
    assert "Saved run r, checkpoint 1" in text
    assert "\x1b]" not in text


def _read(terminal: int) -> bytes:
    """What a terminal shows next; nothing once the program has ended."""
    try:
        return os.read(terminal, 1 << 16)
    except OSError:
        return b""
