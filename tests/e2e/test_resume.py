"""A run is taken over before anything acts: decisions, the claim, and the writer that comes too late."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import pytest

from archiver import rekey
from archiver.age import generate
from archiver.archive import Source, archive
from archiver.catalog import Catalog
from archiver.errors import (
    AuditError,
    ChainError,
    KeyUnavailableError,
    NeedsDecisionError,
    RefusedError,
    StaleWriterError,
    UntrustedWriterError,
    UsageError,
)
from archiver.model import Budget, Checkpoint, Effect, Record, Spend
from archiver.restore import Restored, plan, restore
from archiver.setup import Setup
from archiver.sign import SigningKey
from archiver.verify import verify
from archiver.writers import Writer, Writers

RUN = "pays"
NOW = datetime.now(UTC)
Outcome = Literal["done", "not-done"]


def effect(key: str, status: str = "uncertain", **more: Any) -> Effect:
    return Effect.model_validate(
        {"key": key, "tool": "pay", "arguments": {"to": key}, "status": status, "at": NOW, **more}
    )


def checkpoint(*effects: Effect, **more: Any) -> Checkpoint:
    return Checkpoint(
        run_id=RUN,
        task_id="t",
        objective="pay the bills",
        phase="paying",
        note="half of them",
        created_at=NOW,
        checkpoint_at=NOW,
        spend=Spend(tokens_in=5),
        budget=Budget(tokens=1000),
        effects=effects,
        **more,
    )


def saved(setup: Setup, *effects: Effect, **more: Any) -> Record:
    return archive(Source(checkpoint=checkpoint(*effects, **more)), setup).record


def because(setup: Setup, why: str = "looked at the bank's list") -> Setup:
    return replace(setup, why=why)


@pytest.fixture
def other(setup: Setup) -> tuple[Setup, Setup]:
    """The setup of the own machine and that of another with a key of its own; each trusts both."""
    key = SigningKey.generate()
    own = setup.require_signing_key().public
    both = Writers(
        (Writer(name="first machine", key=own), Writer(name="second machine", key=key.public)),
        Path("writers.toml"),
    )
    return replace(setup, writers=both), replace(setup, writers=both, signing_key=key, witness=None)


# --- the gate -----------------------------------------------------------------------------------------------


def test_an_undecided_effect_keeps_a_run_from_going_on(setup: Setup, tmp_path: Path) -> None:
    saved(
        setup, effect("a"), effect("b", "in_progress"), effect("c", replayable=True), effect("d", "proposed")
    )
    planned = plan(RUN, setup)
    assert (planned.exit_code, [one.accept for one in planned.blockers]) == (7, ["effects"])
    with pytest.raises(NeedsDecisionError, match="a, b"):
        restore(RUN, setup, into=tmp_path / "out")
    assert not (tmp_path / "out").exists()
    done = restore(RUN, setup, into=tmp_path / "out", accept=["effects"])
    assert [one.key for one in done.report.undecided] == ["a", "b"]
    assert [one.exit_code for one in done.blockers] == [7]
    with pytest.raises(NeedsDecisionError, match="a, b"):
        done.resume()
    with pytest.raises(NeedsDecisionError, match="b"):
        done.resume(resolve={"a": "done"}, because="seen")
    assert Catalog(setup).numbers(RUN) == [1]
    with pytest.raises(NeedsDecisionError, match="a, b"):
        restore(RUN, setup, into=tmp_path / "more", accept=["effects"], claim=True)
    assert Catalog(setup).numbers(RUN) == [1]
    assert not (tmp_path / "more").exists()


def test_what_was_decided_is_claimed_shown_and_replayed(setup: Setup, tmp_path: Path) -> None:
    saved(
        setup,
        effect("a"),
        effect("b", "in_progress", result={"partly": 1}),
        effect("e", "confirmed", result=7),
    )
    done = restore(RUN, because(setup), into=tmp_path / "out", resolve={"a": "done", "b": "not-done"})
    assert [one.status for one in done.effects] == ["confirmed", "proposed", "confirmed"]
    resumed = done.resume()
    assert (resumed.run, resumed.task, resumed.seq, resumed.next_seq) == (RUN, "t", 2, 3)
    claim = Catalog(setup).read(RUN, 2).record
    assert [(one.effect, one.outcome, one.reason) for one in claim.decisions] == [
        ("a", "done", "looked at the bank's list"),
        ("b", "not-done", "looked at the bank's list"),
    ]
    assert all("@" in one.by for one in claim.decisions)
    answer = resumed.effects.outcome("a", {"to": "a"})
    assert (answer.act, answer.result) == (False, None)
    assert answer.decision is not None
    assert answer.decision.outcome == "done"
    assert resumed.effects.outcome("b", {"to": "b"}).act
    assert resumed.effects.outcome("e", {"to": "e"}).result == 7
    now = [json.loads(line) for line in (tmp_path / "out/effects.jsonl").read_text().splitlines()]
    before = [json.loads(line) for line in (tmp_path / "out/original/effects.jsonl").read_text().splitlines()]
    state = json.loads((tmp_path / "out/checkpoint.json").read_text())
    assert [one["status"] for one in now] == ["confirmed", "proposed", "confirmed"]
    assert [one["status"] for one in state["effects"]] == ["confirmed", "proposed", "confirmed"]
    assert [one["status"] for one in before] == ["uncertain", "in_progress", "confirmed"]
    assert [one["result"] for one in before] == [None, {"partly": 1}, 7]


def test_the_claim_says_what_the_checkpoint_said(setup: Setup, tmp_path: Path) -> None:
    first = saved(setup, effect("a"))
    restore(RUN, because(setup), into=tmp_path / "out", resolve={"a": "done"}).resume()
    link = Catalog(setup).read(RUN, 2)
    claim = link.record
    kept = (
        "objective",
        "phase",
        "note",
        "spend",
        "budget",
        "plan",
        "task",
        "user",
        "schema_version",
        "probes",
    )
    assert [getattr(claim, name) for name in kept] == [getattr(first, name) for name in kept]
    assert (claim.kind, claim.bundle, claim.outcome, claim.retention) == ("claim", None, "running", "live")
    assert (claim.effects.confirmed, claim.effects.uncertain, claim.effects.undecided) == (1, 0, ())
    assert link.seal.is_for(claim.recipients)
    assert {finding.error for finding in verify(setup, RUN)} == {None}
    assert {finding.error for finding in verify(setup, deep=True)} == {None}


def test_a_claim_as_the_newest_record_is_lived_with(setup: Setup, tmp_path: Path, config: Path) -> None:
    saved(setup, effect("a"))
    restore(RUN, because(setup), into=tmp_path / "out", resolve={"a": "done"}, claim=True)
    (head,) = Catalog(setup).heads()
    assert (head.run, head.seq, head.error) == (RUN, 2, None)
    after = plan(RUN, setup)
    assert (after.seq, after.newest, after.next_seq, after.exit_code) == (1, 2, 3, 0)
    assert [(one.seq, one.writer) for one in after.taken_over] == [(2, "own signing key")]
    assert any("taken over by own signing key at " in warning for warning in after.warnings)
    assert [(one.effect, one.outcome, one.reason) for one in after.decisions] == [
        ("a", "done", "looked at the bank's list")
    ]
    third = saved(setup, effect("a", "confirmed"))
    assert (third.seq, third.previous) == (3, Catalog(setup).read(RUN, 2).sha256)
    chain = Catalog(setup).chain(RUN)
    assert [link.record.kind for link in chain.links] == ["checkpoint", "claim", "checkpoint"]
    more = replace(setup, recipients=(*setup.recipients, generate().recipient))
    done = rekey.rekey(rekey.plan(RUN, more), more, reason="one more", progress=None)
    assert done is not None
    assert {finding.error for finding in verify(more, RUN, deep=True)} == {None}


def test_a_decision_that_was_made_is_not_asked_for_again(setup: Setup, tmp_path: Path) -> None:
    saved(setup, effect("a"), effect("b"))
    restore(RUN, because(setup), into=tmp_path / "1", resolve={"a": "done"}, accept=["effects"])
    assert plan(RUN, setup).blockers  # nobody has claimed anything with it
    restore(RUN, because(setup), into=tmp_path / "2", resolve={"a": "done", "b": "not-done"}, claim=True)
    before = restore(RUN, setup, into=tmp_path / "4")
    assert [one.status for one in before.effects] == ["confirmed", "proposed"]
    assert not any("may have happened since" in warning for warning in before.report.warnings)
    saved(setup, effect("c"))
    with pytest.raises(NeedsDecisionError, match="happened: b"):  # it may have been done before checkpoint 3
        restore(RUN, setup, into=tmp_path / "3", at=1)
    again = restore(RUN, because(setup), into=tmp_path / "3", at=1, resolve={"b": "done"})
    assert [(one.effect, one.outcome) for one in again.report.decisions] == [("a", "done"), ("b", "done")]
    assert [one.status for one in again.effects] == ["confirmed", "confirmed"]
    assert any("may have happened since" in warning for warning in again.report.warnings)
    assert [one.seq for one in again.report.taken_over] == [2]
    assert again.next_seq == 4
    with pytest.raises(UsageError, match=r"effect a was decided on: done, said .*looked at the bank's list"):
        plan(RUN, because(setup), at=1, resolve={"a": "not-done"})
    newest = plan(RUN, setup)  # what was said before it is about what was undecided before it
    assert ([one.accept for one in newest.blockers], newest.decisions) == (["effects"], ())


def test_only_what_is_undecided_can_be_resolved(setup: Setup) -> None:
    saved(setup, effect("a"), effect("b", "confirmed"), effect("c", replayable=True))
    why = because(setup)
    for key in ("b", "nobody", "c", ""):
        with pytest.raises(UsageError, match="no undecided effect"):
            restore(RUN, why, into=Path("out"), resolve={key: "done"})
    with pytest.raises(UsageError, match="no undecided effect 'nobody'") as caught:
        restore(RUN, why, into=Path("out"), resolve={"nobody": "done", "a": "done"})
    assert "a" in (caught.value.remedy or "")
    with pytest.raises(UsageError, match="needs its reason"):
        plan(RUN, because(setup, "  \n"), resolve={"a": "done"})
    with pytest.raises(UsageError, match="cannot be resolved as 'perhaps'"):
        plan(RUN, why, resolve={"a": "perhaps"})  # type: ignore[dict-item]  # a caller without types
    with pytest.raises(UsageError, match="more than 2000"):
        plan(RUN, because(setup, "x" * 2001), resolve={"a": "done"})
    assert not Path("out").exists()


def test_more_effects_than_a_record_lists_are_decided_on(setup: Setup, tmp_path: Path) -> None:
    keys = [f"key {number}" for number in range(120)]
    saved(setup, *map(effect, keys))
    resolve: dict[str, Outcome] = dict.fromkeys(keys[:-1], "done")
    with pytest.raises(NeedsDecisionError, match="key 119"):
        restore(RUN, because(setup), into=tmp_path / "out", resolve=resolve)
    done = restore(RUN, because(setup), into=tmp_path / "out", resolve={**resolve, keys[-1]: "not-done"})
    assert len(done.resume().decisions) == 120
    again = restore(RUN, setup, into=tmp_path / "again")
    assert {one.status for one in again.effects} == {"confirmed", "proposed"}


def test_several_effects_of_one_key_are_decided_on_together(setup: Setup, tmp_path: Path) -> None:
    saved(setup, effect("a"), effect("a", "confirmed", result=1), effect("a", "in_progress"))
    done = restore(RUN, setup, into=tmp_path / "out", accept=["effects"])
    with pytest.raises(NeedsDecisionError):
        done.effects.outcome("a", {"to": "a"})
    resumed = done.resume(resolve={"a": "not-done"}, because="x")
    assert [one.status for one in resumed.effects] == ["proposed", "confirmed", "proposed"]
    assert not resumed.effects.outcome("a", {"to": "a"}).act  # one of them did happen


# --- a precondition check -----------------------------------------------------------------------------------


def test_a_check_decides(setup: Setup, tmp_path: Path) -> None:
    saved(setup, effect("a"), effect("b"), effect("c", "confirmed"))
    done = restore(RUN, setup, into=tmp_path / "out", accept=["effects"])
    asked = []

    def bank(one: Effect) -> Outcome | None:
        asked.append(one.key)
        return "done" if one.key == "a" else None

    with pytest.raises(NeedsDecisionError, match="b"):
        done.resume(check=bank)
    assert asked == ["a", "b"]
    resumed = done.resume(check=lambda one: "not-done" if one.key == "b" else "done")
    assert [one.status for one in resumed.effects] == ["confirmed", "proposed", "confirmed"]
    said = Catalog(setup).read(RUN, 2).record.decisions
    assert all("found by the precondition check" in one.reason for one in said)


def test_a_check_that_fails_or_lies_decides_nothing(setup: Setup, tmp_path: Path) -> None:
    saved(setup, effect("a"), effect("b"), effect("b"))
    done = restore(RUN, setup, into=tmp_path / "out", accept=["effects"])

    def broken(one: Effect) -> Outcome | None:
        raise OSError("no answer")

    answers = iter(["done", "done", "not-done"])
    with pytest.raises(NeedsDecisionError, match="failed for the effect a: OSError: no answer"):
        done.resume(check=broken)
    with pytest.raises(UsageError, match="answers True"):
        done.resume(check=lambda one: True)  # type: ignore[arg-type,return-value]  # as a caller without types
    with pytest.raises(NeedsDecisionError, match="contradicts itself about b"):
        done.resume(check=lambda one: next(answers))  # type: ignore[arg-type,return-value]
    assert Catalog(setup).numbers(RUN) == [1]


# --- who is first -------------------------------------------------------------------------------------------


def test_the_writer_of_before_is_fenced(other: tuple[Setup, Setup], tmp_path: Path) -> None:
    first, second = other
    saved(first, effect("a"))
    done = restore(RUN, second, into=tmp_path / "out", accept=["effects"])
    resumed = done.resume(resolve={"a": "done"}, because="seen")
    assert resumed.seq == 2
    with pytest.raises(StaleWriterError):
        saved(first, effect("a", "confirmed"))
    assert saved(second, effect("a", "confirmed")).seq == 3
    report = plan(RUN, first, at=1)
    assert [one.writer for one in report.taken_over] == ["second machine"]
    assert report.exit_code == 0
    assert [link.writer for link in Catalog(first).chain(RUN).links] == [
        "first machine",
        *["second machine"] * 2,
    ]


@pytest.mark.parametrize("by", ["checkpoint", "claim"])
def test_who_comes_second_is_told(by: str, other: tuple[Setup, Setup], tmp_path: Path) -> None:
    first, second = other
    saved(first, effect("a", "confirmed"))
    late = restore(RUN, second, into=tmp_path / "late")
    if by == "checkpoint":
        saved(first, effect("a", "confirmed"))
    else:
        assert restore(RUN, first, into=tmp_path / "first").resume().seq == 2
    with pytest.raises(StaleWriterError, match="somebody else has committed record 2") as caught:
        late.resume()
    assert caught.value.exit_code == 3
    assert Catalog(first).numbers(RUN) == [1, 2]


def test_a_claim_that_comes_too_late_hands_nothing_over(
    other: tuple[Setup, Setup], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = other
    saved(first, effect("a", "confirmed"))
    from archiver import saved as room

    fetch = room.fetch

    def meanwhile(*arguments: Any, **options: Any) -> Any:
        saved(first, effect("a", "confirmed"))
        return fetch(*arguments, **options)

    monkeypatch.setattr(room, "fetch", meanwhile)
    with pytest.raises(StaleWriterError):
        restore(RUN, second, into=tmp_path / "out", claim=True)
    assert not (tmp_path / "out").exists()


def test_a_restore_that_claimed_does_not_claim_again(setup: Setup, tmp_path: Path) -> None:
    saved(setup, effect("a"))
    done = restore(RUN, because(setup), into=tmp_path / "out", resolve={"a": "done"}, claim=True)
    assert (done.claim, done.next_seq) == (2, 3)
    assert (done.resume().seq, done.resume().decisions) == (2, done.report.decisions)
    assert Catalog(setup).numbers(RUN) == [1, 2]
    with pytest.raises(UsageError, match="was decided on"):
        done.resume(resolve={"a": "not-done"}, because="x")
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert (report["claimed"], report["next_seq"]) == (2, 3)


# --- what cannot be claimed ---------------------------------------------------------------------------------


def test_a_claim_needs_a_key_that_others_believe(other: tuple[Setup, Setup], tmp_path: Path) -> None:
    first, second = other
    saved(first)
    stranger = replace(second, writers=Writers((first.writers.trusted[0],), Path("writers.toml")))
    with pytest.raises(UntrustedWriterError):
        restore(RUN, stranger, into=tmp_path / "out", claim=True)
    with pytest.raises(KeyUnavailableError, match="no signing key"):
        restore(RUN, replace(second, signing_key=None), into=tmp_path / "out", claim=True)
    assert not (tmp_path / "out").exists()
    done: Restored = restore(RUN, stranger, into=tmp_path / "out")
    with pytest.raises(UntrustedWriterError):
        done.resume()
    assert Catalog(first).numbers(RUN) == [1]


def test_nothing_follows_a_record_that_cannot_be_read(setup: Setup, tmp_path: Path) -> None:
    saved(setup, effect("a", "confirmed"))
    saved(setup, effect("a", "confirmed"))
    setup = replace(setup, witness=None)
    (path,) = Path(tmp_path / "store" / "records" / RUN).glob("*2.age")
    path.chmod(0o600)
    path.write_bytes(b"garbage")
    with pytest.raises(ChainError, match="cannot be taken over"):
        restore(RUN, setup, into=tmp_path / "out", at=1, claim=True)
    done = restore(RUN, setup, into=tmp_path / "out", at=1)
    assert done.next_seq is None
    assert any("does not hold together" in warning for warning in done.report.warnings)
    with pytest.raises(ChainError, match="cannot be taken over"):
        done.resume()


def test_no_audit_no_claim(setup: Setup, tmp_path: Path) -> None:
    saved(setup, effect("a", "confirmed"))
    done = restore(RUN, setup, into=tmp_path / "out")
    nowhere = tmp_path / "file"
    nowhere.write_text("x")
    settings = setup.settings.model_copy(
        update={"audit": setup.settings.audit.model_copy(update={"file": nowhere / "audit.jsonl"})}
    )
    blocked = replace(setup, settings=settings)
    with pytest.raises(AuditError):
        replace(done, _setup=blocked).resume()
    with pytest.raises(AuditError):
        restore(RUN, blocked, into=tmp_path / "more", claim=True)
    assert Catalog(setup).numbers(RUN) == [1]
    assert not (tmp_path / "more").exists()


# --- no credential leaves in a decision ---------------------------------------------------------------------


def test_a_credential_in_a_reason_is_replaced(
    setup: Setup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "ghp_" + secrets.token_hex(18)
    saved(setup, effect("a"), effect("b"))
    why = because(setup, f"asked with {secret}\x1b[2J")
    done = restore(RUN, why, into=tmp_path / "out", resolve={"a": "done"}, accept=["effects"])
    done.resume(resolve={"b": "done"}, because=f"curl -H 'Authorization: Bearer {secret}'")
    claim = Catalog(setup).read(RUN, 2).record
    assert len(claim.decisions) == 2
    assert all("[REDACTED:" in one.reason for one in claim.decisions)
    written = [
        path for path in tmp_path.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()
    ]
    assert written == []
    assert secret not in str(done.report)


def test_a_key_that_turns_out_to_be_a_credential_is_refused(
    setup: Setup, reopen: Callable[[], Setup], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = secrets.token_urlsafe(24)
    saved(setup, effect(f"pay {secret}"))
    monkeypatch.setenv("LATER_API_TOKEN", secret)
    with pytest.raises(RefusedError, match="holds a credential"):
        restore(RUN, because(reopen()), into=tmp_path / "out", resolve={f"pay {secret}": "done"})
    assert Catalog(setup).numbers(RUN) == [1]


def test_bytes_that_are_no_text_are_recorded_as_escapes(setup: Setup, tmp_path: Path) -> None:
    saved(setup, effect("a"))
    why = because(setup, os.fsdecode(b"seen \xff"))
    restore(RUN, why, into=tmp_path / "out", resolve={"a": "done"}, claim=True)
    assert Catalog(setup).read(RUN, 2).record.decisions[0].reason == "seen \\udcff"


def test_the_program_of_the_document_runs(
    setup: Setup, config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (Path(__file__).parents[2] / "docs" / "RESTORE.md").read_text(encoding="utf-8")
    code = text.split("```python\n")[1].split("```")[0].replace('"RUN"', f'"{RUN}"')
    saved(setup, effect("invoice-7", arguments={"amount": 12}))
    monkeypatch.setenv("ARCHIVER_CONFIG", str(config))
    paid: list[int] = []
    names: dict[str, Any] = {
        "folder": tmp_path / "out",
        "ask_the_bank": lambda one: "not-done",
        "pay": paid.append,
    }
    exec(compile(code, "RESTORE.md", "exec"), names)  # noqa: S102 - it is the document's own
    assert paid == [12]
    assert names["resumed"].seq == 2
