"""A session of the real Claude Code, with the hooks installed, is archived by its own end.

The program is the one that `ARCHIVER_CLAUDE_CLI` names (`make test` installs it where npm is); else it skips.
"""

from __future__ import annotations

import os
import secrets
import subprocess
from pathlib import Path

import pytest
from cli.conftest import home as home
from hooks.sessions import lines
from inside import command
from servers.messages_api import messages_api

PROGRAM = os.environ.get("ARCHIVER_CLAUDE_CLI", "")


def test_a_session_is_archived_when_it_ends(home: Path) -> None:
    if not PROGRAM or not Path(PROGRAM).exists():
        pytest.skip("ARCHIVER_CLAUDE_CLI names no Claude Code to run")
    assert command("init").code == 0
    assert command("hook", "claude-code", "install", "--yes").code == 0
    with messages_api() as model:
        environment = {
            **{name: os.environ[name] for name in ("PATH", "XDG_CACHE_HOME")},
            "HOME": str(home),
            "ANTHROPIC_BASE_URL": model.url,
            "ANTHROPIC_API_KEY": "sk-" + secrets.token_hex(20),
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "NO_PROXY": "127.0.0.1",
        }
        ended = subprocess.run(
            [PROGRAM, "--print", "Say that you go on."],
            cwd=home / "work",
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
        )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    over = lines(1, of=lambda line: line["hook"] == "SessionEnd")[0]
    assert over["event"] == "archived", over
    (session,) = (home / ".claude" / "projects").glob("*/*.jsonl")
    (run,) = command("list", "--json").json["runs"]
    assert (run["run"], run["outcome"]) == (session.stem, "succeeded")
