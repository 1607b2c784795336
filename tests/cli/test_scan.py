"""`scan`, `redact` and `find-credential` at a terminal, and where else it is said what to rotate."""

from __future__ import annotations

import os
import pty
import random
import string
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import PROGRAM, Command
from .test_commands import session

TOKEN = "ghp_" + "".join(random.Random(11).choices(string.ascii_letters + string.digits, k=36))


def test_at_a_terminal_a_scan_ends_with_what_to_rotate(command: Command, home: Path) -> None:
    Path("a.txt").write_text(f"token {TOKEN}")
    done = command("scan", "a.txt", terminal=True)
    assert done.code == 1
    assert "1 file looked at" in done.out
    assert "in force, version" in done.out
    said = done.out.split("Rotate these")[1]
    assert "github-token (" in said
    assert "a.txt line 1" in said
    assert "revoke it where it was issued" in said
    assert TOKEN not in done.out + done.err
    clean = command("scan", Path(__file__), terminal=True)
    assert clean.code == 0
    assert "No credentials found." in clean.out


def test_a_redaction_says_where_the_copies_are(command: Command, home: Path) -> None:
    Path("a.txt").write_text(f"token {TOKEN}")
    planned = command("redact", "a.txt", "--into", "out", "--dry-run", terminal=True)
    assert "1 file would be copied" in planned.out
    assert not Path("out").exists()
    done = command("redact", "a.txt", "--into", "out", terminal=True)
    assert done.code == 0
    assert "1 file copied to out." in done.out
    assert "Rotate these" in done.out


def test_a_save_and_a_restore_say_what_to_rotate(command: Command, home: Path) -> None:
    transcript = session(home / "work" / "s.jsonl", home / "work", TOKEN)
    saved = command("archive", transcript, "--run-id", "r", terminal=True)
    assert "Credentials replaced, rotate them: github-token" in saved.out
    assert "    - github-token (" in saved.out
    restored = command("restore", "r", "--into", "out", terminal=True)
    assert restored.code == 0, restored.err
    said = restored.out.split("Rotate these")[1]
    assert "revoke it where it was issued" in said
    report = Path("out/REPORT.md").read_text(encoding="utf-8")
    assert "revoke it where it was issued" in report.split("Credentials replaced: rotate these")[1]
    assert TOKEN not in saved.out + restored.out + report


def test_a_value_is_asked_for_without_showing_it(command: Command, home: Path) -> None:
    transcript = session(home / "work" / "s.jsonl", home / "work", TOKEN)
    assert command("archive", transcript, "--run-id", "r", terminal=True).code == 0
    child, terminal = pty.fork()
    if child == 0:
        code = PROGRAM.format("main", "main")
        os.execv(sys.executable, [sys.executable, "-c", code, "find-credential"])  # noqa: S606
    said = read_until(terminal, b"(not shown): ")
    os.write(terminal, TOKEN.encode() + b"\n")
    said += read_until(terminal, None)
    _, status = os.waitpid(child, 0)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(status) == 0, said
    assert b"github-token" in said
    assert TOKEN.encode() not in said


def test_what_stands_in_clear_is_told_from_what_was_replaced(command: Command, home: Path) -> None:
    bare = "".join(random.Random(12).choices(string.ascii_letters, k=20))
    transcript = session(home / "work" / "s.jsonl", home / "work", said=f"it is {bare}")
    assert command("archive", transcript, "--run-id", "r", terminal=True).code == 0

    def asked(value: str) -> bytes:
        return subprocess.run(
            [sys.executable, "-c", PROGRAM.format("main", "main"), "find-credential"],
            input=value.encode(),
            stdout=subprocess.PIPE,
            check=False,
        ).stdout

    rows = [line.split(b"\t") for line in asked(bare).splitlines()]
    assert {(row[0], row[-1]) for row in rows} == {(b"r", b"in clear")}
    assert asked(bare[::-1]) == b""


def test_a_file_gets_what_is_found_also_when_messages_go_to_a_terminal(command: Command, home: Path) -> None:
    bare = "q7W" + "".join(random.Random(13).choices(string.ascii_letters + string.digits, k=21))
    transcript = session(home / "work" / "s.jsonl", home / "work", said=f"it is {bare}")
    assert command("archive", transcript, "--run-id", "r", terminal=True).code == 0
    terminal, child = pty.openpty()
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format("main", "main"), "scan", "--stored"],
        env={**os.environ, "DEPLOY_PASSWORD": bare},
        stdout=subprocess.PIPE,
        stderr=child,
        check=False,
    )
    os.close(child)
    said = read_until(terminal, None)
    os.close(terminal)
    assert done.stdout.startswith(b"r\t1\tknown-value\t"), said
    assert b"known-value\t" not in said
    assert b"rotate these:" in said


def test_mistakes_in_what_is_named_are_said(command: Command, home: Path) -> None:
    Path("a.txt").write_text(f"token {TOKEN}")
    os.mkfifo("pipe")
    for arguments, said in (
        (("scan", "pipe"), "pipe is a named pipe"),
        (("scan", "../b.txt"), "error: ../b.txt cannot be read"),
        (("scan", ""), "one of the paths is empty"),
        (("redact", "", "--into", "out"), "one of the paths is empty"),
        (("redact", "a.txt", ".", "--into", "../out"), "error: . and a.txt are the same"),
        (("scan", "a.txt", "--store", "s"), "--store is about what is stored"),
        (("scan", "a.txt", "-i", "x"), "--identity is about what is stored"),
    ):
        done = command(*arguments)
        assert done.code == 2
        assert said in done.err
    missing = command("scan", "b.txt", terminal=True)
    assert missing.code == 2
    assert "No credentials found" not in missing.out


def test_a_plan_is_told_from_copies(command: Command, home: Path) -> None:
    Path("a.txt").write_text(f"token {TOKEN}")
    assert command("redact", "a.txt", "--into", "out", "--dry-run").rows == [["would copy", "a.txt", "-"]]
    assert command("redact", "a.txt", "--into", "out").rows == [["copied", "a.txt", "-"]]


def test_packs_can_be_asked_for_once(command: Command, home: Path) -> None:
    Path("a.txt").write_text("mail jane.doe@acme-corp.org")
    assert command("scan", "a.txt").code == 0
    done = command("scan", "a.txt", "--pack", "emails", "--pack", "hosts")
    assert (done.code, done.rows[0][1]) == (1, "email")
    # The same packs again: another set of rules takes seconds to compile.
    assert command("redact", "a.txt", "--into", "out", "--pack", "hosts", "--pack", "emails").code == 0
    assert "jane.doe" not in Path("out/a.txt").read_text()
    refused = command("redact", "a.txt", "--into", "out", "--pack", "mails")
    assert refused.code == 2
    assert "emails, hosts, identifiers" in refused.err


def test_known_values_that_are_too_short_are_named(
    command: Command, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("a.txt").write_text("nothing")
    monkeypatch.setenv("MY_TOKEN", "abc")
    for arguments in (("scan", "a.txt"), ("redact", "a.txt", "--into", "out")):
        assert "the value of MY_TOKEN is too short" in command(*arguments).err


def test_what_to_rotate_is_folded_at_a_narrow_terminal(command: Command, home: Path) -> None:
    Path("a.txt").write_text(f"token {TOKEN}")
    said = command("scan", "a.txt", terminal=True, columns=50).out.split("Rotate these")[1]
    assert max(map(len, said.splitlines())) <= 50


def read_until(terminal: int, mark: bytes | None) -> bytes:
    said = b""
    while mark is None or mark not in said:
        try:
            piece = os.read(terminal, 4096)
        except OSError:  # its other end is closed
            return said
        if not piece:
            return said
        said += piece
    return said
