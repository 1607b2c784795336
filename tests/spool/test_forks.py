"""Somebody else has the number: what was saved here is kept and listed, and never delivered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from io import BytesIO

import pytest

from archiver import records
from archiver.age import generate, rewrap
from archiver.catalog import Catalog
from archiver.claiming import claim, end_of
from archiver.errors import StaleWriterError, StoreUnreachableError
from archiver.model.record import EffectCounts
from archiver.setup import Setup
from archiver.spool import open_spool
from archiver.spool.listing import drop_fork, listed
from archiver.spool.spool import place
from archiver.store.local import LocalStore
from archiver.verify import verify

from .making import Failing, Hand, names, through

Make = Callable[..., Hand]


def take_over(setup: Setup) -> None:
    """Another machine claims the run, from what is in the store."""
    catalog = Catalog(setup)
    chain = catalog.chain("r")
    record = chain.head.record
    claim(record, end_of(chain, record, catalog), replace(setup, witness=None), effects=EffectCounts())


@pytest.fixture
def forked(setup: Setup, hand: Make) -> Hand:
    """A writer whose second and third checkpoints wait, and whose run was claimed meanwhile."""
    writer = hand()
    writer.save("one")
    writer.spool.deliver()
    writer.save("two")
    writer.save("three")
    take_over(setup)
    return writer


def test_a_claim_stops_what_waits(setup: Setup, forked: Hand) -> None:
    before = names(setup, "records/")
    with pytest.raises(StaleWriterError, match="record 2 of run r") as caught:
        forked.spool.deliver()
    assert len(caught.value.details["forks"]) == 2  # type: ignore[arg-type]
    assert names(setup, "records/") == before
    assert not [name for name in names(setup, "bundles/") if "/00000003-" in name], "the later are not put"
    assert forked.spool.entries() == ()
    found = forked.spool.forks()
    assert [(fork.seq, fork.phase) for fork in found] == [(2, "a phase"), (3, "a phase")]
    assert all(fork.size > 1000 and fork.path.is_dir() for fork in found)
    assert open_spool(setup).depth().forks == 2
    assert [fork.seq for fork in open_spool(setup).forks()] == [2, 3]
    assert forked.spool.deliver().delivered == ()
    assert all(one.ok for one in verify(setup, "r", deep=True) if one.object.startswith("records/"))


@pytest.mark.parametrize("dropped", [False, True], ids=["kept", "dropped"])
def test_the_stale_writer_adds_nothing_more(setup: Setup, forked: Hand, dropped: bool) -> None:
    """Also where another process has found the fork: what it adds would follow a record that nobody has."""
    with pytest.raises(StaleWriterError):
        open_spool(setup).of("r").deliver()
    if dropped:
        for one in list(listed(place(setup.settings))):
            if one.state == "fork":
                drop_fork(one)
        assert open_spool(setup).forks() == ()
    with pytest.raises(StaleWriterError):
        forked.save("four")
    if not dropped:
        again = Hand(setup, open_spool(setup).of("r"), forked.place)
        with pytest.raises(StaleWriterError, match="lost its number"):
            again.save("four, from another process")


def test_a_resumed_run_goes_on_beside_its_forks(setup: Setup, forked: Hand, hand: Make) -> None:
    with pytest.raises(StaleWriterError):
        forked.spool.deliver()
    again = hand()
    head = Catalog(setup).head("r")
    assert head is not None
    again.place = replace(forked.place, seq=3, previous=head.sha256, head=head.record)
    again.save("after the claim")
    assert again.spool.deliver().delivered == (3,)
    assert len(again.spool.forks()) == 2
    assert [link.record.kind for link in Catalog(setup).chain("r").links] == [
        "checkpoint",
        "claim",
        "checkpoint",
    ]


def test_the_same_record_under_another_header_is_the_own(setup: Setup, hand: Make) -> None:
    """The answer was lost, and somebody rekeyed the store before the next try."""

    def lose(name: str) -> None:
        if name.startswith("records/"):
            raise StoreUnreachableError("away")

    writer = hand(by=through(setup, Failing(setup.store, after=lose)))
    sealed = writer.save("one").read_record()
    with pytest.raises(StoreUnreachableError):
        writer.spool.deliver()
    name = "records/r/00000001.age"
    ways_in = (*setup.recipients_for("r", "r", "record"), generate().recipient)
    made = rewrap(setup.identities_for("r", "record"), ways_in, BytesIO(sealed))
    setup.store.replace(name, list(made.blocks()), was=setup.store.head(name))
    assert setup.store.read(name, limit=1 << 20) != sealed
    assert hand().spool.deliver().delivered == (1,)


def test_another_record_with_the_same_text_is_none_of_ours(setup: Setup, hand: Make) -> None:
    """Signed by the same key for the same state, but sealed by another process: two writers, one number."""
    writer = hand()
    entry = writer.save("one")
    again = records.encode(
        writer.made[0], setup.require_signing_key(), setup.recipients_for("r", "r", "record")
    )
    assert again != entry.read_record()
    assert isinstance(setup.store, LocalStore)
    setup.store.create("records/r/00000001.age", [again], retention="record")
    with pytest.raises(StaleWriterError):
        writer.spool.deliver()
    (fork,) = writer.spool.forks()
    assert fork.seq == 1
