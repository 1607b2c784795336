"""The next number of a run that is long, and the key that keeps its placeholders the same."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from archiver import position
from archiver.archive import Given, Options, Source, archive
from archiver.model import Record
from archiver.restore import restore
from archiver.setup import Setup
from archiver.store.counted import Counted

RUN = "r"


def save(setup: Setup, path: Path) -> Record:
    return archive(Source(paths=(path,)), setup, options=Options(given=Given(run_id=RUN))).record


def remove(setup: Setup, record: Record) -> None:
    assert record.bundle is not None
    (Path(setup.store.url.removeprefix("file://")) / record.bundle.name).unlink()


def test_the_key_is_that_of_the_newest_bundle_that_is_there(setup: Setup, note: Path, tmp_path: Path) -> None:
    save(setup, note)
    key = position.find(RUN, setup).redaction_key
    assert key
    removed = [save(setup, note) for _ in range(2)]
    for number in range(2):
        restore(RUN, setup, into=tmp_path / f"out-{number}", claim=True)
        assert position.find(RUN, setup).redaction_key == key
    removed.append(save(setup, note))
    for record in removed:
        remove(setup, record)
    assert position.find(RUN, setup).redaction_key == key
    (tmp_path / "store" / "bundles" / RUN / "strange").write_bytes(b"x")
    assert position.find(RUN, setup).redaction_key == key


def test_a_long_run_without_bundles_is_not_read_for_it(setup: Setup, note: Path) -> None:
    for _ in range(12):
        remove(setup, save(setup, note))
    counted = Counted(setup.store)
    place = position.find(RUN, replace(setup, store=counted))
    assert (place.seq, place.redaction_key) == (13, b"")
    assert counted.counts["read"].calls <= 2
