"""What a plan and a restore print: what is wrong first, and no advice that does not help."""

from __future__ import annotations

import shlex
from datetime import UTC, datetime
from pathlib import Path

from archiver.archive import Source, archive
from archiver.config import load
from archiver.model import Budget, Checkpoint, Effect, Plan, Spend
from archiver.model.checkpoint import Approval
from archiver.setup import open_setup

from .conftest import Command
from .test_commands import plain, session, work  # noqa: F401 - a fixture

RUN = "billing-1"


def small(command: Command, store: Path, **more: object) -> None:
    """A store with one checkpoint."""
    assert command("init", store, "--json").code == 0
    now = datetime.now(UTC)
    state = Checkpoint.model_validate(
        {"run_id": RUN, "task_id": "t", "created_at": now, "checkpoint_at": now, **more}
    )
    archive(Source(checkpoint=state), open_setup(load(), need="write"))


def test_a_person_sees_first_what_is_wrong(command: Command, tmp_path: Path) -> None:
    effects = (Effect(key="pay", tool="bank", status="uncertain"),)
    small(command, tmp_path / "store", effects=effects, budget=Budget(tokens=1), spend=Spend(tokens_in=2))
    planned = command("restore", RUN, "--plan", terminal=True)
    assert planned.code == 7
    out = plain(planned.out)
    assert out.index("\nundecided") < out.index("\ntask")
    look = out.partition("in the bundle: archiver ")[2].splitlines()[0]
    seen = command(*shlex.split(look), "--into", tmp_path / "out")
    assert seen.code == 0, seen.err
    assert "pay: bank with" in (tmp_path / "out" / "REPORT.md").read_text()
    assert out.index("budget") < out.index("FRESH: ")
    rows = [line for line in out.splitlines() if "FRESH" in line]
    assert len(rows) == 1
    assert "age" in rows[0]
    last = out.strip().splitlines()[-1]
    assert "--accept effects only hands over to look at" in last
    assert "with --accept budget" in last
    assert last.count("effects") == 1
    lines = command("restore", RUN, "--plan").rows
    assert ["age", "FRESH"] in [row[:2] for row in lines]


def test_a_question_is_named_where_nothing_else_stands_against_it(command: Command, tmp_path: Path) -> None:
    waits = Plan(pending_approvals=(Approval(id="1", question="May I?"),))
    small(command, tmp_path / "store", plan=waits)
    planned = command("restore", RUN, "--plan", terminal=True)
    assert planned.code == 0
    assert "not sure is: approvals (UNKNOWN)" in plain(planned.out).strip().splitlines()[-1]
    assert ["waits for a person", "May I?"] in command("restore", RUN, "--plan").rows


def test_a_plan_says_what_a_restore_would_say_of_the_folder(command: Command, tmp_path: Path) -> None:
    small(command, tmp_path / "store")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    for into, said in (("full", "is not empty"), ("store/x", "lies in the store")):
        planned = command("restore", RUN, "--plan", "--json", "--into", tmp_path / into)
        assert planned.code == 0
        (warning,) = [one for one in planned.json["warnings"] if "would refuse the folder" in one]
        assert said in warning
    planned = command("restore", RUN, "--plan", "--json", "--into", tmp_path / "new")
    assert not [one for one in planned.json["warnings"] if "folder" in one]


def test_what_was_accepted_is_not_advised_again(
    command: Command,
    work: Path,  # noqa: F811 - the fixture
    tmp_path: Path,
) -> None:
    assert command("init", tmp_path / "store", "--json").code == 0
    path = session(tmp_path / "t.jsonl", work)
    assert command("archive", path, "--run-id", RUN).code == 0
    (work / "parser.py").write_text("x = 2\n")
    stale = command("restore", RUN, "--plan", "--json").json
    assert [
        "git_dirty" in str(one["remedy"]) for one in stale["freshness"] if one["probe"] == "git_dirty"
    ] == [True]
    done = command("restore", RUN, "--json", "--accept", "git_dirty", "--into", tmp_path / "out")
    assert done.code == 0, done.err
    (verdict,) = [one for one in done.json["freshness"] if one["probe"] == "git_dirty"]
    assert verdict["accepted"]
    assert "--accept" not in (verdict["remedy"] or "")
    assert "`--accept git_dirty`" not in (tmp_path / "out" / "REPORT.md").read_text().replace("\\", "")
