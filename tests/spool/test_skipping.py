"""A spool that is full: the oldest plain checkpoints become signed records without a bundle."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cli.conftest import Command, Outcome, command

from archiver import choosing, records
from archiver.catalog import Catalog
from archiver.errors import KeyUnavailableError, NoSuchRunError, StoreFullError, StoreUnreachableError
from archiver.model.record import Sizes
from archiver.position import find
from archiver.restore import plan
from archiver.setup import Setup
from archiver.spool import open_spool
from archiver.verify import verify

from .making import Failing, Hand, names, restored, through

__all__ = ["command"]
Make = Callable[..., Hand]


def limited(setup: Setup, size: int) -> Setup:
    run = setup.settings.run.model_copy(update={"spool_limit": size})
    return replace(setup, settings=setup.settings.model_copy(update={"run": run}))


def room_for(setup: Setup, bundles: float) -> Setup:
    """A spool that holds about so many checkpoints."""
    probe = Hand.of(setup, "probe")
    size = probe.save("probe").size
    probe.spool.deliver()
    probe.spool.finish()
    return limited(setup, int(size * bundles))


def kinds(setup: Setup, run: str = "r") -> list[str]:
    return [link.record.kind for link in Catalog(setup).chain(run).links]


def whole(setup: Setup) -> bool:
    return all(found.ok for found in verify(setup, "r", deep=True))


def test_the_oldest_plain_ones_are_skipped(setup: Setup, hand: Make, tmp_path: Path) -> None:
    writer = hand(by=room_for(setup, 4.3))
    for number in range(1, 8):
        writer.save(f"save {number}", plain=number != 2)
    waiting = writer.spool.entries()
    found = [entry.kind for entry in waiting]
    assert found[1] == found[-1] == found[-2] == "checkpoint", "a milestone and the newest stay"
    assert found[0] == found[2] == "skipped"
    done = writer.spool.deliver()
    assert done.delivered == tuple(range(1, 8))
    assert kinds(setup) == found
    assert whole(setup)
    assert len(names(setup, "bundles/r/")) == found.count("checkpoint")
    assert restored(setup, tmp_path) == "save 7"
    assert restored(setup, tmp_path, at=2) == "save 2"
    writer.save("it goes on after records that were signed anew")
    assert writer.spool.deliver().delivered == (8,)
    assert whole(setup)
    assert find("r", setup).seq == 9


def test_a_skipped_record_says_so(setup: Setup, hand: Make) -> None:
    writer = hand(by=room_for(setup, 2.5))
    for number in range(3):
        writer.save(f"save {number}")
    writer.spool.deliver()
    record = Catalog(setup).read("r", 1).record
    assert (record.kind, record.bundle, record.sizes) == ("skipped", None, Sizes())
    assert (record.note, record.phase) == ("save 0", "a phase")
    with pytest.raises(NoSuchRunError, match="record 1 of run r is a skipped checkpoint: its bundle"):
        choosing.find("r", setup, at=1, now=datetime.now(UTC))
    assert plan("r", setup, at=2).record.note == "save 1"


def test_what_may_not_be_left_out_is_refused(setup: Setup, hand: Make) -> None:
    writer = hand(by=room_for(setup, 2.5))
    writer.save("a milestone", plain=False)
    writer.save("the newest")
    before = [(entry.sha256, entry.kind, entry.size) for entry in writer.spool.entries()]
    record, sealed, path = writer.sealed("no room")
    with pytest.raises(StoreFullError, match="no room"):
        writer.spool.add(record, sealed, path, plain=False)
    assert path.exists()
    assert [(entry.sha256, entry.kind, entry.size) for entry in writer.spool.entries()] == before
    writer.spool.deliver()
    assert writer.spool.add(record, sealed, path, plain=False).seq == 3, "what is delivered makes room"


def test_a_claim_is_never_left_out(setup: Setup, hand: Make) -> None:
    writer = hand(by=room_for(setup, 2.7))
    writer.save("a milestone", plain=False)
    record = writer.made[-1].model_copy(
        update={"kind": "claim", "bundle": None, "seq": 2, "previous": writer.place.previous}
    )
    reached = setup.seal_to("r", "r", "record")
    record, sealed = records.sealed(record, setup.require_signing_key(), reached)
    writer.spool.add(record, sealed, None, plain=True)
    writer.went_on(record)
    writer.save("the newest")
    with pytest.raises(StoreFullError):
        writer.save("no room")
    writer.spool.deliver()
    assert kinds(setup) == ["checkpoint", "claim", "checkpoint"]


def test_what_may_be_in_the_store_keeps_its_bytes(setup: Setup, hand: Make) -> None:
    """An answer was lost: whoever signed that record anew would take it for somebody else's."""

    def lose(name: str) -> None:
        if name.startswith("records/r/00000001"):
            raise StoreUnreachableError("away")

    small = room_for(setup, 3.3)
    failing = Hand.of(through(small, Failing(setup.store, after=lose)), "r")
    failing.save("sent")
    with pytest.raises(StoreUnreachableError):
        failing.spool.deliver()
    for number in range(2, 5):
        failing.save(f"save {number}")
    assert [entry.kind for entry in failing.spool.entries()][:2] == ["checkpoint", "skipped"]
    assert hand(by=small).spool.deliver().delivered == (1, 2, 3, 4)
    assert kinds(setup) == ["checkpoint", "skipped", "checkpoint", "checkpoint"]
    assert whole(setup)


def test_killed_after_a_new_signature_and_before_delivery(setup: Setup, hand: Make) -> None:
    """What was signed anew and sent is delivered with those bytes, and what follows still follows it."""
    away = [True]

    def fail(name: str) -> None:
        if name.startswith("records/r/") and away[0]:
            raise StoreUnreachableError("away")

    small = room_for(setup, 2.5)
    writer = hand(by=through(small, Failing(setup.store, before=fail)))
    for number in range(3):
        writer.save(f"save {number}")
    with pytest.raises(StoreUnreachableError):
        writer.spool.deliver()
    (first, *_) = writer.spool.entries()
    assert (first.kind, first.state) == ("skipped", "sent")
    sealed = first.read_record()
    writer.save("after it")
    away[0] = False
    assert hand(by=small).spool.deliver().delivered == (1, 2, 3, 4)
    assert setup.store.read("records/r/00000001.age", limit=1 << 20) == sealed
    assert whole(setup)


@pytest.fixture
def blind(setup: Setup) -> Setup:
    """A writer that can open nothing, as hooks and sweeps may be."""
    return replace(setup, identities=())


def test_a_writer_without_identity_signs_anew_what_it_wrote(setup: Setup, blind: Setup, hand: Make) -> None:
    writer = hand(by=replace(room_for(setup, 2.5), identities=()))
    for number in range(3):
        writer.save(f"save {number}")
    assert writer.spool.deliver().delivered == (1, 2, 3)
    assert kinds(setup) == ["skipped", "checkpoint", "checkpoint"]
    assert whole(setup)


def test_another_process_without_identity_says_what_is_missing(
    setup: Setup, blind: Setup, hand: Make
) -> None:
    writer = hand(by=replace(room_for(setup, 2.5), identities=()))
    for number in range(3):
        writer.save(f"save {number}")
    with pytest.raises(KeyUnavailableError, match="has to be signed anew") as caught:
        open_spool(blind).of("r").deliver()
    assert "archiver sync" in (caught.value.remedy or "")
    assert len(writer.spool.entries()) == 3
    assert open_spool(setup).of("r").deliver().delivered == (1, 2, 3)
    assert whole(setup)


def test_a_writer_with_identity_keeps_nothing_in_memory(setup: Setup, hand: Make) -> None:
    seeing, unseeing = hand("a"), hand("b", by=replace(setup, identities=()))
    for writer in (seeing, unseeing):
        writer.save("one")
    assert len(seeing.spool._known) == 0
    assert len(unseeing.spool._known) == 1
    unseeing.spool.deliver()
    assert len(unseeing.spool._known) == 0


def test_commands_take_skipped_records_for_what_they_are(
    setup: Setup, hand: Make, config: Path, command: Command, tmp_path: Path
) -> None:
    writer = hand(by=room_for(setup, 2.5))
    for number in range(4):
        writer.save(f"save {number}")
    writer.spool.deliver()
    assert kinds(setup)[:2] == ["skipped", "skipped"]

    def said(*words: object) -> Outcome:
        done = command(*words, "--config", config)
        assert done.code == 0, (words, done.err)
        return done

    assert [row[1] for row in said("show", "r").rows if row[0] in ("1", "4")] == ["skipped", "checkpoint"]
    assert len(said("list").rows) == 2
    said("verify", "--deep")
    said("restore", "r", "--plan")
    said("restore", "r", "--previous", "--into", tmp_path / "previous")
    said("restore", "r", "--claim", "--into", tmp_path / "claimed")
    said("drill", "--sample", "100%")
    said("export", "r", "--into", tmp_path / "exported")
    said("scan", "--stored")
    assert command("restore", "r", "--at", "2", "--into", tmp_path / "x", "--config", config).code == 9
    assert kinds(setup)[-1] == "claim"
