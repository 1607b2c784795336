"""One cause of many errors is one line on standard error; rows stay on standard output."""

from __future__ import annotations

from pathlib import Path

import pytest

from archiver.cli import problems
from archiver.errors import ArchiverError, DamagedError, KeyUnavailableError

from .conftest import Command
from .test_commands import RUN, session, work

__all__ = ["work"]


def test_a_place_is_not_said_twice(capsys: pytest.CaptureFixture[str]) -> None:
    errors: list[tuple[str, ArchiverError]] = [
        ("run a b, record 1", DamagedError("record 1 of run a b: torn")),
        ("run r", DamagedError("run r: gone")),
        ("bundles/x.age", DamagedError("bundles/x.age is not there")),
        ("run r", DamagedError("run r2: gone")),
        ("run r, record 1", DamagedError("run r: record 12 is gone")),
    ]
    problems.report((f"{place}: {error}", error) for place, error in errors)
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error:")]
    assert said == [
        "error: record 1 of run a b: torn",
        "error: run r: gone",
        "error: bundles/x.age is not there",
        "error: run r: run r2: gone",
        "error: run r, record 1: run r: record 12 is gone",
    ]


def test_a_wrong_key_is_one_line(command: Command, home: Path) -> None:
    assert command("init").code == 0
    note = Path("note.txt")
    for number in range(6):
        note.write_text(f"a note {number}\n")
        assert command("archive", note, "--run-id", f"run {number}").code == 0
    command("keygen", "--into", home / "other")
    for words in (["list"], ["verify"]):
        refused = command(*words, "--identity", home / "other" / "identity.txt")
        assert refused.code == KeyUnavailableError.exit_code
        assert len([row for row in refused.rows if "KeyUnavailableError" in "\t".join(row)]) >= 6
        (line,) = [line for line in refused.err.splitlines() if line.startswith("error:")]
        assert line.startswith("error: record 1 of run run 0: ")
        assert "(the same 6 times: also run run 1" in line
        assert line.endswith("; and 3 more)")
        assert refused.err.count("next:") == 1


@pytest.mark.parametrize("terminal", [True, False])
def test_what_a_row_says_is_no_warning_too(
    command: Command, work: Path, monkeypatch: pytest.MonkeyPatch, terminal: bool
) -> None:
    assert command("init").code == 0
    watched = session(work / "t.jsonl", work), "--watch", "https://example.com/"
    assert command("archive", *watched).code == 0
    plan = command("restore", RUN, "--plan", terminal=terminal)
    assert (plan.code, "UNKNOWN" in plan.out) == (0, True)
    assert "upstream is UNKNOWN" not in plan.err
    (work / "new").write_text("x")
    refused = command("restore", RUN, "--plan", terminal=terminal)
    assert refused.code == 3
    assert refused.err.count("git_dirty is STALE") == 1
