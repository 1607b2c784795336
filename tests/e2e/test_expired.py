"""A bundle that is gone: expired where its class lets it be gone, damage where not."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from archiver import bundles, layout
from archiver.age import X25519Identity
from archiver.archive import Given, Options, Source, archive
from archiver.catalog import Catalog
from archiver.cli import program
from archiver.errors import (
    BundleExpiredError,
    BundleMissingError,
    DigestMismatchError,
    MissingRecordError,
)
from archiver.model import Record
from archiver.model.checkpoint import Outcome
from archiver.rekey import rekey
from archiver.restore import plan, restore
from archiver.setup import Setup
from archiver.verify import Finding, verify
from e2e.rekeying import at, backdate, overwrite, to

RUN = "r"
NOW = datetime.now(UTC)
DAY = timedelta(days=1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
Save = Callable[..., Record]


@pytest.fixture
def save(setup: Setup, note: Path) -> Save:
    """Saves a checkpoint that is as many days old, by the clocks of writer and store."""

    def saved(
        days: float, outcome: Outcome = "running", run: str = RUN, store_days: float | None = None
    ) -> Record:
        moment = NOW - days * DAY
        given = Given(run_id=run, outcome=outcome)
        made = archive(Source(paths=(note,)), setup, options=Options(given=given), now=lambda: moment).record
        assert made.recorded_at == moment
        stored = NOW - (days if store_days is None else store_days) * DAY
        assert made.bundle is not None
        for name in (layout.record_name(run, made.seq), made.bundle.name):
            backdate(setup, stored, name)
        return made

    return saved


def remove(setup: Setup, record: Record) -> None:
    assert record.bundle is not None
    at(setup, record.bundle.name).unlink()


def states(setup: Setup, run: str | None = RUN, now: datetime | None = None) -> dict[str, str]:
    """What is said of each bundle, by the checkpoint's number."""
    found = [finding for finding in verify(setup, run, now=now) if finding.object.startswith("bundles/")]
    return {str(one.seq): type(one.error).__name__ if one.error else one.state for one in found}


def test_superseded_bundles_expire_after_eight_days(setup: Setup, save: Save) -> None:
    for record in [save(20), save(19), save(7), save(1)][:3]:
        remove(setup, record)
    assert states(setup) == {"1": "expired", "2": "expired", "3": "BundleMissingError", "4": "ok"}
    assert states(setup, now=NOW + DAY + DAY)["3"] == "expired"
    assert states(setup, now=NOW - 7 * DAY - DAY / 2)["2"] == "BundleMissingError", "not superseded yet"


def test_what_was_written_before_there_was_anything_is_of_no_known_age(setup: Setup, save: Save) -> None:
    """A machine that takes today for 1970 has saved them."""
    first, _ = save((NOW - EPOCH) / DAY), save((NOW - EPOCH) / DAY - 1)
    remove(setup, first)
    assert states(setup) == {"1": "BundleMissingError", "2": "ok"}


def test_of_a_folder_it_is_said_by_which_clock(setup: Setup, save: Save) -> None:
    record = save(1)
    remove(setup, record)
    later = datetime(2090, 1, 1, tzinfo=UTC)
    (finding,) = [found for found in verify(setup, RUN, now=later) if found.state == "expired"]
    assert "by this machine's clock: 2090-01-01T00:00:00.000Z" in finding.note


def test_a_finding_says_since_when(setup: Setup, save: Save) -> None:
    first = save(20)
    save(1)
    remove(setup, first)
    (finding,) = [found for found in verify(setup, RUN) if found.state == "expired"]
    assert finding.ok
    assert "is EXPIRED since " in finding.note
    assert "class intermediate, 8 days" in finding.note
    assert first.bundle is not None
    assert (finding.object, finding.run, finding.seq) == (first.bundle.name, RUN, 1)


@pytest.mark.parametrize(
    ("outcome", "kept"), [("running", 180), ("succeeded", 30), ("cancelled", 30), ("failed", 180)]
)
def test_the_newest_is_kept_by_the_outcome(setup: Setup, save: Save, outcome: Outcome, kept: int) -> None:
    remove(setup, save(kept + 1, outcome, "old"))
    remove(setup, save(kept - 1, outcome, "young"))
    with pytest.raises(BundleExpiredError) as expired:
        plan("old", setup)
    assert expired.value.exit_code == 9
    with pytest.raises(BundleMissingError) as missing:
        plan("young", setup)
    assert missing.value.exit_code == 4
    assert states(setup, None) == {"1": "BundleMissingError"}  # of the two runs, the last
    assert states(setup, "old") == {"1": "expired"}


def test_the_later_clock_counts(setup: Setup, save: Save) -> None:
    remove(setup, save(200, run="written", store_days=100))
    remove(setup, save(100, run="stored", store_days=200))
    remove(setup, save(200, run="both"))
    for run in ("written", "stored"):
        with pytest.raises(BundleMissingError, match="keeps it until"):
            plan(run, setup)
    with pytest.raises(BundleExpiredError):
        plan("both", setup)


def test_a_remedy_names_the_newest_whole_checkpoint(setup: Setup, save: Save, tmp_path: Path) -> None:
    gone, _, last = save(40), save(39), save(38)
    remove(setup, gone)
    remove(setup, last)
    with pytest.raises(BundleExpiredError) as caught:
        restore(RUN, setup, into=tmp_path / "out", at=1)
    assert "checkpoint 2 is the newest that is still whole" in str(caught.value.remedy)
    with pytest.raises(BundleMissingError) as missing:
        restore(RUN, setup, into=tmp_path / "out")
    assert "--at 2" in str(missing.value.remedy)
    assert not (tmp_path / "out").exists()


def test_where_nothing_is_left_that_is_said(setup: Setup, save: Save) -> None:
    remove(setup, save(200))
    with pytest.raises(BundleExpiredError) as caught:
        plan(RUN, setup)
    assert "only its records are left" in str(caught.value.remedy)


def test_a_bundle_of_another_size_is_damage_at_any_age(setup: Setup, save: Save) -> None:
    record = save(1000)
    assert record.bundle is not None
    overwrite(at(setup, record.bundle.name), b"x")
    assert states(setup) == {"1": "DigestMismatchError"}
    with pytest.raises(DigestMismatchError):
        plan(RUN, setup)
    remove(setup, record)
    assert states(setup) == {"1": "expired"}


def test_a_gap_of_records_is_damage_at_any_age(setup: Setup, save: Save) -> None:
    for _ in range(3):
        save(1000)
    at(setup, layout.record_name(RUN, 2)).unlink()
    (finding,) = [found for found in verify(setup, RUN) if not found.ok]
    assert isinstance(finding.error, MissingRecordError)


def test_records_that_cannot_be_read_do_not_make_a_bundle_expire(setup: Setup, save: Save) -> None:
    """What was superseded by a record that is damaged now was perhaps not: the class at creation counts."""
    first = save(20)
    for days in (11, 10):
        save(days)
    remove(setup, first)
    with pytest.raises(BundleExpiredError):
        plan(RUN, setup, at=1)
    overwrite(at(setup, layout.record_name(RUN, 2)), b"garbage")
    with pytest.raises(BundleMissingError):
        plan(RUN, setup, at=1)


def test_a_rewritten_header_makes_nothing_young(setup: Setup, save: Save) -> None:
    first = save(20)
    save(10)
    other = X25519Identity.generate()
    (done,) = rekey([RUN], to(setup, other))
    assert done.error is None
    remove(setup, first)
    assert states(to(setup, other))["1"] == "expired"


def test_verify_exits_well_and_restore_with_nine(
    setup: Setup, save: Save, config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    remove(setup, save(20))
    save(10)
    flag = ["--config", str(config)]
    assert program.run("archiver", ["verify", *flag, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    (found,) = [one for one in document["findings"] if one["state"] == "expired"]
    assert (document["ok"], found["run"], found["seq"], found["error"]) == (True, RUN, 1, None)
    assert program.run("archiver", ["verify", *flag]) == 0
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [row[0] for row in rows if row[1].startswith("bundles/")] == ["expired", "ok"]
    words = ["restore", RUN, "--at", "1", "--into", str(tmp_path / "out"), *flag]
    assert program.run("archiver", words) == 9
    assert "checkpoint 2 is the newest that is still whole" in capsys.readouterr().err


def test_many_expired_bundles_are_one_look(setup: Setup, save: Save, monkeypatch: pytest.MonkeyPatch) -> None:
    """The chain is read once, not once for each bundle that is gone."""
    for record in [save(100) for _ in range(12)][:-1]:
        remove(setup, record)
    asked: list[str] = []
    inner = Catalog.beginning

    def counting(self: Catalog, run: str, upto: int | None = None) -> object:
        asked.append(run)
        return inner(self, run, upto)

    monkeypatch.setattr(Catalog, "beginning", counting)
    found: list[Finding] = list(verify(setup, RUN))
    assert sum(one.state == "expired" for one in found) == 11
    assert len(asked) == 1


def test_the_error_comes_where_the_bundle_vanishes_late(setup: Setup, save: Save, tmp_path: Path) -> None:
    record = save(200)
    remove(setup, record)
    with pytest.raises(BundleExpiredError):
        bundles.seal(record, setup)
