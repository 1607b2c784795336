"""The benchmark of redaction runs, on sessions that it makes itself; its figures are for people to read."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from archiver.redact.finder import Finder

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "redact.py"
WORKSPACE = SCRIPT.with_name("workspace_redact.py")


def test_a_short_run_prints_ratios_and_findings(finder: Finder, tmp_path: Path) -> None:
    """The fixture `finder` has compiled the rules into the cache folder that the run uses."""
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--quick", "speed", "reuse"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "ARCHIVER_SHARED": str(tmp_path)},
    )
    found, again, planted = (line for line in done.stdout.splitlines() if line.startswith("redact, "))
    assert "x zstd on leaves" in found
    assert found.endswith(" 0 findings")
    assert again.endswith(" 0 findings")
    assert not planted.endswith(" 0 findings")
    assert "% of the first" in done.stdout


def test_a_short_run_over_files_prints_ratios(finder: Finder) -> None:
    done = subprocess.run(
        [sys.executable, str(WORKSPACE), "--files", "300"], capture_output=True, text=True, check=True
    )
    first, *lines = done.stdout.splitlines()
    assert first.startswith("first time: 300 files, 6 MB, ")
    assert sum("x zstd" in line for line in lines) == 8
