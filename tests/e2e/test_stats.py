"""`archiver stats` over real stores: what is counted, what is named, what is not known."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import archiver
from archiver import audit, layout, records, statistics
from archiver.archive import Source, archive, prepare
from archiver.audit import Session
from archiver.errors import StaleCheckpointError, StoreDeniedError, StoreUnreachableError
from archiver.model import (
    Approval,
    Checkpoint,
    Effect,
    Items,
    Outcome,
    Plan,
    Record,
    Spend,
    Transcript,
    TranscriptPart,
)
from archiver.model.audit import AuditEntry
from archiver.position import Position
from archiver.redact import new_key
from archiver.restore import restore
from archiver.setup import Setup
from archiver.sign import SigningKey
from archiver.spool import open_spool
from archiver.store.decorated import Decorated
from e2e.auditing import command, path_of

NOW = datetime.now(UTC)


@pytest.fixture(autouse=True)
def configured(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands find the configuration of the store."""
    monkeypatch.setenv("ARCHIVER_CONFIG", str(config))
    monkeypatch.setattr("signal.signal", lambda *_: None)


def save(setup: Setup, run: str, outcome: Outcome = "running", said: str = "hello", **more: Any) -> Record:
    messages = [{"role": "user", "content": said}]
    checkpoint = Checkpoint.model_validate(
        {
            "run_id": run,
            "task_id": "t",
            "outcome": outcome,
            "created_at": NOW,
            "checkpoint_at": NOW,
            "transcript": Transcript(
                dialect="anthropic-messages",
                parts=(TranscriptPart(name="m.jsonl", items=Items.of(messages)),),
            ),
            **more,
        }
    )
    return archive(Source(checkpoint=checkpoint), setup).record


def skip(setup: Setup, before: Record) -> Record:
    """Commit a record of a checkpoint whose bundle was given up."""
    made = before.model_copy(
        update={
            "kind": "skipped",
            "seq": before.seq + 1,
            "previous": records.body_sha256(before),
            "bundle": None,
            "findings": {"of-a-bundle-that-is-gone": 1},
        }
    )
    sealed = records.encode(made, setup.require_signing_key(), setup.recipients)
    setup.store.create(layout.record_name(made.run, made.seq), [sealed], retention="record")
    return made


def damage(setup: Setup, name: str) -> None:
    path = path_of(setup, name)
    path.chmod(0o600)
    path.write_bytes(path.read_bytes()[:-1])


def test_an_empty_store_has_nothing_and_says_so(setup: Setup) -> None:
    done = command("stats", "--json")
    assert done.code == 0
    assert done.json["runs"] == {"total": 0}
    assert done.json["records"] == {"checkpoint": 0, "claim": 0, "skipped": 0}
    assert done.json["bytes"]["stored_of_raw"] is None
    assert done.json["audit"]["create_seconds"] is None
    assert done.json["spool"] == {"entries": 0, "bytes": 0, "forks": 0, "oldest": None}
    assert done.json["errors"] == []


def test_runs_records_bytes_findings_and_effects_are_added_up(setup: Setup) -> None:
    leaked = "ghp_" + secrets.token_hex(18)
    at = {"tool": "mail", "at": NOW}
    effects = (
        Effect(key="a", status="confirmed", **at),
        Effect(key="b", status="uncertain", **at),
        Effect(key="c", status="in_progress", replayable=True, **at),
    )
    first = [save(setup, "one", said=f"x {leaked}"), save(setup, "one", said=f"y {leaked}", effects=effects)]
    last = save(setup, "two", "failed")
    skipped = skip(setup, save(setup, "three"))
    final = save(setup, "three", "succeeded")
    assert (skipped.seq, final.seq) == (2, 3)
    skip(setup, final)
    done = command("stats", "--json")
    assert done.code == 0, done.err
    assert done.json["runs"] == {"total": 3, "failed": 1, "running": 1, "succeeded": 1}
    assert done.json["records"] == {"checkpoint": 5, "claim": 0, "skipped": 2}
    sizes = [one.sizes for one in (*first, last, final)]
    three = done.json["bytes"]["raw"] - sum(one.raw for one in sizes)
    assert three == sizes[-1].raw
    assert (
        0
        < done.json["bytes"]["stored_of_raw"]
        == round(done.json["bytes"]["stored"] / done.json["bytes"]["raw"], 6)
    )
    assert done.json["findings"] == first[1].findings
    assert sum(first[1].findings.values()) > 0
    assert done.json["effects"] == {
        "proposed": 0, "in_progress": 1, "confirmed": 1, "uncertain": 1, "undecided": 1,
    }  # fmt: skip
    piped = dict(command("stats").rows)
    assert piped["runs.total"] == "3"
    assert piped["bytes.raw"] == str(done.json["bytes"]["raw"])
    assert piped["audit.create_seconds"] == "-"
    assert leaked not in str(done.json)


def test_each_claim_avoids_what_its_checkpoint_had_used(setup: Setup, tmp_path: Path) -> None:
    spend = Spend(tokens_in=100, tokens_out=20, tokens_cached=7, cost=1.5, seconds=60.0)
    save(setup, "paid", spend=spend)
    restore("paid", setup, into=tmp_path / "1", claim=True)
    restore("paid", setup, into=tmp_path / "2").resume()
    save(setup, "euro", spend=Spend(cost=2.0, currency="EUR"))
    restore("euro", setup, into=tmp_path / "3", claim=True)
    save(setup, "silent")
    restore("silent", setup, into=tmp_path / "4", claim=True)
    assert command("stats", "--json").json["replay_avoided"] == {
        "resumes": 4,
        "resumes_of_unknown_use": 1,
        "seconds": 120.0,
        "tokens": 240,
        "cost": {"EUR": 2.0, "USD": 3.0},
    }
    assert command("stats", "--json", "euro", "silent").json["replay_avoided"]["cost"] == {"EUR": 2.0}


def test_the_audit_tells_of_restores_stale_ones_and_sessions(setup: Setup, tmp_path: Path) -> None:
    save(setup, "old", checkpoint_at=NOW - timedelta(days=10), created_at=NOW - timedelta(days=11))
    with pytest.raises(StaleCheckpointError):
        restore("old", setup, into=tmp_path / "out")
    accept = ["age", "budget", "effects", "rollback"]  # the first alone stands against it
    restored = restore("old", replace(setup, why="it is fine"), into=tmp_path / "out", accept=accept)
    assert restored.report.accepted == ("age",)
    claim = restored.resume().seq
    session = Session(
        seconds=60, restore_seconds=2, checkpoints=4, create_seconds=2, slowest_create=1.25,
        failed=1, duplicates_prevented=3, steps_replayed=5,
    )  # fmt: skip
    assert audit.note_session(setup, "old", session, claim=claim) == ()
    assert "hello" in command("show", "old", "--tail", "1").out
    entries = command("audit", "old", "--json").json["entries"]
    assert [one["within"] for one in entries if one["action"] == "accept"] == [""], "a look accepts nothing"
    (told,) = (one for one in entries if one["action"] == "session")
    assert (told["seq"], told["object"] is not None) == (claim, True)
    assert audit.note_session(setup, "old", Session(checkpoints=1, create_seconds=0.5), local=True) == ()
    audit.note_session(replace(setup, store_id="ab" * 16), "old", Session(duplicates_prevented=9), local=True)
    expected = {
        "restores": 1,
        "stale_restores_refused": 1,
        "stale_probes_accepted": {"age": 1},
        "sessions": 2,
        "duplicate_effects_prevented": 3,
        "steps_replayed": 5,
        "failed_saves": 1,
        "create_seconds": {"count": 5, "mean": 0.5, "slowest": 1.25},
        "restore_seconds": {"count": 1, "mean": 2.0, "slowest": 2.0},
        "unread": 0,
        "unknown_signers": 0,
    }
    assert command("stats", "--json").json["audit"] == expected
    assert command("stats", "old", "--json").json["audit"] == expected
    assert command("stats", "old", "--since", "2100-01-01", "--json").json["audit"]["restores"] == 0


def test_a_resume_accepts_what_it_was_told_to_and_a_look_nothing(
    setup: Setup, reopen: Callable[[], Setup]
) -> None:
    """A question that waits for a person is what the library asks itself; a look is no restore."""
    asked = Plan(pending_approvals=(Approval(id="a", question="Deploy?", asked_at=NOW),))
    with archiver.run("r", setup=setup, harness="a 1") as run:
        run.effect("mail", key="m").do(lambda: "sent")
        run.checkpoint([{"role": "user", "content": "hello"}], plan=asked, force=True)
    with archiver.run("r", setup=reopen(), harness="a 2", accept=("harness",), because="reads both") as run:
        assert run.resumed
    shown = command("show", "r", "--tail", "2")
    assert "hello" in shown.out
    assert ["effects", "1 confirmed"] in shown.rows
    told = command("stats", "--json").json["audit"]
    assert (told["restores"], told["stale_probes_accepted"]) == (1, {"harness": 1})
    (entry,) = (one for one in command("audit", "r", "--json").json["entries"] if one["action"] == "accept")
    assert (entry["detail"], entry["why"]) == ({"probes": ["harness"]}, "reads both")


def test_a_run_that_is_not_there_is_all_that_is_said(setup: Setup) -> None:
    save(setup, "r")
    told = command("stats", "nosuch", "nosuch")
    assert (told.code, told.out) == (9, "")
    assert "nosuch" in told.err
    both = command("stats", "nosuch", "r", "--json")
    assert (both.code, both.json["runs"]["total"]) == (9, 2)


def test_on_another_machine_the_store_tells_what_was_put_there(
    setup: Setup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(setup, "r")
    restore("r", setup, into=tmp_path / "out")
    audit.note_session(setup, "r", Session(duplicates_prevented=2))
    audit.note_session(setup, "r", Session(duplicates_prevented=40), local=True)
    monkeypatch.setenv("ARCHIVER_AUDIT__FILE", str(tmp_path / "elsewhere.jsonl"))
    told = command("stats", "--json").json["audit"]
    assert (told["restores"], told["sessions"], told["duplicate_effects_prevented"]) == (1, 1, 2)


def put(setup: Setup, key: SigningKey, detail: dict[str, Any], action: str = "session") -> None:
    entry = AuditEntry(
        at=datetime.now(UTC), action=action, run="r", who="w", uid=1, store=setup.require_store_id(),
        task="t", by=key.public, detail=detail,
    )  # fmt: skip
    name = layout.audit_name(entry.at, "r", secrets.token_hex(8))
    sealed = audit.entries.encode(entry, key, setup.recipients)
    setup.store.create(name, [sealed], retention="record")


def test_audit_by_strangers_of_later_releases_and_of_nonsense_breaks_nothing(setup: Setup) -> None:
    own = setup.require_signing_key()
    save(setup, "r")
    put(setup, SigningKey.generate(), {"duplicates_prevented": 1000})
    put(setup, own, {"duplicates_prevented": 1}, action="of-a-later-release")
    for value in (-1, 1e300, True, "7", None, [1], {"a": 1}):
        put(setup, own, {"duplicates_prevented": value, "create_seconds": value})
    put(setup, own, {"probes": {"a": 1}}, action="accept")
    damage(setup, next(setup.store.list(layout.audit_prefix("r"))).name)
    told = command("stats", "--json").json["audit"]
    assert (told["sessions"], told["duplicate_effects_prevented"], told["create_seconds"]) == (7, 0, None)
    assert (told["unknown_signers"], told["unread"], told["stale_probes_accepted"]) == (1, 1, {})
    assert [one["action"] for one in command("audit", "r", "--json").json["entries"]].count(
        "of-a-later-release"
    ) == 1


def test_a_damaged_run_is_counted_and_named_and_the_others_all_the_same(setup: Setup) -> None:
    save(setup, "bad")
    save(setup, "bad")
    save(setup, "good", "succeeded")
    damage(setup, layout.record_name("bad", 2))
    done = command("stats", "--json")
    assert done.code == 4
    assert done.json["runs"] == {"total": 2, "damaged": 1, "succeeded": 1}
    assert done.json["records"]["checkpoint"] == 2
    (error,) = done.json["errors"]
    assert (error["run"], error["seq"]) == ("bad", 2)
    assert "bad" in done.err


def test_a_store_that_was_put_back_is_no_good_sum(setup: Setup) -> None:
    save(setup, "back")
    save(setup, "back")
    save(setup, "gone")
    path_of(setup, layout.record_name("back", 2)).unlink()
    path_of(setup, layout.record_name("gone", 1)).unlink()
    done = command("stats", "--json")
    assert done.code == 4
    assert done.json["runs"] == {"total": 2, "damaged": 2}
    assert {one["run"] for one in done.json["errors"]} == {"back", "gone"}
    assert command("stats", "--since", "2100-01-01", "--json").json["runs"] == {"total": 1, "damaged": 1}


def test_since_counts_what_was_saved_since(setup: Setup) -> None:
    save(setup, "r")
    middle = datetime.now(UTC)
    save(setup, "r")
    save(setup, "s", "failed")
    since = ("--since", middle.isoformat())
    assert command("stats", *since, "--json").json["records"]["checkpoint"] == 2
    assert command("stats", *since, "--json", "r").json["records"]["checkpoint"] == 1
    assert command("stats", "--since", "2100-01-01", "--json").json["runs"] == {"total": 0}
    assert command("stats", "--since", "soon").code == 2


def test_a_run_that_is_not_there_is_an_error_beside_those_that_are(setup: Setup) -> None:
    save(setup, "here")
    done = command("stats", "here", "there", "--json")
    assert done.code == 9
    assert done.json["runs"]["running"] == 1
    assert [one["run"] for one in done.json["errors"]] == ["there"]


class Away(Decorated):
    """A store that refuses lists of names that begin so, from the first or a later element on."""

    def __init__(self, inner: Any, prefix: str, error: Exception, after: int = 0) -> None:
        super().__init__(inner)
        self._prefix, self._error, self._after = prefix, error, after

    def list(self, prefix: str = "") -> Any:
        found: Iterable[Any] = self._inner.list(prefix)
        if not prefix.startswith(self._prefix):
            return found
        return self._until(found)

    def _until(self, found: Iterable[Any]) -> Any:
        for number, info in enumerate(found):
            if number == self._after:
                break
            yield info
        raise self._error


def test_an_audit_that_may_not_be_read_is_said_and_a_store_that_goes_away_is_fatal(setup: Setup) -> None:
    for run in ("a", "b", "c"):
        save(setup, run)
    denied = replace(setup, store=Away(setup.store, layout.AUDIT, StoreDeniedError("not yours")))
    found = statistics.gather(denied)
    assert found.sums.runs.total() == 3
    assert found.warnings == ("what was written down about runs is not all known: not yours",)
    lost = replace(setup, store=Away(setup.store, layout.RECORDS, StoreUnreachableError("gone"), after=2))
    with pytest.raises(StoreUnreachableError):
        statistics.gather(lost)


def test_what_a_writer_claims_without_bound_leaves_a_document(setup: Setup, tmp_path: Path) -> None:
    for run in ("a", "b", "c"):
        save(setup, run, spend=Spend(tokens_in=2**63 - 1, cost=1.7e308, seconds=1.7e308))
        restore(run, setup, into=tmp_path / run, claim=True)
    done = command("stats", "--json")
    assert done.code == 0, done.err
    assert done.json["replay_avoided"]["seconds"] == statistics.sums.MOST
    assert command("stats").code == 0


def test_people_are_told_what_is_known_and_what_is_not(
    setup: Setup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(setup, "r", spend=Spend(cost=37.0, seconds=14_400.0), said="a" * 50_000)
    monkeypatch.setattr("archiver.cli.output.tty", lambda: True)
    before = command("stats")
    assert before.code == 0
    assert "duplicate effects prevented  not known: no session of the library has said" in before.out
    assert "create latency               not known: no session of the library has said" in before.out
    restored = restore("r", replace(setup, why="again"), into=tmp_path / "out")
    session = Session(checkpoints=2, create_seconds=3, slowest_create=2, duplicates_prevented=1)
    audit.note_session(setup, "r", session, claim=restored.resume().seq)
    told = dict(line.split("  ", 1) for line in command("stats").out.splitlines())
    told = {name: value.strip() for name, value in told.items()}
    assert told["runs"] == "1: 1 running"
    assert told["resumes"] == "1"
    assert told["replay avoided"] == "4 h, $37"
    assert told["duplicate effects prevented"] == "1 (said by 1 session)"
    assert told["create latency"] == "1.5 s on average, 2 s at most, measured 2 times"
    assert told["restore latency"] == "not known: no session of the library has said"
    assert told["compacted"].endswith("% of raw)")


def test_what_waits_on_this_machine_is_counted_and_a_reader_without_the_name_of_the_store_is_told(
    setup: Setup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = open_spool(setup).of("late", "t")
    checkpoint = Checkpoint(run_id="late", task_id="t", created_at=NOW, checkpoint_at=NOW)
    place = Position("late", redaction_key=new_key())
    with prepare(Source(checkpoint=checkpoint), setup, lambda _: place) as made:
        record = made.record(made.new_name(), NOW)
        sealed = records.encode(record, setup.require_signing_key(), setup.recipients)
        waiting.add(record, sealed, made.sealed.path, plain=True)
    told = command("stats", "--json").json
    assert told["records"]["checkpoint"] == 0
    assert (told["spool"]["entries"], told["spool"]["forks"]) == (1, 0)
    assert told["spool"]["bytes"] > record.sizes.stored
    assert told["spool"]["oldest"] is not None
    monkeypatch.setattr("archiver.cli.output.tty", lambda: True)
    assert "1 object waits on this machine, since " in command("stats").out
    waiting.deliver()
    assert "nothing waits on this machine" in command("stats").out
    elsewhere = statistics.gather(replace(setup, store_id=None, witness=None))
    assert (elsewhere.waiting, elsewhere.sums.runs.total()) == (None, 1)
