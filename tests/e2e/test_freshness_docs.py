"""What docs/FRESHNESS.md says is what happens."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from archiver.config import load
from archiver.freshness import all_probes
from archiver.freshness.git_dirty import MAX_CONTENT, MAX_FILES, MAX_REPOSITORIES
from archiver.freshness.installed import MAX_LIST
from archiver.freshness.lockfiles import MAX_ALL, MAX_FOLDERS, MAX_SIZE
from archiver.freshness.lockfiles import MAX_FILES as MAX_LOCKFILES
from archiver.freshness.registry import MAX_CAPTURE, MAX_CAPTURED, MAX_EVIDENCE
from archiver.git.worktree import MAX_MODULES

TEXT = (Path(__file__).parents[2] / "docs" / "FRESHNESS.md").read_text(encoding="utf-8")


def test_the_table_has_every_probe() -> None:
    named = re.findall(r"^\| `([a-z_]+)` \|", TEXT, re.M)
    assert sorted(named) == sorted(probe.name for probe in all_probes())


def test_the_limits_are_those_of_the_code() -> None:
    for limit in (
        f"{MAX_CONTENT >> 20} MiB, {MAX_FILES:,} files",
        f"a digest each of the first {MAX_LOCKFILES}",
        f"more than {MAX_ALL} files or {MAX_FOLDERS:,} folders",
        f"{MAX_MODULES} submodules or the time limit",
        f"up to {MAX_REPOSITORIES} of them",
        f"more than {MAX_SIZE >> 20} MiB",
        f"beyond {MAX_LIST >> 10} KiB",
        f"at most {MAX_CAPTURE >> 10} KiB; all probes together at most {MAX_CAPTURED >> 10} KiB",
        f"cut at {MAX_EVIDENCE:,} characters",
    ):
        assert limit in TEXT, limit


def test_the_example_of_the_policy_loads(tmp_path: Path) -> None:
    path = tmp_path / "example.toml"
    path.write_text(TEXT.split("```toml\n")[1].split("```")[0])
    settings = load(path).freshness
    assert settings.policy.probes == {"git_dirty": "warn", "installed": "ask", "credentials": "block"}
    assert settings.prompt_file == tmp_path / "prompt.md"
    assert (settings.policy.stale, settings.policy.unknown) == ("block", "warn")


def test_the_example_of_a_probe_runs(tmp_path: Path, config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARCHIVER_CONFIG", str(config))
    code = TEXT.split("```python\n")[1].split("```")[0]
    said = re.search(r"It prints\n\n    (.*)\n", TEXT)
    assert said is not None
    (tmp_path / "run.txt").write_text("hello\n")
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert done.stdout == said[1] + "\n", done.stderr
