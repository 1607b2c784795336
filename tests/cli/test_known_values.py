"""What stands in credential files does not leave in a bundle, and what was not searched for is said."""

from __future__ import annotations

import secrets
from pathlib import Path

import pytest

from .conftest import Command
from .test_commands import RUN, init, session, work

__all__ = ["work"]


def test_an_agent_that_printed_a_credential_file(command: Command, work: Path, tmp_path: Path) -> None:
    init(command)
    home = Path.home()
    bare, mine = "q" + secrets.token_hex(10), "q" + secrets.token_hex(10)
    (home / ".aws").mkdir()
    (home / ".aws" / "credentials").write_text(f"[default]\naws_secret_access_key = {bare}\n")
    (home / ".pgpass").write_text("h:1:d:u:pg\n")
    (home / ".netrc").mkdir()
    (work / ".env").write_text(f"SECRET_{'A' * 3}={mine}\nDB_PASSWORD={mine}\n")
    outcome = command("archive", session(work / "t.jsonl", work, said=f"so it is {bare} or {mine}, you see"))
    assert outcome.code == 0
    assert "the value of password in ~/.pgpass is too short or too common to search for" in outcome.err
    assert "~/.netrc" in outcome.err
    assert command("restore", RUN, "--into", tmp_path / "back").code == 0
    handed = [path.read_text() for path in (tmp_path / "back").rglob("*") if path.is_file()]
    assert not any(bare in text or mine in text for text in handed)
    assert any("so it is [REDACTED:" in text for text in handed)


def test_a_named_file_that_is_gone_stops_the_save(
    command: Command, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    init(command)
    monkeypatch.setenv("ARCHIVER_REDACTION__SECRET_FILES", str(work / "gone.env"))
    outcome = command("archive", session(work / "t.jsonl", work))
    assert outcome.code == 3
    assert "gone.env" in outcome.err
    assert "redaction.secret_files" in outcome.err
