"""What is newest as far as this machine can tell, and a bundle that is opened without the store."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from archiver import records, saved
from archiver.errors import NoSuchRunError, ObjectNotFoundError, StoreDeniedError
from archiver.progress import Silent
from archiver.restore import restore
from archiver.setup import Setup
from archiver.spool.entry import BUNDLE
from archiver.witness import Seen

from .making import Failing, Hand, through
from .test_forks import take_over

Make = Callable[..., Hand]


def see(setup: Setup, seq: int, sha256: str) -> None:
    assert setup.witness is not None
    now = datetime.now(UTC)
    seen = Seen(seq=seq, sha256=sha256, recorded_at=now, seen_at=now)
    setup.witness.remember(setup.require_store_id(), "r", seen)


@pytest.mark.parametrize("delivered", [0, 1, 2, 3])
def test_the_newest_is_proven_wherever_delivery_stands(delivered: int, setup: Setup, hand: Make) -> None:
    writer = hand()
    for number in range(3):
        writer.save(f"save {number}")
    writer.spool.deliver(upto=delivered)
    proven = hand().spool.proven()
    assert proven is not None
    assert proven.head == proven.checkpoint
    assert (proven.head.seq, proven.sha256) == (3, writer.place.previous)
    assert hand().spool.proven_head() == proven.head


def test_its_bundle_opens_without_the_store(setup: Setup, hand: Make, tmp_path: Path) -> None:
    writer = hand()
    writer.save("the note")
    head = writer.spool.proven_head()
    assert head is not None
    local = replace(setup, store=writer.spool.reader())
    found = saved.fetch(head, local, tmp_path / "unpacked", Silent(), ()).checkpoint
    assert found.note == "the note"
    assert restore("r", local, into=tmp_path / "restored").checkpoint.note == "the note"


def test_the_reader_only_reads(setup: Setup, hand: Make) -> None:
    writer = hand()
    entry = writer.save("one")
    store = writer.spool.reader()
    listed = [info.name for info in store.list()]
    assert listed == [writer.made[0].bundle.name, "records/r/00000001.age"]  # type: ignore[union-attr]
    assert store.read(listed[1], limit=1 << 20) == entry.read_record()
    assert store.head(listed[1]).size == len(entry.read_record())
    with pytest.raises(ObjectNotFoundError):
        store.open("records/r/00000002.age")
    for change in (
        lambda: store.create("records/r/00000002.age", [b""], retention="record"),
        lambda: store.delete(listed[0]),
        lambda: store.retag(listed[0], "live"),
        lambda: store.replace(listed[0], [b""], was=store.head(listed[0])),
    ):
        with pytest.raises(StoreDeniedError):
            change()
    with pytest.raises(NoSuchRunError):
        restore("s", replace(setup, store=store), into=Path("nowhere"))


def test_what_was_seen_later_is_no_proof(setup: Setup, hand: Make) -> None:
    writer = hand()
    writer.save("one")
    writer.spool.deliver()
    take_over(setup)
    assert writer.spool.proven_head() is not None, "the claim was seen by nobody on this machine"
    see(setup, 2, "f" * 64)
    assert writer.spool.proven_head() is None


def test_what_was_seen_instead_is_no_proof(setup: Setup, hand: Make) -> None:
    writer = hand()
    for number in range(2):
        writer.save(f"save {number}")
    see(setup, 1, "f" * 64)
    assert writer.spool.proven_head() is None


def test_nothing_seen_of_a_run_that_did_not_begin_here(setup: Setup, hand: Make) -> None:
    writer = hand()
    writer.place = replace(writer.place, seq=2, previous="f" * 64)
    writer.save("after records of others")
    assert writer.spool.proven_head() is None
    see(setup, 1, "f" * 64)
    assert writer.spool.proven_head() is not None, "it follows exactly what was seen"


def test_without_a_memory_nothing_is_proven(setup: Setup, hand: Make) -> None:
    writer = hand(by=replace(setup, witness=None))
    writer.save("one")
    assert writer.spool.proven_head() is None


def test_a_damaged_bundle_is_no_proof(setup: Setup, hand: Make) -> None:
    writer = hand()
    entry = writer.save("one")
    path = entry.folder / BUNDLE
    path.write_bytes(path.read_bytes()[:-1])
    assert writer.spool.proven_head() is None


def test_what_came_after_the_newest_bundle_stays_with_it(setup: Setup, hand: Make) -> None:
    """A claim made while the store was away: the checkpoint that it goes on from stays here."""
    writer = hand()
    writer.save("one", plain=False)
    record = writer.made[0].model_copy(
        update={"kind": "claim", "bundle": None, "seq": 2, "previous": writer.place.previous}
    )
    sealed = records.encode(record, setup.require_signing_key(), setup.recipients_for("r", "r", "record"))
    writer.spool.add(record, sealed, None, plain=False)
    for upto in (1, 2):
        writer.spool.deliver(upto=upto)
        proven = hand().spool.proven()
        assert proven is not None
        assert (proven.head.kind, proven.checkpoint and proven.checkpoint.seq) == ("claim", 1)


def test_the_own_claim_is_kept_where_it_follows_what_was_delivered(setup: Setup, hand: Make) -> None:
    writer = hand()
    first = writer.save("one").sha256
    claim = writer.made[0].model_copy(update={"kind": "claim", "bundle": None, "seq": 2, "previous": first})
    recipients = setup.recipients_for("r", "r", "record")
    sealed = records.encode(claim, setup.require_signing_key(), recipients)
    other = claim.model_copy(update={"previous": "f" * 64})
    assert not writer.spool.keep(claim, sealed), "the one before it waits"
    writer.spool.deliver()
    assert not writer.spool.keep(other, sealed)
    assert not hand("s").spool.keep(claim.model_copy(update={"run": "s", "task": "s"}), sealed)
    assert writer.spool.keep(claim, sealed)
    see(setup, 2, records.body_sha256(claim))
    proven = hand().spool.proven()
    assert proven is not None
    assert (proven.head.kind, proven.sha256) == ("claim", records.body_sha256(claim))
    assert proven.checkpoint is not None
    assert proven.checkpoint.seq == 1
    assert writer.spool.entries() == ()


def test_a_lost_answer_does_not_spoil_the_proof(setup: Setup, hand: Make) -> None:
    def lose(name: str) -> None:
        if name.startswith("index/"):
            raise KeyboardInterrupt

    writer = hand(by=through(setup, Failing(setup.store, after=lose)))
    writer.save("one")
    with pytest.raises(KeyboardInterrupt):
        writer.spool.deliver()
    assert hand().spool.proven_head() is not None
