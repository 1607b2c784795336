"""The commands of the README on a store in a bucket, from `init` to `restore`."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from servers.seaweed import Seaweed
from transcripts.samples import anthropic_messages, anthropic_request, claude_session, write_jsonl

from archiver.cli import program
from e2e.s3 import keys, place
from e2e.test_real_transcripts import FILES

Run = Callable[..., str]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs `archiver` with these words in this process; it must end with that exit code."""
    monkeypatch.setattr("signal.signal", lambda *_: None)

    def call(*words: str | Path, code: int = 0) -> str:
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            found = program.run("archiver", [str(word) for word in words])
        assert found == code, out.getvalue() + err.getvalue()
        return err.getvalue() if code else out.getvalue()

    return call


def as_program(*words: str | Path) -> str:
    """Runs `archiver` as people do."""
    program = Path(sys.executable).parent / "archiver"
    done = subprocess.run([program, *words], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def made(run: Run, s3_url: str, seaweed: Seaweed) -> dict[str, Any]:
    """What `archiver init` says of a new store, whose configuration is found from now on."""
    where = ("--endpoint-url", seaweed.endpoint, "--region", "us-east-1")
    document: dict[str, Any] = json.loads(run("init", s3_url, *where, "--json"))
    return document


def samples(folder: Path) -> dict[str, Path]:
    """A file of each kind that can be saved, by the run's name."""
    request = folder / "request.json"
    request.write_text(json.dumps(anthropic_request(4)), encoding="utf-8")
    text = folder / "notes.txt"
    text.write_text("deploy with token ghp_" + "a1B2" * 9 + " and then wait\n", encoding="utf-8")
    return {
        "claude": write_jsonl(folder / "session.jsonl", claude_session(6)),
        "messages": write_jsonl(folder / "messages.jsonl", anthropic_messages(6)),
        "request": request,
        "text": text,
    }


def check_made(made: dict[str, Any], s3_url: str, seaweed: Seaweed) -> None:
    """It has proved the store, left nothing of the proof, and written down all but secrets."""
    assert made["store"] == s3_url
    assert made["new_store"]
    assert made["fencing"]
    written = Path(made["config"]).read_text(encoding="utf-8")
    assert seaweed.endpoint in written
    for secret in seaweed.credentials["admin"].secret_key, seaweed.credentials["admin"].access_key:
        assert secret not in written
    assert [key.removeprefix(place(s3_url)[1] + "/") for key in keys(seaweed.client(), s3_url)] == [
        "store.json"
    ]


def test_from_save_to_restore(
    made: dict[str, Any], run: Run, tmp_path: Path, seaweed: Seaweed, s3_url: str
) -> None:
    check_made(made, s3_url, seaweed)
    files = samples(tmp_path)
    for name, path in files.items():
        run("archive", path, "--run-id", name, "--outcome", "failed")
    as_program("archive", files["claude"], "--run-id", "claude", "--note", "once more")
    listed = run("list")
    assert all(name in listed for name in files)
    assert "once more" in run("show", "claude")
    assert "opened" in run("verify", "--deep")
    run("verify", "text")
    for name in files:
        assert "chain\tverified" in run("restore", name, "--plan", "--accept", "age")
        run("restore", name, "--into", tmp_path / f"out-{name}", "--accept", "age")
        assert (tmp_path / f"out-{name}" / "REPORT.md").is_file()
    assert "ghp_" not in (tmp_path / "out-text" / "transcript" / "notes.txt").read_text(encoding="utf-8")
    assert "nowhere" in run("restore", "nowhere", "--plan", code=9)
    as_program("restore", "claude", "--accept", "age", "--into", tmp_path / "by-program")
    assert (tmp_path / "by-program" / "REPORT.md").is_file()


def test_the_archivers_identity_need_not_delete_and_the_restorers_not_write(
    made: dict[str, Any],
    run: Run,
    tmp_path: Path,
    seaweed: Seaweed,
    aws_environment: Callable[[Seaweed, str], None],
    note: Path,
) -> None:
    aws_environment(seaweed, "writer")
    run("archive", note, "--run-id", "r")
    run("archive", note, "--run-id", "r")
    aws_environment(seaweed, "reader")
    run("list")
    run("restore", "r", "--into", tmp_path / "out")
    assert "does not allow" in run("archive", note, "--run-id", "r", code=8)
    aws_environment(seaweed, "stranger")
    for words in (("list",), ("archive", note, "--run-id", "r"), ("restore", "r", "--plan")):
        assert "does not allow" in run(*words, code=8)
    aws_environment(seaweed, "admin")
    run("verify", "--deep")


@pytest.mark.skipif(not FILES, reason="no collection of real transcripts")
def test_real_transcripts(made: dict[str, Any], run: Run, tmp_path: Path) -> None:
    """A few small files of a few kinds, from save to restore; all of them are tried on a folder."""
    small = [path for path in FILES if path.stat().st_size < 300_000]
    chosen = {path.parent.name: path for path in reversed(small)}
    for number, (kind, path) in enumerate(sorted(chosen.items())[:4]):
        run("archive", path, "--run-id", f"{number}-{kind}", "--salvage")
        run(
            "restore",
            f"{number}-{kind}",
            "--into",
            tmp_path / kind,
            "--accept",
            "age",
            "--accept",
            "git_commit",
        )
    run("verify", "--deep")
