"""What is put into the spool is durable, sealed, private, and delivered in order, once."""

from __future__ import annotations

import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from archiver import layout
from archiver.errors import (
    AlreadyExistsError,
    ArchiverError,
    ContextMismatchError,
    InvalidNameError,
    StaleWriterError,
    StoreUnreachableError,
    UsageError,
)
from archiver.setup import Setup
from archiver.spool import open_spool
from archiver.verify import verify

from .making import Failing, Hand, names, restored, through

Make = Callable[..., Hand]


def whole(setup: Setup, run: str = "r") -> bool:
    return all(found.ok for found in verify(setup, run, deep=True))


def test_what_was_saved_arrives_in_order(setup: Setup, hand: Make, tmp_path: Path) -> None:
    store = Failing(setup.store)
    writer = hand(by=through(setup, store))
    for number in range(3):
        writer.save(f"save {number}")
    assert names(setup) == ["store.json"]
    assert [entry.seq for entry in writer.spool.entries()] == [1, 2, 3]
    done = writer.spool.deliver()
    assert (done.delivered, done.pending, done.warnings) == ((1, 2, 3), 0, ())
    kinds = [layout.parse(name).kind for name in store.created]
    assert kinds == ["bundle", "record", "index"] * 3, "the record is the commit point, and comes after"
    assert whole(setup)
    assert restored(setup, tmp_path) == "save 2"
    assert writer.spool.deliver().delivered == ()
    assert setup.witness is not None
    seen = setup.witness.seen(setup.require_store_id(), "r")
    assert seen is not None
    assert seen.seq == 3


def test_only_as_far_as_asked(setup: Setup, hand: Make) -> None:
    writer = hand()
    for number in range(3):
        writer.save(f"save {number}")
    done = writer.spool.deliver(upto=2)
    assert (done.delivered, done.pending) == ((1, 2), 1)


def test_it_is_private_and_sealed(setup: Setup, hand: Make) -> None:
    writer = hand()
    writer.save("a note that nobody reads")
    writer.spool.add_effect(layout.effect_name("r", "a" * 32), b"sealed")
    spool = open_spool(setup)
    files = [path for path in spool.folder.rglob("*") if path.is_file()]
    assert len(files) > 3
    for path in (spool.folder, *spool.folder.rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path
    for path in files:
        for text in (b"a note", b"a phase", b"test", b"go on", b"user"):
            assert text not in path.read_bytes(), (path, text)


def test_another_process_finds_and_delivers_it(hand: Make, reopen: Callable[[], Setup]) -> None:
    writer = hand()
    writer.save("one")
    again = open_spool(reopen())
    assert again.runs() == ("r",)
    depth = again.depth()
    assert (depth.entries, depth.forks) == (1, 0)
    assert depth.bytes > 1000
    assert depth.oldest is not None
    (entry,) = again.of("r").entries()
    assert (entry.sha256, entry.kind, entry.plain) == (writer.place.previous, "checkpoint", True)
    assert again.of("r").deliver().delivered == (1,)
    assert again.depth().entries == 0


def test_the_newest_stays_until_the_run_is_finished(setup: Setup, hand: Make) -> None:
    writer = hand()
    for number in range(3):
        writer.save(f"save {number}")
    writer.spool.deliver()
    head = writer.spool.head()
    assert head is not None
    assert (head.seq, head.delivered) == (3, True)
    run = open_spool(setup).folder / "r"
    assert [path.name for path in (run / "entries").iterdir()] == ["00000003"]
    writer.spool.finish()
    assert not run.exists()
    assert writer.spool.head() is None
    writer.save("it goes on after all")
    writer.spool.finish()
    assert run.exists(), "what is not delivered stays"
    assert writer.spool.deliver().delivered == (4,)
    assert not run.exists()


def test_nothing_is_made_by_looking(setup: Setup) -> None:
    spool = open_spool(setup)
    one = spool.of("r")
    assert (one.entries(), one.head(), one.forks(), one.effects()) == ((), None, (), ())
    assert one.deliver().pending == 0
    one.finish()
    assert spool.runs() == ()
    assert spool.depth().bytes == 0
    assert not spool.folder.exists()


def test_a_record_must_come_next(hand: Make, tmp_path: Path) -> None:
    writer, other = hand(), hand()
    writer.save("one")
    record, sealed, path = other.sealed("another one", keep=tmp_path)
    with pytest.raises(StaleWriterError, match="has record 1 of the run already"):
        other.spool.add(record, sealed, path, plain=True)
    assert path.exists(), "what is refused is left to its owner"
    for wrong in ({"seq": 3}, {"seq": 2, "previous": "f" * 64}):
        moved = record.model_copy(update={**wrong, "bundle": None, "kind": "claim"})
        with pytest.raises(StaleWriterError, match="does not follow record 1"):
            other.spool.add(moved, sealed, None, plain=False)
    with pytest.raises(ContextMismatchError):
        other.spool.add(record.model_copy(update={"run": "s"}), sealed, path, plain=True)
    with pytest.raises(ContextMismatchError):
        other.spool.add(record.model_copy(update={"store": "f" * 32}), sealed, path, plain=True)
    with pytest.raises(UsageError):
        other.spool.add(record, sealed, None, plain=True)
    assert [entry.seq for entry in writer.spool.entries()] == [1]


def test_numbers_that_others_have_used_may_lie_between(setup: Setup, hand: Make) -> None:
    """Records that came into the store from elsewhere do not pass through this spool."""
    writer = hand()
    writer.save("one")
    writer.spool.deliver()
    writer.place = replace(writer.place, seq=4, previous="f" * 64)
    assert writer.save("after a claim and a checkpoint of others").seq == 4
    with pytest.raises(StaleWriterError):
        writer.place = replace(writer.place, seq=6)
        writer.save("a gap in what waits")


def test_effects_go_before_entries(setup: Setup, hand: Make) -> None:
    store = Failing(setup.store)
    writer = hand(by=through(setup, store))
    first, second = (layout.effect_name("r", character * 32) for character in "ab")
    writer.spool.add_effect(second, b"two")
    writer.spool.add_effect(first, b"one")
    writer.spool.add_effect(first, b"one")
    with pytest.raises(AlreadyExistsError):
        writer.spool.add_effect(first, b"another")
    with pytest.raises(InvalidNameError):
        writer.spool.add_effect(layout.effect_name("s", "a" * 32), b"of another run")
    assert writer.spool.effects() == ((first, b"one"), (second, b"two"))
    writer.save("one")
    setup.store.create(first, [b"one"], retention="record")  # an answer was lost
    assert writer.spool.deliver().pending == 0
    assert store.created[:2] == [second, names(setup, "bundles/")[0]]
    assert setup.store.read(second, limit=9) == b"two"


def test_an_effect_of_somebody_else_stays_theirs(setup: Setup, hand: Make) -> None:
    writer = hand()
    name = layout.effect_name("r", "a" * 32)
    setup.store.create(name, [b"theirs"], retention="record")
    writer.spool.add_effect(name, b"ours")
    done = writer.spool.deliver()
    (warning,) = done.warnings
    assert "recorded by somebody else" in warning
    assert setup.store.read(name, limit=9) == b"theirs"
    assert Path(warning.rpartition(" ")[2]).read_bytes() == b"ours"


@pytest.mark.parametrize("kind", ["bundle", "record", "index"])
@pytest.mark.parametrize("lost", [False, True], ids=["refused", "answer lost"])
def test_a_store_that_fails_in_the_middle(
    kind: str, lost: bool, setup: Setup, hand: Make, tmp_path: Path
) -> None:
    """Wherever it fails, with or without having done it: each arrives once, and the order is kept."""
    failures = [2]

    def fail(name: str) -> None:
        parsed = layout.parse(name)
        if parsed.kind == kind and (kind == "index" or parsed.seq == 2) and failures:
            failures.pop()
            raise StoreUnreachableError("away")

    failing = Failing(setup.store, **{"after" if lost else "before": fail})
    writer = hand(by=through(setup, failing))
    for number in range(3):
        writer.save(f"save {number}")
    if kind == "index":
        assert "its hint was not written" in writer.spool.deliver().warnings[0]
    else:
        with pytest.raises(StoreUnreachableError):
            writer.spool.deliver()
        assert [entry.seq for entry in writer.spool.entries()] == [2, 3]
        assert Hand.of(setup, "r").spool.deliver().delivered == (2, 3)
    assert whole(setup)
    assert len(names(setup, "bundles/")) == len(names(setup, "records/")) == 3
    assert restored(setup, tmp_path) == "save 2"


def test_hostile_run_ids_stay_in_the_folder(setup: Setup, hand: Make) -> None:
    spool = open_spool(setup)
    for run in ("../../etc", ".", "a/b", "-rf", "x" * 190, "ä", "entries", "a~2Fb"):
        hand(run).save("one")
        assert spool.of(run).deliver().delivered == (1,)
    assert set(spool.runs()) == {"../../etc", ".", "a/b", "-rf", "x" * 190, "ä", "entries", "a~2Fb"}
    assert {path.parent for path in spool.folder.iterdir()} == {spool.folder}
    for run in ("", "a\nb", "x" * 201):
        with pytest.raises(ArchiverError):
            spool.of(run)


def test_foreign_files_are_passed_over(setup: Setup, hand: Make, tmp_path: Path) -> None:
    writer = hand()
    writer.save("one")
    spool = open_spool(setup)
    (spool.folder / "a file").write_text("x")
    (spool.folder / "no%run").mkdir()
    for name in ("notes.txt", "1", "00000000", "000000022"):
        (spool.folder / "r" / "entries" / name).mkdir()
    (spool.folder / "r" / ".tmp" / "left").mkdir()
    (spool.folder / "r" / ".tmp" / "left" / "half").write_text("x")
    assert spool.runs() == ("r",)
    assert spool.depth().entries == 1
    assert writer.spool.deliver().delivered == (1,)
    assert not list((spool.folder / "r" / ".tmp").iterdir()), "what a killed process left goes"
