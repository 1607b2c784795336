"""What docs/TESTING.md says is so: its example runs, and it names every kind of death."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from archiver.testing.machine import DEFAULTS
from archiver.testing.points import KINDS

TEXT = (Path(__file__).parents[2] / "docs" / "TESTING.md").read_text(encoding="utf-8")


def test_the_example_runs(tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n# (\w+\.py)\n(.*?)```", TEXT, re.S)
    assert [name for name, _ in blocks] == ["ordering.py", "test_ordering.py"]
    for name, code in blocks:
        (tmp_path / name).write_text(code.replace("times=20", "times=3"), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_ordering.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path / "tmp")},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout


def test_the_table_has_every_kind() -> None:
    table = TEXT.split("## Where it dies")[1].split("## ")[0]
    assert re.findall(r"^\| `([a-z]+)` \|", table, re.M) == list(KINDS)


def test_the_settings_are_those_of_the_code() -> None:
    assert DEFAULTS == {"ARCHIVER_RUN__FLOOR": "0s", "ARCHIVER_RUN__FLOOR_CALLS": "1"}
    assert "`ARCHIVER_RUN__FLOOR` is 0 and `ARCHIVER_RUN__FLOOR_CALLS` 1" in TEXT
