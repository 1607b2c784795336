"""A store that was taken back, shortened or replaced is noticed by whoever has seen it before."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from archiver import records, rollback
from archiver.age import generate
from archiver.archive import Given, Options, Source, archive, commit
from archiver.config import load, state_home
from archiver.errors import (
    ChainError,
    ForkError,
    NoSuchRunError,
    RolledBackError,
    StaleWriterError,
    WitnessError,
)
from archiver.model import Record
from archiver.restore import plan, restore
from archiver.setup import Setup, open_setup
from archiver.witness import FolderWitness, Seen

from .rekeying import done, to

RUN = "r"
LATER = timedelta(days=401)


@pytest.fixture
def root(setup: Setup) -> Path:
    return Path(setup.store.url.removeprefix("file://"))


def save(setup: Setup, path: Path, note: str = "", run: str = RUN) -> Record:
    return archive(Source(paths=(path,)), setup, options=Options(given=Given(run_id=run, note=note))).record


def record_at(root: Path, seq: int) -> Path:
    return root / f"records/{RUN}/{seq:08d}.age"


def seen(setup: Setup) -> Seen | None:
    assert setup.witness is not None
    return setup.witness.seen(setup.require_store_id(), RUN)


def newest_seen(setup: Setup) -> int:
    found = seen(setup)
    return found.seq if found else 0


def file_of(setup: Setup) -> Path:
    assert setup.witness is not None
    return Path(setup.witness.where(setup.require_store_id(), RUN))


def elsewhere(setup: Setup, tmp_path: Path, name: str = "other-witness") -> Setup:
    """The same store for another machine, which remembers for itself."""
    return replace(setup, witness=FolderWitness(tmp_path / name))


def put_back(copy: Path, root: Path) -> None:
    shutil.rmtree(root)
    shutil.copytree(copy, root)


def forge(setup: Setup, root: Path, record: Record) -> None:
    """Put a record that is signed with the real key over what is there."""
    path = record_at(root, record.seq)
    path.unlink(missing_ok=True)
    path.write_bytes(records.encode(record, setup.require_signing_key(), setup.recipients))


def age(setup: Setup, by: timedelta) -> None:
    """Have the remembered record be so much older."""
    path = file_of(setup)
    document = json.loads(path.read_text())
    for key in ("recorded_at", "seen_at"):
        moment = datetime.fromisoformat(document[key]) - by
        document[key] = moment.isoformat().replace("+00:00", "Z")
    path.write_text(json.dumps(document))


def test_a_writer_remembers_and_a_reader_who_has_not_seen_the_run_says_so(
    setup: Setup, note: Path, tmp_path: Path
) -> None:
    record = save(setup, note)
    found = seen(setup)
    assert found is not None
    assert (found.seq, found.sha256) == (1, records.body_sha256(record))
    assert file_of(setup).is_relative_to(state_home() / "witness")
    assert plan(RUN, setup).rollback == "verified"
    stranger = elsewhere(setup, tmp_path)
    report = plan(RUN, stranger)
    assert report.rollback == "unverified"
    assert "first sight" in report.witness
    report = restore(RUN, stranger, into=tmp_path / "out").report
    assert report.rollback == "verified"
    assert "record 1 was seen on" in report.witness


def test_a_store_that_was_taken_back_is_refused_everywhere(
    setup: Setup, note: Path, tmp_path: Path, root: Path
) -> None:
    for _ in range(2):
        save(setup, note)
    shutil.copytree(root, tmp_path / "copy")
    for _ in range(2):
        save(setup, note)
    put_back(tmp_path / "copy", root)
    before = sorted(root.rglob("*"))
    for call in (
        lambda: plan(RUN, setup),
        lambda: plan(RUN, setup, at=1),
        lambda: plan(RUN, setup, at=2),
        lambda: plan(RUN, setup, at=4),
        lambda: plan(RUN, setup, previous=True),
        lambda: restore(RUN, setup, into=tmp_path / "out"),
        lambda: save(setup, note),
    ):
        with pytest.raises(RolledBackError, match="its newest record is 2, but record 4 was seen") as caught:
            call()
        assert caught.value.exit_code == 4
        assert str(file_of(setup)) in str(caught.value)
        assert "archiver witness forget r" in (caught.value.remedy or "")
    assert not (tmp_path / "out").exists()
    assert sorted(root.rglob("*")) == before
    assert newest_seen(setup) == 4


def test_a_run_that_was_saved_in_1970_is_missed_all_the_same(setup: Setup, note: Path, root: Path) -> None:
    """Records that a machine without a clock has made are not as old as they say."""
    save(setup, note)
    path = file_of(setup)
    document = json.loads(path.read_text())
    document["recorded_at"] = document["seen_at"] = "1970-01-01T00:00:09Z"
    path.write_text(json.dumps(document))
    record_at(root, 1).unlink()
    for call in (lambda: plan(RUN, setup), lambda: save(setup, note)):
        with pytest.raises(RolledBackError):
            call()
    assert newest_seen(setup) == 1


def test_a_person_may_restore_a_store_that_is_behind_and_nothing_is_believed_by_that(
    setup: Setup, note: Path, tmp_path: Path, root: Path
) -> None:
    for _ in range(3):
        save(setup, note)
    record_at(root, 3).unlink()
    record_at(root, 2).unlink()
    done = restore(RUN, setup, into=tmp_path / "out", accept=["rollback"])
    assert (done.report.seq, done.report.rollback, done.report.accepted) == (1, "unverified", ("rollback",))
    assert any("THE STORE IS BEHIND" in warning for warning in done.report.warnings)
    assert any(line.startswith("record 2 to 3, recorded up to") for line in done.report.lost)
    assert "ROLLED BACK (accepted)" in done.report.witness
    for again in (lambda: plan(RUN, setup), lambda: save(setup, note)):
        with pytest.raises(RolledBackError):
            again()
    with pytest.raises(NoSuchRunError) as caught:
        plan(RUN, setup, at=3, accept=["rollback"])
    assert not isinstance(caught.value, RolledBackError)
    assert setup.witness is not None
    assert setup.witness.forget(setup.require_store_id(), RUN)
    assert save(setup, note).seq == 2


def test_accepting_a_rollback_where_there_is_none_changes_nothing(setup: Setup, note: Path) -> None:
    save(setup, note)
    report = plan(RUN, setup, accept=["rollback"])
    assert (report.rollback, report.lost, report.accepted) == ("verified", (), ())


def test_a_run_that_is_gone_was_there(setup: Setup, note: Path, tmp_path: Path, root: Path) -> None:
    save(setup, note)
    shutil.rmtree(root / "records")
    for call in (
        lambda: plan(RUN, setup),
        lambda: plan(RUN, setup, accept=["rollback"]),
        lambda: plan(RUN, setup, at=1),
        lambda: save(setup, note),
    ):
        with pytest.raises(RolledBackError, match="no record of this run, but record 1 was seen"):
            call()
    with pytest.raises(NoSuchRunError):
        plan(RUN, elsewhere(setup, tmp_path))
    with pytest.raises(NoSuchRunError):
        plan("never", setup)


def test_a_run_whose_records_had_their_time_may_be_gone_and_begin_anew(
    setup: Setup, note: Path, root: Path, tmp_path: Path
) -> None:
    for _ in range(2):
        save(setup, note)
    age(setup, LATER)
    shutil.rmtree(root / "records")
    with pytest.raises(NoSuchRunError):
        plan(RUN, setup)
    other = elsewhere(setup, tmp_path)
    shutil.copytree(file_of(setup).parents[1], tmp_path / "other-witness")
    assert save(setup, note).seq == 1
    assert newest_seen(setup) == 1
    # Another machine that has seen the first life finds that the second one began after its end.
    report = plan(RUN, other)
    assert report.rollback == "unverified"
    assert "began anew" in report.witness
    assert newest_seen(other) == 1
    assert plan(RUN, other).rollback == "verified"


def test_what_had_its_time_does_not_excuse_a_step_back(setup: Setup, note: Path, root: Path) -> None:
    """The records that are still there are older than the one that is gone: this is no new life."""
    for _ in range(3):
        save(setup, note)
    record_at(root, 3).unlink()
    age(setup, timedelta(days=399))
    with pytest.raises(RolledBackError):
        plan(RUN, setup)
    head = rollback.look(RUN, setup)
    assert head.seen is not None
    future = head.seen.recorded_at + LATER + timedelta(days=399)
    age(setup, timedelta(days=-399))
    with pytest.raises(RolledBackError):
        plan(RUN, setup, now=future, accept=["age"])


def test_two_records_of_one_number_are_a_fork(setup: Setup, note: Path, tmp_path: Path, root: Path) -> None:
    """The store was taken back and written to again, by somebody who has not seen what came before."""
    save(setup, note)
    shutil.copytree(root, tmp_path / "copy")
    save(setup, note, "mine")
    put_back(tmp_path / "copy", root)
    other = elsewhere(setup, tmp_path)
    save(other, note, "theirs")
    for call in (
        lambda: plan(RUN, setup),
        lambda: plan(RUN, setup, accept=["rollback"]),
        lambda: restore(RUN, setup, into=tmp_path / "out"),
        lambda: save(setup, note),
    ):
        with pytest.raises(ForkError, match="record 2 is another than the one that was seen"):
            call()
    save(other, note, "theirs goes on")
    for call in (lambda: plan(RUN, setup), lambda: plan(RUN, setup, at=2), lambda: save(setup, note)):
        with pytest.raises(ForkError, match="record 2"):
            call()
    with pytest.raises(ForkError):  # the seen record lies beyond the checkpoint that is asked for
        plan(RUN, setup, at=1)
    assert plan(RUN, other).rollback == "verified"
    assert newest_seen(setup) == 2


def test_a_fork_behind_what_was_seen_breaks_the_chain_or_is_found_by_it(
    setup: Setup, note: Path, root: Path
) -> None:
    first = save(setup, note)
    for _ in range(3):
        save(setup, note)
    forge(setup, root, first.model_copy(update={"note": "never happened"}))
    with pytest.raises(ChainError):
        plan(RUN, setup)
    with pytest.raises(ForkError, match="record 1 is not the one that led to record 4"):
        plan(RUN, setup, at=1)


def test_a_fork_between_an_older_checkpoint_and_what_was_seen_proves_nothing(
    setup: Setup, note: Path, root: Path
) -> None:
    third = [save(setup, note) for _ in range(4)][2]
    forge(setup, root, third.model_copy(update={"note": "never happened"}))
    report = plan(RUN, setup, at=1)
    assert report.rollback == "unverified"
    assert "record 4 does not follow record 3" in report.witness


def test_an_older_checkpoint_is_verified_as_far_as_it_was_compared(
    setup: Setup, note: Path, root: Path
) -> None:
    for _ in range(4):
        save(setup, note)
    for at in (1, 2, 3, 4):
        report = plan(RUN, setup, at=at)
        assert (report.rollback, len(report.lost)) == ("verified", 4 - at)
    path = record_at(root, 3)
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    report = plan(RUN, setup, at=1)
    assert report.rollback == "unverified"
    assert "the way from this checkpoint to it is broken" in report.witness
    path.write_bytes(whole)
    record_at(root, 4).write_bytes(b"damaged")
    report = plan(RUN, setup, at=1)
    assert report.rollback == "unverified"
    assert "cannot be read" in report.witness
    assert newest_seen(setup) == 4


def test_too_many_records_in_between_are_not_looked_at(
    setup: Setup, note: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(4):
        save(setup, note)
    monkeypatch.setattr(rollback, "MAX_STEPS", 2)
    assert plan(RUN, setup, at=2).rollback == "verified"
    report = plan(RUN, setup, at=1)
    assert report.rollback == "unverified"
    assert "was not looked at" in report.witness


def test_only_what_was_verified_is_remembered(setup: Setup, note: Path, tmp_path: Path, root: Path) -> None:
    for _ in range(3):
        save(setup, note)
    other = elsewhere(setup, tmp_path)
    plan(RUN, other, at=2)
    assert newest_seen(other) == 2
    plan(RUN, other, at=1)
    assert newest_seen(other) == 2
    whole = record_at(root, 3).read_bytes()
    record_at(root, 3).write_bytes(whole[:-1])
    with pytest.raises(Exception, match="record 3"):
        plan(RUN, other)
    assert newest_seen(other) == 2
    assert plan(RUN, other, previous=True).seq == 2
    record_at(root, 3).write_bytes(whole)
    plan(RUN, other)
    assert newest_seen(other) == 3


def test_writers_on_two_machines_follow_each_other(
    setup: Setup, reopen: Callable[[], Setup], note: Path, tmp_path: Path
) -> None:
    other = elsewhere(reopen(), tmp_path)
    for turn in range(6):
        writer = setup if turn % 2 == 0 else other
        assert save(writer, note).seq == turn + 1
    assert (newest_seen(setup), newest_seen(other)) == (5, 6)
    assert plan(RUN, setup).rollback == "verified"
    assert newest_seen(setup) == 6


def test_a_writer_that_lost_a_race_is_told_of_the_race(setup: Setup, note: Path, tmp_path: Path) -> None:
    """What the other one committed is remembered already; the number is taken, not rolled back."""
    record = save(setup, note)
    with pytest.raises(StaleWriterError):
        commit(record, setup, age_of_bundle=0)


def test_rewritten_headers_are_no_other_records(setup: Setup, note: Path, root: Path) -> None:
    for _ in range(2):
        save(setup, note)
    before, remembered = record_at(root, 2).read_bytes(), file_of(setup).read_bytes()
    other = to(setup, generate())
    done(other)
    assert record_at(root, 2).read_bytes() != before
    assert [plan(RUN, other, at=at).rollback for at in (1, 2)] == ["verified", "verified"]
    assert file_of(setup).read_bytes() == remembered
    assert save(other, note).seq == 3


def test_no_record_is_created_under_a_number_that_was_seen(setup: Setup, note: Path, root: Path) -> None:
    """Whoever commits, also after a position that was found before the store was taken back."""
    save(setup, note)
    record = save(setup, note)
    record_at(root, 2).unlink()
    with pytest.raises(RolledBackError):
        commit(record, setup, age_of_bundle=0)
    assert not record_at(root, 2).exists()


@pytest.mark.parametrize("data", [b"", b'{"format":1', b"[]"])
def test_a_torn_memory_is_no_first_sight(setup: Setup, note: Path, tmp_path: Path, data: bytes) -> None:
    save(setup, note)
    file_of(setup).write_bytes(data)
    for call in (
        lambda: plan(RUN, setup),
        lambda: restore(RUN, setup, into=tmp_path / "out", accept=["rollback"]),
        lambda: save(setup, note),
    ):
        with pytest.raises(WitnessError) as caught:
            call()
        assert (caught.value.exit_code, str(file_of(setup)) in str(caught.value)) == (3, True)
    assert file_of(setup).read_bytes() == data


def test_a_memory_that_cannot_be_written_fails_neither_save_nor_restore(
    setup: Setup, note: Path, tmp_path: Path
) -> None:
    save(setup, note)
    lock = file_of(setup).with_name(".lock")
    lock.unlink()
    lock.mkdir()
    done = archive(Source(paths=(note,)), setup, options=Options(given=Given(run_id=RUN)))
    assert done.record.seq == 2
    assert any("record 2 of run r is not remembered as seen" in warning for warning in done.warnings)
    assert newest_seen(setup) == 1
    report = restore(RUN, setup, into=tmp_path / "out").report
    assert report.rollback == "verified"
    assert any("not remembered as seen" in warning for warning in report.warnings)
    lock.rmdir()
    plan(RUN, setup)
    assert newest_seen(setup) == 2


def test_without_a_witness_nothing_is_remembered(
    config: Path, note: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARCHIVER_TRUST__USE_WITNESS", "false")
    setup = open_setup(load(config), need="write")
    assert setup.witness is None
    save(setup, note)
    save(setup, note)
    record_at(root, 2).unlink()
    report = plan(RUN, setup)
    assert (report.seq, report.rollback, report.witness) == (1, "unverified", "")
    assert not (state_home() / "witness").exists()


def test_the_folder_of_the_settings_is_used(
    config: Path, note: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARCHIVER_TRUST__WITNESS", str(tmp_path / "shared"))
    setup = open_setup(load(config), need="write")
    save(setup, note)
    assert file_of(setup).is_relative_to(tmp_path / "shared")
    assert not (state_home() / "witness").exists()


def test_a_user_without_a_home_is_warned_and_served(
    config: Path, note: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from archiver.errors import ConfigError
    from archiver.setup import witnesses

    def homeless() -> Path:
        raise ConfigError("the home folder of this user is not known")

    monkeypatch.setattr(witnesses, "state_home", homeless)
    setup = open_setup(load(config), need="write")
    assert setup.witness is None
    assert any("trust.witness" in warning for warning in setup.warnings)
    assert save(setup, note).seq == 1
