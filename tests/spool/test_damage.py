"""Torn files, strange entries and clocks that lie: each has its answer, and none a half one."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from archiver.catalog import Catalog
from archiver.errors import (
    ContextMismatchError,
    DamagedError,
    DigestMismatchError,
    StaleWriterError,
    StoreDeniedError,
    StoreUnreachableError,
    UnconfirmedError,
    UnsupportedSchemaError,
)
from archiver.setup import Setup
from archiver.spool import open_spool
from archiver.spool.entry import BUNDLE
from archiver.verify import verify

from .making import Failing, Hand, names, through

Make = Callable[..., Hand]
DAY = 24 * 3600


@pytest.fixture
def waiting(hand: Make) -> Hand:
    writer = hand()
    for number in range(1, 4):
        writer.save(f"save {number}")
    return writer


def folder(setup: Setup, seq: int) -> Path:
    return open_spool(setup).folder / "r" / "entries" / f"{seq:08d}"


def whole(setup: Setup) -> bool:
    return all(found.ok for found in verify(setup, "r", deep=True))


def torn(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def missing(path: Path) -> None:
    path.unlink()


def other(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(bytes(data))


@pytest.mark.parametrize("harm", [torn, missing, other])
def test_a_damaged_bundle_is_not_committed(harm: Callable[[Path], None], setup: Setup, waiting: Hand) -> None:
    harm(folder(setup, 2) / BUNDLE)
    done = waiting.spool.deliver()
    assert done.delivered == (1, 2, 3)
    assert "the bundle of checkpoint 2" in done.warnings[0]
    kinds = [link.record.kind for link in Catalog(setup).chain("r").links]
    assert kinds == ["checkpoint", "skipped", "checkpoint"]
    assert whole(setup)


def test_a_bundle_that_is_damaged_between_two_tries(setup: Setup, hand: Make) -> None:
    def refuse(name: str) -> None:
        raise StoreUnreachableError("away")

    writer = hand(by=through(setup, Failing(setup.store, before=refuse)))
    writer.save("one")
    with pytest.raises(StoreUnreachableError):
        writer.spool.deliver()
    torn(folder(setup, 1) / BUNDLE)
    hand().spool.deliver()
    assert Catalog(setup).read("r", 1).record.kind == "skipped"


@pytest.mark.parametrize("harm", [torn, missing])
@pytest.mark.parametrize("which", ["waiting.json", "????????????????.age"])
def test_what_follows_a_torn_entry_is_kept_beside(
    which: str, harm: Callable[[Path], None], setup: Setup, waiting: Hand
) -> None:
    (path,) = folder(setup, 2).glob(which)
    harm(path)
    if which.endswith(".json"):
        with pytest.raises(DamagedError):
            waiting.spool.entries()
        with pytest.raises(StaleWriterError, match="kept as 2 forks"):
            waiting.spool.deliver()
        assert [fork.seq for fork in waiting.spool.forks()] == [2, 3]
    else:
        with pytest.raises(DamagedError):
            waiting.spool.deliver()
        assert [entry.seq for entry in waiting.spool.entries()] == [2, 3]
    assert names(setup, "records/") == ["records/r/00000001.age"]
    assert whole(setup)


def test_an_entry_that_somebody_removed_leaves_no_gap(setup: Setup, waiting: Hand) -> None:
    shutil.rmtree(folder(setup, 2))
    with pytest.raises(StaleWriterError, match="before record 3 is not in the spool"):
        waiting.spool.deliver()
    assert [fork.seq for fork in waiting.spool.forks()] == [3]
    assert names(setup, "records/") == ["records/r/00000001.age"]


def test_an_entry_of_another_place_is_refused(setup: Setup, waiting: Hand, hand: Make) -> None:
    hand("s").save("one")
    shutil.rmtree(folder(setup, 2))
    shutil.copytree(open_spool(setup).folder / "s/entries/00000001", folder(setup, 2))
    with pytest.raises(ContextMismatchError, match="moved or copied"):
        waiting.spool.entries()
    with pytest.raises(StaleWriterError):
        waiting.spool.deliver()
    assert open_spool(setup).of("s").deliver().delivered == (1,)
    there = open_spool(setup).folder
    shutil.copytree(there, there.parent / ("f" * 32))
    assert open_spool(setup).depth().entries == 0, "the spool of another store is not this one's"


def test_a_link_in_the_place_of_an_entry_is_not_followed(setup: Setup, waiting: Hand, tmp_path: Path) -> None:
    folder(setup, 3).rename(tmp_path / "elsewhere")
    folder(setup, 3).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(DamagedError, match="not the folder of an entry"):
        waiting.spool.entries()
    shutil.rmtree(tmp_path / "elsewhere")


def test_an_entry_of_a_later_release_is_left_alone(setup: Setup, waiting: Hand) -> None:
    path = folder(setup, 1) / "waiting.json"
    path.write_bytes(path.read_bytes().replace(b'"format":1', b'"format":2'))
    with pytest.raises(UnsupportedSchemaError, match="spool format 2"):
        waiting.spool.deliver()
    assert open_spool(setup).depth().entries == 3


def test_a_damaged_record_is_never_sent(setup: Setup, waiting: Hand) -> None:
    (path,) = folder(setup, 1).glob("????????????????.age")
    other(path)
    with pytest.raises(DigestMismatchError):
        waiting.spool.deliver()
    assert names(setup, "records/") == []


def interrupted(setup: Setup, hand: Make) -> Hand:
    """A bundle that is in the store, and whose record is not."""

    def refuse(name: str) -> None:
        if name.startswith("records/"):
            raise StoreUnreachableError("away")

    writer = hand(by=through(setup, Failing(setup.store, before=refuse)))
    writer.save("one")
    writer.save("two")
    with pytest.raises(StoreUnreachableError):
        writer.spool.deliver()
    return writer


@pytest.mark.parametrize("seconds", [DAY + 60, -3600], ids=["a day ago", "in the future"])
def test_a_bundle_that_a_sweeper_may_take_is_put_again(seconds: int, setup: Setup, hand: Make) -> None:
    """By the clock of the store; one that was put in the future proves nothing."""
    interrupted(setup, hand)
    (old,) = names(setup, "bundles/")
    path = Path(setup.store.url.removeprefix("file://")) / old
    os.utime(path, (time.time() - seconds,) * 2)
    assert hand().spool.deliver().delivered == (1, 2)
    first = Catalog(setup).read("r", 1).record
    assert first.bundle is not None
    assert first.bundle.name != old
    setup.store.delete(old)
    assert whole(setup)


def test_a_bundle_of_an_hour_ago_is_committed_as_it_is(setup: Setup, hand: Make) -> None:
    interrupted(setup, hand)
    (old,) = names(setup, "bundles/")
    os.utime(Path(setup.store.url.removeprefix("file://")) / old, (time.time() - 3600,) * 2)
    assert hand().spool.deliver().delivered == (1, 2)
    first = Catalog(setup).read("r", 1).record
    assert first.bundle is not None
    assert first.bundle.name == old
    assert len(names(setup, "bundles/")) == 2


def test_other_bytes_under_the_name_of_the_bundle(setup: Setup, hand: Make) -> None:
    interrupted(setup, hand)
    (old,) = names(setup, "bundles/")
    setup.store.replace(old, [b"not a bundle"], was=setup.store.head(old))
    assert hand().spool.deliver().delivered == (1, 2)
    setup.store.delete(old)
    assert whole(setup)


class OnlyCreates(Failing):
    """A role that may look at nothing."""

    def _call(self, verb: str, work: Callable[[], object]) -> object:  # type: ignore[override]
        if verb in ("open", "read", "head", "list"):
            raise StoreDeniedError(f"{verb} is not allowed")
        return work()


@pytest.mark.parametrize(("seconds", "again"), [(60, False), (DAY + 60, True)])
def test_a_role_that_may_not_look_goes_by_when_it_sent(
    seconds: int, again: bool, setup: Setup, hand: Make
) -> None:
    interrupted(setup, hand)
    path = folder(setup, 1) / "sent.json"
    os.utime(path, (time.time() - seconds,) * 2)
    assert hand(by=through(setup, OnlyCreates(setup.store))).spool.deliver().delivered == (1, 2)
    assert len(names(setup, "bundles/")) == 2 + again


def test_a_role_that_may_not_look_knows_what_it_has_seen(setup: Setup, hand: Make) -> None:
    """It died after the record was created and remembered, and before that was noted in the spool."""
    writer = hand()
    writer.save("one")
    writer.spool.deliver()
    (folder(setup, 1) / "delivered.json").rename(folder(setup, 1) / "sent.json")
    assert hand(by=through(setup, OnlyCreates(setup.store))).spool.deliver().delivered == (1,)


def test_a_role_that_may_not_look_takes_nobody_for_another(setup: Setup, hand: Make) -> None:
    """It died after the record was created; what it may not look at stays, and is no fork."""
    writer = hand()
    writer.save("one")
    writer.spool.deliver()
    (folder(setup, 1) / "delivered.json").rename(folder(setup, 1) / "sent.json")
    blind = replace(through(setup, OnlyCreates(setup.store)), witness=None)
    with pytest.raises(UnconfirmedError):
        hand(by=blind).spool.deliver()
    assert writer.spool.forks() == ()
    assert hand().spool.deliver().delivered == (1,)
