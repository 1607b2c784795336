"""expire: a folder loses what has had its time, and nothing else, whatever clocks and tags say."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from e2e.rekeying import at, backdate

from archiver import age, expiring, holding, layout, notes
from archiver.archive import Given, Options, Source, archive
from archiver.cli import program
from archiver.errors import RefusedError, UsageError
from archiver.model import Record
from archiver.model.checkpoint import Outcome
from archiver.setup import Setup
from archiver.store.decorated import Decorated
from archiver.store.local import LocalStore
from archiver.verify import verify
from removing.doing import RUN, tags, there

NOW = datetime.now(UTC)
DAY = timedelta(days=1)
Save = Callable[..., Record]


@pytest.fixture(autouse=True)
def now(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of this test: the clock would seem to be behind where others have taken minutes before it."""
    monkeypatch.setitem(globals(), "NOW", datetime.now(UTC))


@pytest.fixture
def save(setup: Setup, note: Path, now: None) -> Save:
    """Saves a checkpoint that is as many days old, by the clocks of writer and store."""

    def saved(
        days: float, outcome: Outcome = "running", run: str = RUN, store_days: float | None = None
    ) -> Record:
        moment = NOW - days * DAY
        given = Given(run_id=run, outcome=outcome)
        made = archive(Source(paths=(note,)), setup, options=Options(given=given), now=lambda: moment).record
        stored = NOW - (days if store_days is None else store_days) * DAY
        assert made.bundle is not None
        hint = layout.index_name(made.recorded_at, run, made.seq)
        for name in (layout.record_name(run, made.seq), made.bundle.name, hint):
            backdate(setup, stored, name)
        return made

    return saved


@pytest.fixture
def today(setup: Setup, save: Save) -> None:
    """A run of today in a store of the day before yesterday, so that the clock is seen to be right."""
    save(0, run="today")
    backdate(setup, NOW - 2 * DAY, layout.STORE)


def expired(setup: Setup, **named: object) -> set[str]:
    return {one.name for one in expiring.plan(setup, now=NOW, **named).expired}  # type: ignore[arg-type]


def bundles(*records: Record) -> set[str]:
    return {one.bundle.name for one in records if one.bundle is not None}


@pytest.mark.parametrize(
    ("outcome", "days"),
    [("running", 180), ("succeeded", 30), ("cancelled", 30), ("failed", 180), ("crashed", 180)],
)
def test_a_bundle_goes_after_the_days_of_its_class(
    setup: Setup, save: Save, today: None, outcome: Outcome, days: int
) -> None:
    old, young = save(days + 0.1, outcome, "old"), save(days - 0.1, outcome, "young")
    assert expired(setup) == bundles(old)
    done = expiring.expire(setup, now=NOW)
    assert {one.name for one in done.removed} == bundles(old)
    assert there(setup, "old", "bundle") == []
    assert there(setup, "young", "bundle") == [*bundles(young)]
    assert [one for one in verify(setup, now=NOW) if not one.ok] == []
    assert expiring.expire(setup, now=NOW).removed == ()


def test_superseded_bundles_go_after_eight_days_the_newest_first(
    setup: Setup, save: Save, today: None
) -> None:
    keep = setup.settings.run.ring
    run = [save(30 - number) for number in range(keep + 3)]
    before = tags(setup)
    found = [one.name for one in expiring.plan(setup, now=NOW).expired]
    assert tags(setup) == before, "a plan changes no tag"
    assert found == [record.bundle.name for record in reversed(run[:3]) if record.bundle]
    assert "hold" not in tags(setup).values()
    expiring.expire(setup, now=NOW)
    assert len(there(setup, RUN, "bundle")) == keep
    assert len(there(setup, RUN, "record")) == keep + 3


def test_longer_days_of_the_settings_count(setup: Setup, save: Save, today: None) -> None:
    save(40, "succeeded")
    longer = setup.settings.retention.model_copy(update={"success": timedelta(days=60)})
    settings = setup.settings.model_copy(update={"retention": longer})
    assert expired(replace(setup, settings=settings)) == set()
    assert len(expired(setup)) == 1


def test_the_later_clock_counts(setup: Setup, save: Save, today: None) -> None:
    save(100, "succeeded", "written", store_days=10)
    save(10, "succeeded", "stored", store_days=100)
    both = save(100, "succeeded", "both")
    assert expired(setup) == bundles(both)


def test_records_go_together_with_hints_and_only_after_their_bundles(
    setup: Setup, save: Save, today: None
) -> None:
    save(1000, "failed", "old")
    save(500, "failed", "old")
    save(500, "failed", "long")
    save(300, "failed", "long")
    held = save(500, "failed", "tagged")
    for name in bundles(held):
        setup.store.retag(name, "hold")
    expiring.expire(setup, now=NOW)
    assert there(setup, "old") == []
    assert [name.split("/")[0] for name in there(setup, "long")] == ["index", "records", "records"]
    assert {*bundles(held), layout.record_name("tagged", 1)} <= {*there(setup, "tagged")}
    assert [one for one in verify(setup, "long", now=NOW) if not one.ok] == []


def test_orphans_go_and_what_has_no_class_never_does(setup: Setup, save: Save, today: None) -> None:
    save(1, run="new")
    names = {
        "young": (layout.bundle_name("new", 7, "1" * 16), 7.5),
        "old": (layout.bundle_name("new", 7, "2" * 16), 8.5),
        "bare": (layout.bundle_name("new", 7, "3" * 16), 5000),
    }
    for name, days in names.values():
        setup.store.create(name, [b"x"], retention="live")
        backdate(setup, NOW - days * DAY, name)
    tag = at(setup, names["bare"][0]).with_name(f".{names['bare'][0].split('/')[-1]}.class")
    tag.write_bytes(b"mine\n")
    assert expired(setup) == {names["old"][0]}
    expiring.expire(setup, now=NOW)
    assert names["bare"][0] in there(setup, "new")


def test_a_run_on_hold_survives_everything(setup: Setup, save: Save, today: None) -> None:
    save(2000, "failed")
    holding.hold(RUN, setup, reason="a court")
    before = there(setup)
    for name in there(setup, RUN, "bundle", "record"):
        setup.store.retag(name, "intermediate")  # somebody took the tags away, the note stays
    backdate(setup, NOW - 2000 * DAY, "records/r/", "bundles/r/", "notes/r/", "audit/r/")
    assert expired(setup) == set()
    expiring.expire(setup, now=NOW)
    assert there(setup) == before
    assert {tag for (name, _), tag in tags(setup).items() if name.startswith("bundles/")} == {"hold"}


def test_a_note_that_does_not_open_here_may_be_a_hold(setup: Setup, save: Save, today: None) -> None:
    save(2000, "failed")
    holding.hold(RUN, setup, reason="a court")
    for name in there(setup, RUN, "bundle", "record"):
        setup.store.retag(name, "intermediate")
    (note,) = there(setup, RUN, "note")
    (believed,) = notes.Notes(setup).of(RUN)
    other = replace(setup, recipients=(age.X25519Identity.generate().recipient,))
    recipients = other.recipients_for(RUN, RUN, "note")
    at(setup, note).write_bytes(notes.encode(believed.note, setup.require_signing_key(), recipients))
    found = expiring.plan(setup, now=NOW)
    assert found.expired == ()
    assert any("may be on hold" in one for one in found.warnings)


def test_a_hold_while_it_runs_keeps_what_is_still_there(
    setup: Setup, save: Save, today: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = [save(1000 - number, "failed") for number in range(3)]
    inner = LocalStore.delete_if
    seen: list[str] = []

    def overtaken(self: LocalStore, name: str, allowed: object) -> bool:
        seen.append(name)
        if len(seen) == 2:
            holding.hold(RUN, setup, reason="now")
        return inner(self, name, allowed)  # type: ignore[arg-type]

    monkeypatch.setattr(LocalStore, "delete_if", overtaken)
    done = expiring.expire(setup, now=NOW)
    assert {one.name for one in done.removed} == bundles(run[2])
    assert {*there(setup, RUN, "bundle")} == bundles(*run[:2])
    assert len(there(setup, RUN, "record")) == 3
    assert len(seen) == 2


@pytest.mark.parametrize("days", [-1, 40, 100_000])
def test_a_clock_that_seems_wrong_removes_nothing_without_a_word(
    setup: Setup, save: Save, today: None, days: int
) -> None:
    save(300, "failed", "old")
    before = [info.name for info in setup.store.list()]
    with pytest.raises(RefusedError, match="clock of this machine"):
        expiring.expire(setup, now=NOW + days * DAY)
    assert [info.name for info in setup.store.list()] == before
    assert expiring.plan(setup, now=NOW + days * DAY).doubt
    assert expiring.expire(setup, now=NOW + days * DAY, now_is_right=True).removed
    assert there(setup, "today", "bundle") or days > 100


def test_a_sweep_by_the_same_wrong_clock_does_not_make_it_right(setup: Setup, save: Save) -> None:
    save(120, "succeeded", "not old")
    backdate(setup, NOW - 150 * DAY, layout.STORE)
    save(0.1, run="just swept")
    with pytest.raises(RefusedError, match=r"older than a day is of .* more than 100 days before"):
        expiring.expire(setup, now=NOW)
    assert there(setup, "not old", "bundle")
    save(99, "succeeded", "last quarter")
    assert expiring.plan(setup, now=NOW).doubt == ""
    assert expiring.expire(setup, now=NOW).removed


def test_a_damaged_run_keeps_its_orphans_and_the_rest_goes_on(setup: Setup, save: Save, today: None) -> None:
    first, second = save(100), save(99)
    old = save(300, "failed", "old")
    at(setup, layout.record_name(RUN, 2)).write_bytes(b"garbage")
    found = expiring.plan(setup, now=NOW)
    assert {one.name for one in found.expired} == bundles(old)
    assert any(RUN in one for one in found.warnings)
    assert not bundles(first, second) & {one.name for one in found.expired}


def test_a_bucket_has_rules_for_that(setup: Setup) -> None:
    with pytest.raises(UsageError, match="lifecycle rules"):
        expiring.plan(replace(setup, store=Decorated(setup.store)))


def test_the_command_shows_first_and_says_why(
    setup: Setup, save: Save, today: None, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = save(300, "failed", "old")
    flag = ["--config", str(config)]
    assert program.run("archiver", ["expire", *flag]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert line.split("\t")[0] in bundles(old)
    assert line.split("\t")[3] == "failure"
    assert "180 days from" in line.split("\t")[5]
    assert program.run("archiver", ["expire", *flag, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["dry_run"], document["objects"], list(document["classes"])) == (True, 1, ["failure"])
    assert there(setup, "old", "bundle") == [*bundles(old)]
    assert program.run("archiver", ["expire", *flag, "--now-is-right"]) == 2
    capsys.readouterr()
    assert program.run("archiver", ["expire", *flag, "--yes", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["objects"] == 1
    assert there(setup, "old", "bundle") == []
    assert program.run("archiver", ["audit", *flag]) == 0
    assert "expire" in capsys.readouterr().out
