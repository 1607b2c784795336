"""A restore that anything may happen to: keys of any form, places of any kind, death at every moment."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from inside import Outcome, command

from archiver import claiming
from archiver.archive import Source, archive
from archiver.catalog import Catalog
from archiver.effect_names import name_of
from archiver.errors import (
    AlreadyExistsError,
    InputNotFoundError,
    LimitExceededError,
    NeedsDecisionError,
    StaleCheckpointError,
    StoreUnreachableError,
    UsageError,
)
from archiver.model import Budget, Checkpoint, Effect, Items, Record, Spend, Transcript, TranscriptPart
from archiver.restore import plan, restore
from archiver.setup import Setup

RUN = "edges"
NOW = datetime.now(UTC)
BIN = Path(sys.executable).parent
HERE = Path(__file__).parent


def effect(key: str, status: str = "uncertain", **more: Any) -> Effect:
    return Effect.model_validate({"key": key, "tool": "pay", "status": status, **more})


def save(setup: Setup, *effects: Effect, **more: Any) -> Record:
    items = Items.of([{"role": "user", "content": "pay"}])
    parts = (TranscriptPart(name="m.jsonl", items=items),)
    checkpoint = Checkpoint(
        run_id=RUN,
        task_id="t",
        created_at=NOW,
        checkpoint_at=NOW,
        effects=effects,
        transcript=Transcript(dialect="anthropic-messages", parts=parts),
        **more,
    )
    return archive(Source(checkpoint=checkpoint), setup).record


def shell(line: str, folder: Path, program: str = "sh") -> Outcome:
    """What `archiver` does with the words that the shell makes of the line."""
    with tempfile.TemporaryDirectory() as stubs:
        stub = Path(stubs) / "archiver"
        stub.write_text(f"#!/bin/sh\nprintf '%s\\0' \"$@\" >'{stubs}/words'\n")
        stub.chmod(0o755)
        environment = {**os.environ, "PATH": f"{stubs}:{os.environ['PATH']}"}
        subprocess.run([program, "-c", line], cwd=folder, env=environment, check=True, timeout=120)
        words = os.fsdecode((Path(stubs) / "words").read_bytes()).split("\0")[:-1]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        return command(*words, columns=80)


def because(setup: Setup) -> Setup:
    return replace(setup, why="asked")


# --- keys ---------------------------------------------------------------------------------------------------

KEYS = {
    "none": "",
    "blank": " \t ",
    "half of a pair": "\ud800x",
    "a NUL": "a\0b",
    "longer than an argument": "k" * 1_000_000,
    "line ends": "a\nb\n\n",
    "a digest": f"sha256:{'0' * 64}",
    "an option": "--force",
    "equals": "=a==done=",
    "a placeholder": "pay [REDACTED:github-token:0123456789ab]",
    "an injection": "\n';touch pwned;#",
}


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
def test_every_key_is_decided_on_with_the_command_of_the_report(
    setup: Setup, config: Path, tmp_path: Path, key: str
) -> None:
    save(setup, effect(key), effect("other", "confirmed", result=1))
    with pytest.raises(NeedsDecisionError) as caught:
        restore(RUN, setup, into=tmp_path / "no")
    assert len(str(caught.value)) < 600
    done = restore(RUN, setup, into=tmp_path / "out", accept=["effects"])
    assert [one.key for one in done.report.undecided] == [key]
    planned = shell(f"archiver restore --plan --config '{config}' {RUN}", tmp_path)
    assert planned.code == 7
    assert f"--resolve {done.report.undecided[0].resolve.removeprefix('--resolve ')}=done" in planned.out
    lines = (tmp_path / "out" / "REPORT.md").read_text(encoding="utf-8").splitlines()
    (decide,) = [line.strip() for line in lines if line.startswith("      archiver ") and "=not-done" in line]
    went = shell(decide.replace(" restore ", f" restore --config '{config}' "), tmp_path)
    assert went.code == 0, went.err
    assert not list(tmp_path.rglob("pwned"))
    (said,) = Catalog(setup).read(RUN, 2).record.decisions
    assert (said.effect, said.outcome) == (name_of(key), "not-done")
    again = restore(RUN, setup, into=tmp_path / "again")
    assert [one.status for one in again.effects] == ["proposed", "confirmed"]
    assert again.effects.outcome(key).act


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
def test_a_check_and_a_program_name_every_key(setup: Setup, tmp_path: Path, key: str) -> None:
    save(setup, effect(key))
    resumed = restore(RUN, setup, into=tmp_path / "1", accept=["effects"]).resume(check=lambda _: "done")
    assert resumed.effects.outcome(key).decision == resumed.decisions[0]
    save(setup, effect(key))
    done = restore(
        RUN, because(setup), into=tmp_path / "2", resolve={name_of(key): "done"}, accept=["effects"]
    )
    if name_of(name_of(key)) == name_of(key):
        assert (
            restore(RUN, because(setup), into=tmp_path / "3", resolve={key: "done"}).effects.undecided == ()
        )
    assert done.effects.undecided == ()


def test_two_words_about_one_effect_are_none(setup: Setup, tmp_path: Path) -> None:
    save(setup, effect(""))
    with pytest.raises(UsageError, match="as done and as not done"):
        plan(RUN, because(setup), resolve={"": "done", name_of(""): "not-done"})
    assert plan(RUN, because(setup), resolve={"": "done", name_of(""): "done"}).exit_code == 0


def test_who_decides_is_who_acts(setup: Setup, tmp_path: Path) -> None:
    """The claim names the person whom the audit names, configured or found out."""
    journal = tmp_path / "audit.jsonl"
    for number, who in enumerate(("on call <ops@example.org>", None), start=1):
        audit = setup.settings.audit.model_copy(update={"who": who, "file": journal})
        settings = setup.settings.model_copy(update={"audit": audit})
        save(setup, effect("a"))
        done = restore(
            RUN,
            replace(because(setup), settings=settings),
            into=tmp_path / str(number),
            resolve={"a": "done"},
            claim=True,
        )
        (said,) = done.report.decisions
        lines = [json.loads(line) for line in journal.read_text().splitlines()]
        assert said.by == lines[-1]["who"]
        assert who is None or said.by == who


def test_more_decisions_than_a_claim_holds(setup: Setup, tmp_path: Path) -> None:
    save(setup, *(effect(f"key {number}") for number in range(10_000)))
    with pytest.raises(NeedsDecisionError, match="key 49; of 10000 that are open"):
        restore(RUN, setup, into=tmp_path / "no")
    with pytest.raises(NeedsDecisionError, match="and 9950 more") as caught:
        restore(RUN, setup, into=tmp_path / "no", accept=["effects"], claim=True)
    assert len(str(caught.value)) < 6000
    done = restore(RUN, setup, into=tmp_path / "out", accept=["effects"])
    with pytest.raises(LimitExceededError) as limit:
        done.resume(check=lambda _: "done")
    assert "as a run of another id" in (limit.value.remedy or "")
    assert Catalog(setup).numbers(RUN) == [1]


# --- a program that decides ---------------------------------------------------------------------------------


def test_a_refused_restore_says_as_data_what_stands_against_it(
    setup: Setup, config: Path, tmp_path: Path
) -> None:
    save(setup, effect("pay"), budget=Budget(tokens=10), spend=Spend(tokens_in=11))
    into = tmp_path / "out"
    done = shell(f"archiver restore --json --into '{into}' --config '{config}' {RUN}", tmp_path)
    assert done.code == 7
    error = json.loads(done.out)["error"]
    assert (error["type"], error["exit_code"], error["run"], error["seq"]) == (
        "NeedsDecisionError",
        7,
        RUN,
        1,
    )
    assert {one["accept"]: one["exit_code"] for one in error["blockers"]} == {"budget": 7, "effects": 7}
    assert all(one["reason"] for one in error["blockers"])
    options = f"--accept budget --accept effects --claim --into '{into}' --config '{config}'"
    claimed = shell(f"archiver restore --json {options} {RUN}", tmp_path)
    assert claimed.code == 7
    error = json.loads(claimed.out)["error"]
    assert [one["key"] for one in error["undecided"]] == ["pay"]
    assert [one["accept"] for one in error["blockers"]] == ["effects"]
    assert not into.exists()


def test_a_spent_budget_is_no_effect(setup: Setup, tmp_path: Path) -> None:
    save(setup, budget=Budget(tokens=10), spend=Spend(tokens_in=11))
    with pytest.raises(NeedsDecisionError) as caught:
        restore(RUN, setup, into=tmp_path / "out", claim=True)
    assert [one["accept"] for one in _blockers(caught.value)] == ["budget"]
    assert restore(RUN, setup, into=tmp_path / "out", accept=["budget"]).resume().seq == 2


def test_an_old_checkpoint_is_stale_for_a_program_too(setup: Setup, tmp_path: Path) -> None:
    save(setup)
    later = NOW.replace(year=NOW.year + 1)
    with pytest.raises(StaleCheckpointError) as caught:
        restore(RUN, setup, into=tmp_path / "out", now=later)
    assert [(one["accept"], one["exit_code"]) for one in _blockers(caught.value)] == [("age", 3)]
    assert json.dumps(caught.value.details)


def _blockers(error: NeedsDecisionError | StaleCheckpointError) -> list[dict[str, Any]]:
    found = error.details["blockers"]
    assert isinstance(found, list)
    return found


# --- places -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("below", ["", "x", f"records/{RUN}/x", "../link/x"])
@pytest.mark.parametrize("force", [False, True])
def test_nothing_is_handed_over_in_the_store(setup: Setup, tmp_path: Path, below: str, force: bool) -> None:
    save(setup)
    (tmp_path / "link").symlink_to("store")
    before = sorted((tmp_path / "store").rglob("*"))
    with pytest.raises(UsageError, match="lies in the store"):
        restore(RUN, setup, into=tmp_path / "store" / below, force=force)
    assert sorted((tmp_path / "store").rglob("*")) == before
    assert restore(RUN, setup, into=tmp_path / "store-beside").folder.is_dir()


@pytest.mark.parametrize("name", ["x" * 300, "a\0b", "loop/x", "x/" * 3000])
def test_a_place_that_cannot_be(setup: Setup, tmp_path: Path, name: str) -> None:
    save(setup)
    (tmp_path / "loop").symlink_to("loop")
    before = sorted(tmp_path.iterdir())
    with pytest.raises(InputNotFoundError) as caught:
        restore(RUN, setup, into=tmp_path / name)
    assert "--into" in (caught.value.remedy or "")
    assert len(str(caught.value)) < 12_000
    assert sorted(tmp_path.iterdir()) == before


def test_a_shell_that_stands_in_the_folder_sees_what_was_handed_over(
    setup: Setup, config: Path, tmp_path: Path
) -> None:
    save(setup)
    here = tmp_path / "here"
    here.mkdir()
    line = f"archiver restore --into . --config '{config}' {RUN}"
    environment = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["sh", "-c", f"{line} >&2 && ls"],
        cwd=here,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert {"REPORT.md", "report.json", "transcript"} <= set(done.stdout.split())
    again = shell(f"{line} --force", here)
    assert again.code == AlreadyExistsError.exit_code
    assert "is the current folder" in again.err
    assert (here / "report.json").is_file()


# --- death --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("every", [9, pytest.param(1, marks=pytest.mark.soak)])
def test_a_restore_that_is_killed_leaves_nothing_or_all(
    setup: Setup, config: Path, tmp_path: Path, every: int
) -> None:
    save(setup, effect("a", "confirmed"))
    folder = tmp_path / "place"
    folder.mkdir()
    done = subprocess.run(
        [sys.executable, HERE / "restore_killing.py", config, RUN, folder, str(every)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(HERE.parent)},
    )
    assert done.returncode == 0, done.stderr
    *kills, last = map(json.loads, done.stdout.splitlines())
    assert len(kills) > 10
    assert not kills[0]["there"]
    assert kills[-1]["there"]
    assert last["left"] == []


@pytest.mark.parametrize("sent", [KeyboardInterrupt, SystemExit])
def test_what_is_asked_to_end_after_its_claim_hands_over(
    setup: Setup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sent: type[BaseException]
) -> None:
    save(setup)
    from archiver import target

    rename, asked = target.rename, []

    def interrupted(out: Path, into: Path) -> None:
        if not asked:
            asked.append(sent)
            raise sent
        rename(out, into)

    monkeypatch.setattr(target, "rename", interrupted)
    with pytest.raises(sent):
        restore(RUN, setup, into=tmp_path / "out", claim=True)
    assert json.loads((tmp_path / "out" / "report.json").read_text())["claimed"] == 2
    asked.clear()
    with pytest.raises(sent):
        restore(RUN, setup, into=tmp_path / "more")
    assert not (tmp_path / "more").exists()


def test_a_claim_whose_answer_is_lost_may_have_been_made(
    setup: Setup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(setup)
    claim = claiming.claim

    def lost(*arguments: Any, **more: Any) -> Any:
        claim(*arguments, **more)
        raise StoreUnreachableError("the server cannot be reached")

    monkeypatch.setattr(claiming, "claim", lost)
    with pytest.raises(StoreUnreachableError, match="record 2 may have been written"):
        restore(RUN, setup, into=tmp_path / "out", claim=True)
    assert not (tmp_path / "out").exists()
    monkeypatch.undo()
    again = restore(RUN, setup, into=tmp_path / "out", claim=True)
    assert (again.claim, [one.seq for one in again.report.taken_over]) == (3, [2])
