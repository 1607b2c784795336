"""What docs/LOOP.md says is what happens."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from archiver import errors
from archiver.catalog import Catalog
from archiver.config import Settings
from archiver.setup import Setup

DOCS = Path(__file__).parents[2] / "docs"
TEXT = (DOCS / "LOOP.md").read_text(encoding="utf-8")
RUNS = re.findall(r'archiver\.run\("([a-z0-9.-]+)"', TEXT)
EACH = """
import sys
for number, block in enumerate(sys.stdin.read().split("\\0"), 1):
    print(f"# {number}")
    exec(compile(block, f"block {number}", "exec"), {"__name__": f"block{number}"})
"""
"""Runs the blocks in one process, each with names of its own."""


def test_every_block_runs(setup: Setup, config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARCHIVER_CONFIG", str(config))
    blocks = re.findall(r"```python\n(.*?)```", TEXT, re.S)
    assert len(blocks) >= 7
    done = subprocess.run(
        [sys.executable, "-c", EACH], input="\0".join(blocks), capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    assert f"# {len(blocks)}" in done.stdout
    catalog = Catalog(setup)
    ends = {run: catalog.chain(run).links[-1].record.outcome for run in dict.fromkeys(RUNS)}
    assert ends["rename-table"] == ends["release-2026.3"] == "succeeded"
    assert ends["watch-prices"] == "running"


def test_what_it_says_of_the_settings_is_so() -> None:
    run = Settings().run
    for said in (
        f"{run.floor.total_seconds():.0f} seconds old or has made {run.floor_calls} calls",
        f"`run.patience` ({run.patience.total_seconds():.0f} seconds)",
    ):
        assert said in TEXT, said
    assert (run.ring, "(`run.ring`, five by default)" in TEXT) == (5, True)


def test_the_table_of_errors_names_errors_of_the_package() -> None:
    named = re.findall(r"^\| `(\w+Error)` \|", TEXT, re.M)
    assert len(named) >= 8
    for name in named:
        assert issubclass(getattr(errors, name), errors.ArchiverError), name


def test_every_link_leads_somewhere() -> None:
    for link in re.findall(r"\]\(([^)#]+)\)", TEXT):
        assert (DOCS / link).exists(), link
