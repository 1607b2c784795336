"""One run in a folder: its classes are settled, held, given back, and never shortened on doubtful grounds."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from archiver import holding, layout, noting
from archiver.catalog import Catalog
from archiver.errors import StoreDeniedError, StoreUnreachableError
from archiver.model.record import RetentionClass
from archiver.rollback import look
from archiver.setup import Setup
from archiver.sign import SigningKey
from archiver.store.decorated import Decorated
from archiver.tagging import Settled, after_save, is_sweeper, settle
from tagging.conftest import bundle_tags, older, tags

RING = 5


def now() -> datetime:
    return datetime.now(UTC)


def settled(setup: Setup, run: str, **options: bool) -> Settled:
    return settle(setup, run, now=now(), **options)


def test_what_is_superseded_goes_first_and_the_rest_gets_the_class_of_the_outcome(
    setup: Setup, run: str
) -> None:
    assert bundle_tags(setup, run) == ["live"] * 7 + ["success"]
    planned = settled(setup, run, dry_run=True)
    assert bundle_tags(setup, run) == ["live"] * 7 + ["success"]
    done = settled(setup, run)
    assert done == planned
    assert bundle_tags(setup, run) == ["intermediate"] * 3 + ["success"] * 5
    assert [one.to for one in done.changes] == ["success"] * 4 + ["intermediate"] * 3
    assert [one.name for one in done.changes] == sorted((one.name for one in done.changes), reverse=True)
    assert {one.why for one in done.changes} == {"superseded by later checkpoints", "the run has succeeded"}
    assert settled(setup, run) == Settled(run)
    assert set(tags(setup, layout.records_prefix(run))) == {"record"}


def test_a_hold_covers_everything_and_a_release_gives_it_back(setup: Setup, run: str) -> None:
    settled(setup, run)
    effect = layout.effect_name(run, secrets.token_hex(16))
    setup.store.create(effect, [b"x"], retention="record")
    task = Catalog(setup).chain(run).head.record.task
    noting.put_note(setup, run, task, "hold", reason="look into it", last=8)
    held = settled(setup, run)
    assert held.held
    assert len(held.changes) == 17
    for prefix in (layout.records_prefix, layout.bundles_prefix, layout.effects_prefix):
        assert set(tags(setup, prefix(run))) == {"hold"}
    assert settled(setup, run).changes == ()
    noting.put_note(setup, run, task, "release", last=8)
    released = settled(setup, run)
    assert not released.held
    assert bundle_tags(setup, run) == ["intermediate"] * 3 + ["success"] * 5
    assert set(tags(setup, layout.records_prefix(run))) == {"record"}
    assert setup.store.class_of(effect) == "record"
    assert set(tags(setup, layout.notes_prefix(run))) == {"hold"}
    assert settled(setup, run).changes == ()


def test_a_hold_that_no_note_explains_is_left_alone(setup: Setup, run: str) -> None:
    first = next(setup.store.list(layout.bundles_prefix(run))).name
    setup.store.retag(first, "hold")
    settled(setup, run)
    assert bundle_tags(setup, run) == ["hold"] + ["intermediate"] * 2 + ["success"] * 5


def test_a_note_of_no_administrator_changes_nothing(setup: Setup, run: str) -> None:
    stranger = replace(setup, signing_key=SigningKey.generate())
    own = replace(stranger, writers=stranger.writers.load(None, own=stranger.require_signing_key().public))
    noting.put_note(own, run, "t", "hold")
    assert settled(setup, run).held is False
    assert bundle_tags(setup, run)[:3] == ["intermediate"] * 3


def test_a_note_that_cannot_be_read_may_be_a_hold(setup: Setup, run: str) -> None:
    name = layout.note_name(now(), run, secrets.token_hex(8))
    setup.store.create(name, [b"not a note"], retention="hold")
    done = settled(setup, run)
    assert done.changes == ()
    assert done.open
    assert f"no class of run {run} was shortened: a note cannot be believed" in done.warnings[0]


def test_a_damaged_chain_shortens_nothing(setup: Setup, run: str, tmp_path: Path) -> None:
    (tmp_path / "store" / layout.record_name(run, 4)).write_bytes(b"damaged")
    done = settled(setup, run)
    assert (done.changes, done.open) == ((), True)
    assert "was shortened" in done.warnings[0]
    assert bundle_tags(setup, run) == ["live"] * 7 + ["success"]


def test_a_chain_of_which_more_was_seen_shortens_nothing(setup: Setup, run: str) -> None:
    look(run, setup).judge(Catalog(setup).chain(run), now=now())
    for seq in (7, 8):
        setup.store.delete(layout.record_name(run, seq))
    done = settled(setup, run)
    assert done.changes == ()
    assert "rolled back" in done.warnings[0]
    for seq in range(1, 7):
        setup.store.delete(layout.record_name(run, seq))
    assert "rolled back" in settled(setup, run).warnings[0]


def test_an_orphan_is_given_up_when_nothing_can_name_it_any_more(
    setup: Setup, run: str, tmp_path: Path
) -> None:
    settled(setup, run)
    name = layout.bundle_name(run, 9, secrets.token_hex(8))
    setup.store.create(name, [b"x"], retention="live")
    young = settled(setup, run)
    assert young.changes == ()
    assert young.due is not None
    assert abs(young.due - now() - timedelta(days=2)) < timedelta(minutes=1)
    older(tmp_path / "store", name, 2 * 86400 + 5)
    (change,) = settled(setup, run).changes
    assert (change.name, change.was, change.to) == (name, "live", "intermediate")
    alone = layout.bundle_name("nobody", 1, secrets.token_hex(8))
    setup.store.create(alone, [b"x"], retention="live")
    older(tmp_path / "store", alone, 2 * 86400 + 5)
    assert [one.name for one in settled(setup, "nobody").changes] == [alone]


class Refusing(Decorated):
    """A store that refuses to change tags, or does something right before it tells one."""

    def __init__(self, inner: object, *, after: int = 0, error: type[Exception] = StoreDeniedError) -> None:
        super().__init__(inner)  # type: ignore[arg-type]
        self.left, self.error = after, error
        self.before: Callable[[str], None] = lambda _: None

    def retag(self, name: str, retention: RetentionClass) -> None:
        if not self.left:
            raise self.error("no")
        self.left -= 1
        super().retag(name, retention)

    def class_of(self, name: str) -> RetentionClass | None:
        self.before(name)
        return super().class_of(name)


def test_a_right_that_is_lacking_is_a_warning_and_the_order_holds(setup: Setup, run: str) -> None:
    denied = replace(setup, store=Refusing(setup.store, after=2))
    done = settled(denied, run)
    assert len(done.changes) == 2
    assert done.open
    assert "the class of 5 objects" in done.warnings[0]
    assert bundle_tags(setup, run) == ["live"] * 5 + ["success"] * 3
    with pytest.raises(StoreUnreachableError):
        settled(replace(setup, store=Refusing(setup.store, error=StoreUnreachableError)), run)
    assert len(settled(setup, run).changes) == 5


def test_a_hold_that_comes_in_between_is_seen(setup: Setup, run: str) -> None:
    store = Refusing(setup.store, after=99)
    asked: list[str] = []

    def before(name: str) -> None:
        if name in asked and setup.store.class_of(name) == "live":
            setup.store.retag(name, "hold")
        asked.append(name)

    store.before = before
    assert settled(replace(setup, store=store), run).changes == ()
    assert bundle_tags(setup, run) == ["hold"] * 7 + ["success"]


def test_who_sweeps(setup: Setup, run: str) -> None:
    assert is_sweeper(setup)
    changed = setup.settings.retention.model_copy(update={"sweeper": False})
    nobody = replace(setup, settings=setup.settings.model_copy(update={"retention": changed}))
    assert not is_sweeper(nobody)
    assert after_save(nobody, run, 8) == after_save(setup, run, 1) == ()
    assert bundle_tags(setup, run)[0] == "live"
    for seq in (3, 6, 7, 9):  # each reads all records of the run: a save in between would cost ever more
        assert after_save(setup, run, seq, ended=False) == ()
    assert bundle_tags(setup, run)[0] == "live"
    assert after_save(setup, run, 8, ended=False) == ()
    assert bundle_tags(setup, run)[0] == "intermediate"


def test_after_a_save_only_what_it_changes_is_asked_for_in_a_bucket(setup: Setup, run: str) -> None:
    done = settle(setup, run, now=now(), lately=True)
    assert [one.to for one in done.changes] == ["success"] * 4 + ["intermediate"]
    assert bundle_tags(setup, run) == ["live"] * 2 + ["intermediate"] + ["success"] * 5


def test_trouble_after_a_save_is_a_warning(setup: Setup, run: str) -> None:
    away = replace(setup, store=Refusing(setup.store, error=StoreUnreachableError))
    assert after_save(away, run, 8) == (f"the classes of run {run} were not looked at: no",)


def test_a_hold_between_the_look_and_the_change_is_seen_afterwards(
    setup: Setup, run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = type(setup.store).retag

    def overtaken(store: Any, name: str, retention: RetentionClass) -> None:
        monkeypatch.undo()
        holding.hold(run, setup, reason="a court")
        inner(store, name, retention)  # the tag was read before the hold

    monkeypatch.setattr(type(setup.store), "retag", overtaken)
    done = settled(setup, run)
    assert done.held
    assert set(bundle_tags(setup, run)) == {"hold"}
