"""What the witness has seen is part of every look at a store: of one run, of all of them, of a list."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from archiver import records
from archiver.archive import Given, Options, Source, archive
from archiver.catalog import Catalog, Head
from archiver.cli import program
from archiver.errors import (
    ArchiverError,
    ForkError,
    MissingRecordError,
    NoSuchRunError,
    RolledBackError,
    WitnessError,
)
from archiver.model import Record
from archiver.setup import Setup
from archiver.store.counted import Counted
from archiver.stored import look
from archiver.verify import Finding, verify
from archiver.witness import FolderWitness, Seen
from archiver.witnessed import Witnessed

LATER = timedelta(days=401)


@pytest.fixture
def root(setup: Setup) -> Path:
    return Path(setup.store.url.removeprefix("file://"))


@pytest.fixture
def copied(setup: Setup, note: Path, root: Path, tmp_path: Path) -> Path:
    """Three runs of two checkpoints; a copy from before the last save of each and the first of the last."""
    for run in ("a", "b"):
        save(setup, note, run)
    shutil.copytree(root, tmp_path / "copy")
    for run in ("a", "b", "c", "c"):
        save(setup, note, run)
    return tmp_path / "copy"


def save(setup: Setup, path: Path, run: str) -> Record:
    return archive(Source(paths=(path,)), setup, options=Options(given=Given(run_id=run))).record


def put_back(copy: Path, root: Path) -> None:
    shutil.rmtree(root)
    shutil.copytree(copy, root)


def remove(root: Path, run: str, *numbers: int) -> None:
    for seq in numbers:
        (root / f"records/{run}/{seq:08d}.age").unlink()


def errors(findings: list[Finding]) -> list[tuple[str | None, type[ArchiverError]]]:
    return [(one.run, type(one.error)) for one in findings if one.error is not None]


def looked(setup: Setup, run: str | None = None, now: datetime | None = None) -> list[Finding]:
    return list(verify(setup, run, now=now))


def headed(setup: Setup, now: datetime | None = None) -> dict[str, Head]:
    """What a list of all runs shows."""
    witnessed = Witnessed(setup, now or datetime.now(UTC))
    heads = {head.run: head for head in witnessed.heads(Catalog(setup).heads())}
    return heads | {head.run: head for head in witnessed.vanished(heads.keys())}


def test_a_store_as_it_was_seen_has_nothing_to_be_said(setup: Setup, copied: Path) -> None:
    assert errors(looked(setup)) == []
    assert {run: head.error for run, head in headed(setup).items()} == {"a": None, "b": None, "c": None}


def test_a_store_that_was_taken_back_is_found_by_verify(setup: Setup, copied: Path, root: Path) -> None:
    put_back(copied, root)
    assert errors(looked(setup)) == [("a", RolledBackError), ("b", RolledBackError), ("c", RolledBackError)]
    for run in ("a", "c"):
        (finding,) = [one for one in looked(setup, run) if one.error is not None]
        assert isinstance(finding.error, RolledBackError)
        assert (finding.run, finding.error.exit_code) == (run, 4)
    with pytest.raises(NoSuchRunError):
        looked(setup, "d")
    # Nothing was learnt from what is there: it is as wrong the next time.
    assert len(errors(looked(setup))) == 3


def test_a_list_says_it_too(setup: Setup, copied: Path, root: Path) -> None:
    put_back(copied, root)
    heads = headed(setup)
    assert {run: type(head.error) for run, head in heads.items()} == dict.fromkeys("abc", RolledBackError)
    assert (heads["a"].seq, heads["a"].record is not None) == (1, True)
    assert (heads["c"].seq, heads["c"].record) == (2, None)


def test_another_record_of_the_same_number_is_a_fork(setup: Setup, note: Path, root: Path) -> None:
    record = save(setup, note, "a")
    other = record.model_copy(update={"note": "another"})
    (root / "records/a/00000001.age").write_bytes(
        records.encode(other, setup.require_signing_key(), setup.recipients)
    )
    assert errors(looked(setup)) == [("a", ForkError)]
    assert isinstance(headed(setup)["a"].error, ForkError)
    for _ in range(2):  # and one that lies before the newest
        assert errors(looked(setup, "a")) == [("a", ForkError)]


def test_a_shorter_chain_that_is_broken_besides_is_both(setup: Setup, note: Path, root: Path) -> None:
    for _ in range(4):
        save(setup, note, "a")
    remove(root, "a", 2, 4)
    assert errors(looked(setup)) == [("a", MissingRecordError), ("a", RolledBackError)]
    remove(root, "a", 1)
    assert errors(looked(setup)) == [("a", MissingRecordError), ("a", RolledBackError)]


def test_whoever_verifies_has_seen_the_run(setup: Setup, copied: Path, root: Path, tmp_path: Path) -> None:
    other = replace(setup, witness=FolderWitness(tmp_path / "others"))
    assert errors(looked(other)) == []
    assert other.witness is not None
    assert {one.run: one.seen.seq for one in other.witness if one.seen} == {"a": 2, "b": 2, "c": 2}
    put_back(copied, root)
    assert len(errors(looked(other))) == 3


def test_of_a_broken_chain_nothing_is_remembered(
    setup: Setup, note: Path, root: Path, tmp_path: Path
) -> None:
    for _ in range(3):
        save(setup, note, "a")
    remove(root, "a", 2)
    other = replace(setup, witness=FolderWitness(tmp_path / "others"))
    assert errors(looked(other)) == [("a", MissingRecordError)]
    assert other.witness is not None
    assert list(other.witness) == []


def test_runs_that_had_their_time_are_not_missed(setup: Setup, copied: Path, root: Path, note: Path) -> None:
    shutil.rmtree(root / "records/c")
    later = datetime.now(UTC) + LATER
    assert errors(looked(setup, now=later)) == []
    assert "c" not in headed(setup, now=later)
    with pytest.raises(NoSuchRunError):
        looked(setup, "c", now=later)


def test_a_run_that_began_anew_is_not_behind(setup: Setup, copied: Path, root: Path, note: Path) -> None:
    shutil.rmtree(root / "records/a")
    later = datetime.now(UTC) + LATER
    aside = replace(setup, witness=None)
    options = Options(given=Given(run_id="a"))
    archive(Source(paths=(note,)), aside, options=options, now=lambda: later)
    assert isinstance(headed(setup)["a"].error, RolledBackError)
    assert headed(setup, now=later)["a"].error is None
    assert errors(looked(setup, "a", now=later)) == []


def test_a_memory_that_cannot_be_read_is_said_and_hides_nothing(
    setup: Setup, copied: Path, root: Path
) -> None:
    assert setup.witness is not None
    for run in ("a", "c"):
        Path(setup.witness.where(setup.require_store_id(), run)).write_text("{")
    shutil.rmtree(root / "records/c")
    witnessed = Witnessed(setup, datetime.now(UTC))
    heads = list(witnessed.heads(Catalog(setup).heads()))
    assert [(head.run, head.error) for head in heads] == [("a", None), ("b", None)]
    assert list(witnessed.vanished({"a", "b"})) == []
    (warning,) = witnessed.warnings
    assert "run a and 1 more" in warning
    found = looked(setup)
    assert [(one.run, type(one.error).__name__) for one in found if one.error] == [("a", "WitnessError")]
    assert any("of run c" in one.note for one in found if one.state == "warning")


class Full(FolderWitness):
    """On a disk without room."""

    def remember(self, store: str, run: str, seen: Seen) -> None:
        raise WitnessError(f"no room for {run} of {store}, {seen.seq}")


def test_a_memory_that_cannot_be_written_is_one_warning(setup: Setup, copied: Path, tmp_path: Path) -> None:
    other = replace(setup, witness=Full(tmp_path / "others"))
    found = looked(other)
    assert errors(found) == []
    (warning,) = [one for one in found if one.state == "warning"]
    assert "is not remembered as seen" in warning.note
    assert warning.note.endswith("and 2 more")
    (warning,) = [one for one in looked(other, "a") if one.state == "warning"]
    assert "record 2 of run a is not remembered" in warning.note


def test_what_is_committed_meanwhile_is_not_missing(setup: Setup, copied: Path, note: Path) -> None:
    """Between the list and the look at what was seen another process saves."""
    before = list(Catalog(setup).heads())
    save(setup, note, "a")
    save(setup, note, "d")
    witnessed = Witnessed(setup, datetime.now(UTC))
    heads = list(witnessed.heads(before))
    assert next((head.run, head.seq, head.error) for head in heads) == ("a", 3, None)
    assert [(head.run, head.error) for head in witnessed.vanished({"a", "b", "c"})] == [("d", None)]


def test_the_commands(
    setup: Setup, copied: Path, root: Path, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put_back(copied, root)
    flag = ["--config", str(config)]
    assert program.run("archiver", ["verify", *flag, "--json"]) == 4
    document = json.loads(capsys.readouterr().out)
    wrong = [one["run"] for one in document["findings"] if one["state"] == "error"]
    assert wrong == ["a", "b", "c"]
    assert program.run("archiver", ["show", "a", *flag]) == 4
    told = capsys.readouterr()
    assert "1\tcheckpoint" in told.out
    assert "record 2 was seen" in told.err
    assert program.run("archiver", ["show", "c", *flag]) == 4
    assert "it has no record of this run, but record 2 was seen" in capsys.readouterr().err
    assert program.run("archiver", ["verify", "c", *flag]) == 4
    assert "RolledBackError" in capsys.readouterr().out
    for more in ([], ["--newest", "5"], ["--schema", "<2"]):
        assert program.run("archiver", ["list", *flag, "--json", *more]) == 4
        document = json.loads(capsys.readouterr().out)
        expected = ["a", "b"] if more[:1] == ["--newest"] else ["a", "b", "c"]
        assert sorted(one["run"] for one in document["errors"]) == expected, more
    assert program.run("archiver", ["list", *flag, "--task", "none"]) == 4
    told = capsys.readouterr()
    rows = [line.split("\t") for line in told.out.splitlines()]
    assert sorted((row[0], row[3], row[4]) for row in rows) == [
        ("a", "error: RolledBackError", "a"),
        ("b", "error: RolledBackError", "b"),
        ("c", "error: RolledBackError", "-"),
    ]
    assert "record 2 was seen" in told.err


def test_what_looks_into_all_bundles_says_what_it_cannot_look_into(
    setup: Setup, copied: Path, root: Path
) -> None:
    """A credential may have stood in what is missing; what is there is looked into all the same."""
    put_back(copied, root)
    found = [(one.run, one.seq, type(one.error)) for one in look(setup, (), lambda _: None, newest=False)]
    assert found == [
        ("a", None, RolledBackError),
        ("a", 1, type(None)),
        ("b", None, RolledBackError),
        ("b", 1, type(None)),
        ("c", None, RolledBackError),
    ]
    (first, _) = look(setup, ("a",), lambda _: None, newest=True)
    assert isinstance(first.error, RolledBackError)


def test_a_list_asks_the_store_no_more_than_before(setup: Setup, copied: Path) -> None:
    counted = Counted(setup.store)
    headed(replace(setup, store=counted))
    assert {verb: count.calls for verb, count in counted.counts.items()} == {"read": 3, "list": 1}
