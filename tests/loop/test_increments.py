"""Bundles of a run that grows: small, each based on what the store has, and whole whatever went wrong."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest
from spool.making import Failing

from archiver.errors import StoreUnreachableError
from archiver.loop.writer import Writer
from archiver.setup import Setup
from archiver.spool import open_spool
from archiver.verify import verify
from loop.growing import RUN, Growing, bases, demand_whole, records, with_run
from loop.writing import notes, snapshot, writer


def whole(setup: Setup) -> None:
    assert not [found for found in verify(setup, RUN, deep=True) if not found.ok]


def test_each_is_based_on_the_one_before(setup: Setup, tmp_path: Path) -> None:
    one = Growing(setup)
    for _ in range(4):
        one.save()
    one.save("succeeded")
    assert bases(setup) == [(), (1,), (1, 2), (1, 2, 3), ()], "the last one of a run is full"
    stored = [record.sizes.stored for record in records(setup)]
    assert max(stored[1:4]) < stored[0] / 1.5
    whole(setup)
    demand_whole(one, tmp_path)


def test_every_bundle_is_full_if_that_is_wanted(setup: Setup) -> None:
    one = Growing(with_run(setup, full_every=1))
    one.save()
    one.save()
    assert bases(setup) == [(), ()]


def test_an_epoch_has_so_many_bundles(setup: Setup, tmp_path: Path) -> None:
    one = Growing(with_run(setup, full_every=3))
    for _ in range(5):
        one.save()
    assert bases(setup) == [(), (1,), (1, 2), (), (4,)]
    demand_whole(one, tmp_path)


def test_what_waits_is_no_base(setup: Setup, tmp_path: Path) -> None:
    one = Growing(setup)
    one.save()
    for _ in range(3):
        one.save(deliver=False)
    assert one.deliver()
    one.save()
    assert bases(setup) == [(), (1,), (1,), (1,), (1, 4)]
    whole(setup)
    demand_whole(one, tmp_path)


def test_without_the_store_from_the_beginning_each_is_full(setup: Setup) -> None:
    one = Growing(setup)
    one.save(deliver=False)
    one.save(deliver=False)
    assert one.deliver()
    assert bases(setup) == [(), ()]


def test_what_gave_up_its_bundle_is_no_base(setup: Setup, tmp_path: Path) -> None:
    probe = Growing(setup)
    probe.save(deliver=False)
    size = probe.spool.entries()[0].size
    assert probe.deliver()
    one = Growing(with_run(setup, spool_limit=int(2.5 * size)), resumed=probe)
    one.save()
    for _ in range(12):
        one.save(deliver=False)
    assert one.deliver()
    one.save()
    one.save("succeeded")
    kinds = [record.kind for record in records(setup)]
    assert "skipped" in kinds, "the spool was full"
    skipped = {number for number, kind in enumerate(kinds, start=1) if kind == "skipped"}
    assert all(not skipped.intersection(found or ()) for found in bases(setup))
    whole(setup)
    demand_whole(one, tmp_path)


def test_after_a_resume_the_first_is_full(setup: Setup, tmp_path: Path) -> None:
    one = Growing(setup)
    one.save()
    one.save()
    two = Growing(setup, resumed=one)
    two.save()
    two.save()
    assert bases(setup) == [(), (1,), (), (3,)]
    demand_whole(two, tmp_path)


def test_what_another_process_delivered_is_no_base(setup: Setup) -> None:
    """It was not acknowledged to this one."""
    one = Growing(setup)
    one.save(deliver=False)
    open_spool(setup).of(RUN, RUN).deliver()
    one.save()
    assert bases(setup) == [(), ()]


def test_a_bundle_that_was_put_under_another_name_is_the_base_of_that_name(
    setup: Setup, tmp_path: Path
) -> None:
    one = Growing(setup)
    taken: list[str] = []

    def lost(name: str) -> None:
        if name.startswith("bundles/") and not taken:
            taken.append(name)
            raise StoreUnreachableError("the answer was lost")

    store = Failing(setup.store, after=lost)
    away = Growing.__new__(Growing)
    away.__dict__.update(one.__dict__)
    away.spool = open_spool(replace(setup, store=store)).of(RUN, RUN)
    away.sealer._spool = away.spool
    with pytest.raises(StoreUnreachableError):
        away.save()
    bundle = Path(setup.store.url.removeprefix("file://")) / taken[0]
    bundle.write_bytes(b"something else")
    assert away.deliver()
    away.save()
    first = records(setup)[0].bundle
    assert first is not None
    assert first.name != taken[0]
    assert bases(setup) == [(), (1,)]
    whole(setup)
    demand_whole(away, tmp_path)


def test_another_recipient_begins_an_epoch(setup: Setup, tmp_path: Path) -> None:
    from archiver import age

    other = age.generate()
    one = Growing(setup)
    one.save()
    one.sealer._setup = replace(setup, recipients=(*setup.recipients, other.recipient))
    one.save()
    one.save()
    assert bases(setup) == [(), (), (2,)]
    demand_whole(one, tmp_path)


def test_other_rules_begin_an_epoch(setup: Setup) -> None:
    one = Growing(setup)
    one.save()
    redaction = setup.settings.redaction.model_copy(update={"disabled_rules": ("npm-access-token",)})
    one.sealer._setup = replace(setup, settings=setup.settings.model_copy(update={"redaction": redaction}))
    one.save()
    assert bases(setup) == [(), ()]


def test_a_state_that_became_another_one_is_saved_whole(setup: Setup, tmp_path: Path) -> None:
    one = Growing(setup)
    one.save()
    one.messages.clear()
    one.grow(900)
    one.save()
    one.save()
    assert bases(setup) == [(), (), (2,)]
    demand_whole(one, tmp_path)


def test_a_spool_that_cannot_be_used_keeps_nobody_from_increments(
    setup: Setup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = Growing(setup)
    monkeypatch.setattr(one.spool, "add", _full)
    for _ in range(3):
        assert one.save().stored
    assert bases(setup) == [(), (1,), (1, 2)]
    demand_whole(one, tmp_path)


def _full(*_: object, **__: object) -> None:
    from archiver.errors import StoreFullError

    raise StoreFullError("no room")


def test_the_spool_keeps_what_a_resume_without_the_store_needs(setup: Setup, tmp_path: Path) -> None:
    one = Growing(setup)
    for _ in range(4):
        one.save()
    one.save(deliver=False)
    proven = open_spool(setup).of(RUN, RUN).proven()
    assert proven is not None
    assert proven.checkpoint is not None
    assert [base.seq for base in proven.bases] == [1, 2, 3, 4]
    from archiver import saved
    from archiver.progress import Silent

    local = replace(setup, store=one.spool.reader())
    found = saved.fetch(proven.checkpoint, local, tmp_path / "bundle", Silent(), proven.bases).checkpoint
    assert list(found.transcript.parts[0].items) == one.messages
    one.save("succeeded")
    one.spool.finish()
    assert not list(one.spool._folder.path.glob("*")) if one.spool._folder.exists else True


def test_what_is_kept_for_a_resume_goes_before_a_checkpoint_does(setup: Setup) -> None:
    one = Growing(setup)
    for _ in range(3):
        one.save()
    kept = one.spool._folder.bases()
    assert [entry.seq for entry in kept] == [1, 2]
    size = sum(entry.size for entry in kept)
    small = with_run(setup, spool_limit=size)
    one.spool = open_spool(small).of(RUN, RUN)
    one.sealer._spool = one.spool
    one.save()
    assert one.spool._folder.bases() == []
    assert [record.kind for record in records(setup)] == ["checkpoint"] * 4
    assert one.spool.proven() is None, "not all that is needed is here"


@pytest.mark.parametrize("seed", range(4))
def test_whatever_goes_wrong_each_checkpoint_is_whole(setup: Setup, seed: int, tmp_path: Path) -> None:
    """Failures of the store, checkpoints that wait or give up their bundles, and resumes."""
    _played(setup, random.Random(seed), 14, tmp_path)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100, 130))
def test_whatever_goes_wrong_for_long(setup: Setup, seed: int, tmp_path: Path) -> None:
    _played(setup, random.Random(seed), 60, tmp_path)


def _played(setup: Setup, chance: random.Random, steps: int, tmp_path: Path) -> None:
    one = Growing(
        with_run(setup, full_every=chance.choice((3, 5, 200)), spool_limit=chance.choice((30_000, 1 << 30)))
    )
    for _ in range(steps):
        what = chance.choices(("save", "wait", "rewrite", "rewind", "resume", "deliver"), (8, 4, 1, 1, 1, 2))[
            0
        ]
        if what == "rewrite":
            one.messages[chance.randrange(len(one.messages))]["content"] = "another text"
        elif what == "rewind":
            del one.messages[2:]
        elif what == "resume":
            assert one.deliver()
            one = Growing(one.setup, resumed=one) if one.made else one
        elif what == "deliver":
            assert one.deliver()
        else:
            _saved(one, deliver=what == "save")
    assert one.deliver()
    one.save("succeeded")
    whole(setup)
    demand_whole(one, tmp_path)


def _saved(one: Growing, *, deliver: bool) -> None:
    from archiver.errors import StoreFullError

    try:
        one.save(deliver=deliver)
    except StoreFullError:
        assert one.deliver()


def test_the_background_writer_makes_increments(setup: Setup) -> None:
    """Through both threads: what the delivering one is told of becomes a base."""
    growing = Growing(setup)
    one: Writer = writer(setup, spool=growing.spool)
    try:
        for _ in range(3):
            growing.grow()
            state = growing.state()
            one.submit(snapshot("x", plain=False, make=lambda state=state: state))
            assert one.flush()
        assert bases(setup) == [(), (1,), (1, 2)]
        assert len(notes(setup)) == 3
    finally:
        one.end(5)
