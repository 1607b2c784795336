"""Streams that are closed or full, paths nobody can use, ids and numbers that nobody expects."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from archiver.cli import problems
from archiver.cli.rich_table import without_middle
from archiver.cli.text import command as typed
from archiver.cli.text import counted, counts, safe_text, size
from archiver.errors import UntrustedWriterError
from archiver.writers import entry

from .conftest import PROGRAM, Command


def shell(redirection: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, "-c", PROGRAM.format("main", "main"), *arguments]
    return subprocess.run(
        ["/bin/sh", "-c", f"{shlex.join(program)} {redirection}"], capture_output=True, text=True, check=False
    )


@pytest.fixture
def note(command: Command) -> Path:
    assert command("init").code == 0
    path = Path("note.txt")
    path.write_text("a note\n")
    return path


@pytest.mark.parametrize(
    ("redirection", "arguments", "code", "error"),
    [
        (">&-", ["list", "--json"], 141, ""),
        (">&-", ["list", "--help"], 141, ""),
        (">&- 2>&- <&-", ["show", "none"], 9, ""),
        (">/dev/full", ["list", "--json"], 8, "standard output cannot be written"),
        (">/dev/full", ["list", "--help"], 8, "standard output cannot be written"),
        (">/dev/full", ["--version"], 8, "standard output cannot be written"),
        ("2>/dev/full", ["show", "none"], 9, ""),
    ],
)
def test_closed_and_full_streams(
    note: Path, redirection: str, arguments: list[str], code: int, error: str
) -> None:
    done = shell(redirection, *arguments)
    assert done.returncode == code
    assert error in done.stderr
    assert "Traceback" not in done.stderr
    assert "bug" not in done.stderr
    assert "Exception" not in done.stderr
    assert len(done.stderr.splitlines()) <= 2


def test_without_standard_input_a_run_is_archived_unattended(note: Path) -> None:
    done = shell("<&-", "archive", str(note))
    assert (done.returncode, "Traceback" in done.stderr) == (0, False)
    assert done.stdout.startswith("note-")


@pytest.mark.parametrize(
    "arguments",
    [
        ["archive", "x" * 5000],
        ["archive", "note.txt", "./note.txt"],
        ["archive", "note.txt", "--run-id", ""],
        ["archive", "note.txt", "--task", ""],
        ["archive", "--config", "~no-such-user/x"],
        ["list", "--config", "~no-such-user/x"],
        ["list", "--config", "x" * 5000],
        ["list", "--store", "~no-such-user/x"],
        ["restore", "r", "--into", "~no-such-user/x"],
        ["restore", "r", "--into", "x" * 5000],
        ["keygen", "--into", "~no-such-user/x"],
        ["keygen", "--into", "x" * 5000],
        ["init", "store", "--config", "x" * 5000],
        ["init", "~no-such-user/x"],
    ],
)
def test_what_cannot_be_used_is_a_usage_error(command: Command, note: Path, arguments: list[str]) -> None:
    outcome = command(*arguments)
    assert outcome.code == 2, outcome.err
    assert "bug" not in outcome.err


def test_places_of_sessions_that_cannot_be_read(
    command: Command, note: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", "~no-such-user/x")
    assert command("archive").code == 2
    monkeypatch.delenv("CLAUDE_CONFIG_DIR")
    real = Path.iterdir

    def closed(path: Path) -> object:
        if "projects" in path.parts:
            raise PermissionError(13, "Permission denied", str(path))
        return real(path)

    monkeypatch.setattr(Path, "iterdir", closed)
    outcome = command("archive")
    assert (outcome.code, "cannot be read: Permission denied" in outcome.err) == (2, True)


def test_a_removed_working_folder(command: Command, note: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert command("archive", note, "--run-id", "r").code == 0
    gone = Path("gone").absolute()
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert command("list").code == 0
    assert command("restore", "r", "--plan").code == 0
    for arguments in (["archive"], ["archive", "note.txt"], ["restore", "r", "--into", "new"]):
        outcome = command(*arguments)
        assert (outcome.code, "bug" in outcome.err) == (2, False), outcome.err


def test_suggested_commands_are_quoted(command: Command, note: Path) -> None:
    run = "it's $(touch x); é"
    said = command("archive", note, "--run-id", run, terminal=True)
    assert f"archiver show {shlex.quote(run)}; archiver restore {shlex.quote(run)} --plan" in said.out
    assert shlex.split(typed("archiver restore", "-rf", "--accept", "a b")) == [
        *("archiver", "restore", "--accept", "a b", "--", "-rf")
    ]


def test_absurd_numbers_are_told_in_bounded_time() -> None:
    huge = 10**5000
    for count in (huge, -huge, 10**400):
        for text in (size(count), safe_text(count), counted(count, "item"), counts({"rule": count})):
            assert re.search(r"2\^\d+ or more", text)
            assert len(text) < 40
    assert safe_text(2**100) == str(2**100)


def test_one_unknown_key_is_explained_once(capsys: pytest.CaptureFixture[str]) -> None:
    public = f"ed25519:{'A' * 43}="

    def refused(run: str) -> tuple[str, UntrustedWriterError]:
        return run, UntrustedWriterError("unknown", remedy=f"add:\n\n{entry('…', public, run)}")

    problems.report([refused("one"), refused("two"), refused("three")])
    err = capsys.readouterr().err
    assert [line for line in err.splitlines() if line.startswith("error:")] == [
        f"error: {run}" for run in ("one", "two", "three")
    ]
    assert (err.count("next:"), err.count("[[writer]]"), err.count('runs = "*"')) == (1, 1, 1)
    problems.report([refused("one")])
    assert 'runs = "one"' in capsys.readouterr().err


def test_a_configuration_of_another_name_has_to_be_named(command: Command) -> None:
    here = Path.cwd()
    assert f"--config {here / 'two.toml'}" in command("init", "one", "--config", "two.toml").out
    assert "--config" not in command("init", "two", "--config", "archiver.toml").out


def test_the_list_fits_into_eighty_columns(command: Command, note: Path) -> None:
    run = "0b7c2c38-5b0a-4d3f-9d1e-3f9c7f1f2a44"
    more = ("--task", "a task of some length", "--phase", "waiting for tests", "--note", "a long note " * 4)
    assert command("archive", note, "--run-id", run, *more).code == 0
    table = command("list", terminal=True, columns=80).out
    assert max(map(len, re.sub(r"\x1b\[[0-9;]*m", "", table).splitlines())) <= 80
    assert "0b7c2c" in table
    assert run in command("list", terminal=True, columns=140).out
    assert command("list").rows[0][0] == run
    assert without_middle(run, 13) == "0b7c2c…1f2a44"
    assert without_middle("東京" * 9, 5) == "東…京"


@pytest.mark.skipif(os.geteuid() != 0, reason="another user can only be played by root")
def test_another_user_s_folders_are_no_bug(note: Path, home: Path) -> None:
    closed = home / "closed"
    closed.mkdir(mode=0o700)
    other = "import os; os.seteuid(54321); "
    readable = subprocess.run([sys.executable, "-c", other + "import __future__, typer"], capture_output=True)
    if readable.returncode:
        pytest.skip("another user cannot read this interpreter")
    program = other + PROGRAM.format("main", "main")
    for arguments in (
        ["archive", str(closed / "x")],
        ["keygen", "--into", str(closed / "x")],
        ["list", "--config", str(closed / "x")],
        ["init", "s", "--config", str(closed / "x")],
    ):
        done = subprocess.run(
            [sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=False
        )
        assert done.returncode in {2, 8}, done.stderr
        assert "bug" not in done.stderr
        assert "Traceback" not in done.stderr
