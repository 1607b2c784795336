"""A restored session is continued by the real Claude Code, against a model on loopback.

The program is the one that `ARCHIVER_CLAUDE_CLI` names (`make test` installs it where npm is); else it skips.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from servers.messages_api import ANSWER, Model, messages_api

from archiver.archive import Source, archive
from archiver.restore import restore
from archiver.setup import Setup

SAMPLE = next((Path(__file__).parents[2] / "examples" / "sample-run").glob("*.jsonl"))
GO_ON = "Go on where you were."
PROGRAM = os.environ.get("ARCHIVER_CLAUDE_CLI", "")


@pytest.fixture
def claude() -> str:
    if not PROGRAM or not Path(PROGRAM).exists():
        pytest.skip("ARCHIVER_CLAUDE_CLI names no Claude Code to run")
    return PROGRAM


@pytest.fixture
def session(tmp_path: Path, home: Path) -> tuple[Path, Path, str]:
    """The sample run, moved to a folder of this machine, with a credential; it ends in an open call."""
    workspace = home / "price-feed"
    workspace.mkdir()
    credential = "ghp_" + "".join(secrets.choice("abcdefghijkmnpqrstuvwxyzABCDEF23456789") for _ in range(36))
    text = SAMPLE.read_text(encoding="utf-8")
    text = text.replace("/home/dev/price-feed", str(workspace)).replace("{{credential}}", credential)
    path = tmp_path / SAMPLE.name
    path.write_text(text, encoding="utf-8")
    return path, workspace, credential


def shell(
    commands: tuple[str, ...], home: Path, claude: str, model: Model
) -> subprocess.CompletedProcess[str]:
    """Run the commands of a report as somebody would who copies them, with the program in the PATH."""
    tools = home / "bin"
    tools.mkdir()
    (tools / "claude").symlink_to(claude)
    environment = {
        "PATH": f"{tools}:{os.environ['PATH']}",
        "HOME": str(home),
        "ANTHROPIC_BASE_URL": model.url,
        "ANTHROPIC_API_KEY": "sk-" + secrets.token_hex(20),
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "NO_PROXY": "127.0.0.1",
    }
    script = "set -eu\n" + "\n".join(commands)
    return subprocess.run(
        ["sh", "-c", script], cwd=home, env=environment, capture_output=True, text=True, timeout=120
    )


def said(messages: list[dict[str, Any]]) -> str:
    return json.dumps(messages, ensure_ascii=False)


def test_a_restored_session_is_continued_and_its_messages_are_sent(
    claude: str,
    session: tuple[Path, Path, str],
    setup: Setup,
    home: Path,
    tmp_path: Path,
    reopen: Callable[[], Setup],
) -> None:
    path, _, credential = session
    saved = archive(Source(paths=(path,)), setup)
    done = restore(saved.record.run, reopen(), into=tmp_path / "out", accept=("age", "git_commit"))
    steps = [step for step in done.report.next_steps if not step.startswith("cp -n leaves")]
    assert any(step.endswith(f"claude --resume {path.stem}") for step in steps)
    commands = tuple(
        f"{step} --print {json.dumps(GO_ON)}" if "claude --resume" in step else step for step in steps
    )
    with messages_api() as model:
        ended = shell(commands, home, claude, model)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ANSWER in ended.stdout
    sent = next(body["messages"] for body in model.requests if GO_ON in said(body["messages"]))
    everything = said(sent)
    assert "The price feed test has failed since Tuesday." in everything
    calls = [block["id"] for message in sent for block in _blocks(message) if block.get("type") == "tool_use"]
    results = [
        block["tool_use_id"]
        for message in sent
        for block in _blocks(message)
        if block.get("type") == "tool_result"
    ]
    assert calls
    assert sorted(calls) == sorted(results)
    assert "the run was interrupted before a result of this call was recorded" in everything
    assert credential not in json.dumps(model.requests)
    assert "[REDACTED:" in everything


def _blocks(message: dict[str, Any]) -> list[dict[str, Any]]:
    content = message["content"]
    return content if isinstance(content, list) else []


def test_the_session_as_it_was_saved_stays_beside_it(
    session: tuple[Path, Path, str], setup: Setup, tmp_path: Path
) -> None:
    path, *_ = session
    saved = archive(Source(paths=(path,)), setup)
    restore(saved.record.run, setup, into=tmp_path / "out", accept=("age", "git_commit"))
    original = (tmp_path / "out" / "original" / "transcript" / path.name).read_bytes().splitlines()
    mended = (tmp_path / "out" / "transcript" / path.name).read_bytes().splitlines()
    assert len(mended) == len(original) + 1
