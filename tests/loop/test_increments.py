"""Bundles of a run that grows: small, each based on what the store has, and whole whatever went wrong."""

from __future__ import annotations

import itertools
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from spool.making import Failing

from archiver.errors import StoreFullError, StoreUnreachableError
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
    probe = Growing(setup, first=2000)
    probe.save(deliver=False)
    size = probe.spool.entries()[0].size
    assert probe.deliver()
    one = Growing(with_run(setup, spool_limit=3 * size), resumed=probe, each=200)
    one.save()
    for _ in range(9):
        one.save(deliver=False)
    assert one.deliver()
    one.save()
    kinds = [record.kind for record in records(setup)]
    assert "skipped" in kinds, "the spool was full"
    skipped = {number for number, kind in enumerate(kinds, start=1) if kind == "skipped"}
    assert all(not skipped.intersection(found or ()) for found in bases(setup))
    whole(setup)
    newest = max(set(range(1, len(kinds) + 1)) - skipped)
    demand_whole(one, tmp_path, only={1, 2, newest})


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
    assert [entry.seq for entry in one.spool._folder.bases()] == [3]
    assert [record.kind for record in records(setup)] == ["checkpoint"] * 4
    assert one.spool.proven() is None, "not all that is needed is here"


STEPS = st.lists(
    st.one_of(
        *(st.just(("save", 0)) for _ in range(4)),
        *(st.just(("wait", 0)) for _ in range(3)),
        st.tuples(st.just("rewrite"), st.integers(0, 20)),
        st.just(("rewind", 0)),
        st.just(("resume", 0)),
        st.just(("deliver", 0)),
        st.just(("away", 0)),
    ),
    min_size=3,
    max_size=12,
)
_RUNS = itertools.count(1)


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS, every=st.sampled_from([3, 200]), small=st.booleans())
def test_whatever_goes_wrong_each_checkpoint_is_whole(
    setup: Setup, tmp_path: Path, steps: list[tuple[str, int]], every: int, small: bool
) -> None:
    """Failures of the store, checkpoints that wait or give up their bundles, and resumes."""
    _play(setup, tmp_path, steps, every, small)


@pytest.mark.soak
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS, every=st.sampled_from([3, 200]), small=st.booleans())
def test_whatever_goes_wrong_for_long(
    setup: Setup, tmp_path: Path, steps: list[tuple[str, int]], every: int, small: bool
) -> None:
    _play(setup, tmp_path, steps, every, small)


def _play(setup: Setup, folder: Path, steps: list[tuple[str, int]], every: int, small: bool) -> None:
    run = f"played-{next(_RUNS)}"
    limits = {"spool_limit": 20_000} if small else {}
    one = Growing(with_run(setup, full_every=every, **limits), run=run)
    for what, where in steps:
        if what == "rewrite":
            one.messages[where % len(one.messages)]["content"] = "another text"
        elif what == "rewind":
            del one.messages[2:]
        elif what == "resume" and one.made:
            assert one.deliver()
            one = Growing(one.setup, run=run, resumed=one)
        elif what == "deliver":
            assert one.deliver()
        elif what == "away":
            _delivered_half(one)
        elif what in ("save", "wait"):
            with suppress(StoreFullError):
                one.save(deliver=what == "save")
    assert one.deliver()
    one.save("succeeded")
    assert not [found for found in verify(setup, run, deep=True) if not found.ok]
    demand_whole(one, folder)


def _delivered_half(one: Growing) -> None:
    """The store takes one bundle, and its record only after it was away."""
    lost: list[str] = []

    def fail(name: str) -> None:
        if name.startswith("records/") and not lost:
            lost.append(name)
            raise StoreUnreachableError("away")

    away = replace(one.setup, store=Failing(one.setup.store, before=fail))
    spool = open_spool(away).of(one.run, one.run)
    with suppress(StoreUnreachableError):
        spool.deliver(told=one._told)


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
