"""What docs/TESTING.md says is so: its example runs, and it names every kind of death."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from archiver.testing.machine import DEFAULTS
from archiver.testing.points import KINDS

TEXT = (Path(__file__).parents[2] / "docs" / "TESTING.md").read_text(encoding="utf-8")


def test_the_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (name, agent), (_, test) = re.findall(r"```python\n# (\w+\.py)\n(.*?)```", TEXT, re.S)
    (tmp_path / name).write_text(agent, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    scope: dict[str, Any] = {}
    exec(test.replace("times=20", "times=3"), scope)  # noqa: S102 - what the document has people write
    scope["test_orders_survive"]()


def test_the_table_has_every_kind() -> None:
    table = TEXT.split("## Where it dies")[1].split("## ")[0]
    assert re.findall(r"^\| `([a-z]+)` \|", table, re.M) == list(KINDS)


def test_the_settings_are_those_of_the_code() -> None:
    assert DEFAULTS == {"ARCHIVER_RUN__FLOOR": "0s", "ARCHIVER_RUN__FLOOR_CALLS": "1"}
    assert "`ARCHIVER_RUN__FLOOR` is `0s` and `ARCHIVER_RUN__FLOOR_CALLS` 1" in TEXT
