"""What redaction needs and cannot have stops a save in plain words, and never holds it up."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from archiver.errors import RedactionUnavailableError
from archiver.redact import cache, rules
from archiver.redact.ruleset import Chosen

_WITHOUT_ENGINE = "import sys; sys.modules['hyperscan'] = None; from archiver.cli import main; main()"


def test_an_engine_that_cannot_be_loaded(tmp_path: Path) -> None:
    session = tmp_path / "session.jsonl"
    session.write_text('{"type": "user", "message": {"role": "user", "content": "x"}}\n')
    for arguments in (("archive", str(session)), ("scan", str(session)), ("rules", "list")):
        done = subprocess.run(
            [sys.executable, "-c", _WITHOUT_ENGINE, *arguments],
            env={**os.environ, "XDG_DATA_HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == RedactionUnavailableError.exit_code, done.stderr
        assert "redaction engine" in done.stderr
        assert "bug" not in done.stderr


def test_rules_in_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "rules.toml")
    with pytest.raises(RedactionUnavailableError, match="no regular file"):
        rules.load(Chosen(files=(tmp_path / "rules.toml",)))


def test_a_pipe_in_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    cache.store_file("it", b"x")
    assert cache.load_file("it", 10) == b"x"
    (tmp_path / "checkpoint-archiver" / "redact" / "it").unlink()
    os.mkfifo(tmp_path / "checkpoint-archiver" / "redact" / "it", 0o600)
    assert cache.load_file("it", 10) is None
