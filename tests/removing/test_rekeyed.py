"""Notes on how long a run is kept are said again for new keys: who holds only these knows what stands."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from e2e.rekeying import at, backdate, done, only, overwrite, to

from archiver import age, expiring, holding, layout, noting
from archiver.errors import BundleMissingError, KeyUnavailableError, RunErasedError, RunHeldError
from archiver.gone import Gone
from archiver.notes import Notes
from archiver.rekey import noted_runs, plan, rekey
from archiver.removing import erase, remove
from archiver.setup import Setup
from archiver.tagging import settle
from removing.doing import RUN, save, tags, there

DAY = timedelta(days=1)


@pytest.fixture
def new() -> age.X25519Identity:
    return age.X25519Identity.generate()


def later(setup: Setup, run: str = RUN) -> None:
    """What is there lies there for a second already."""
    now = datetime.now(UTC)
    noting.put_note(setup, run, run, "merged", last=1, now=now)


def test_a_hold_is_seen_with_the_new_keys_alone(setup: Setup, note: Path, new: age.X25519Identity) -> None:
    save(setup, note)
    later(setup)
    holding.hold(RUN, setup, reason="a court")
    stood = Notes(setup).standing(RUN)
    both = to(setup, new)
    assert {one.note.kind for one in plan(RUN, both).repeats} == {"hold", "merged"}
    done(both)
    mine = only(both, new)
    known = Notes(mine)
    assert known.standing(RUN) == stood
    assert known.unread(RUN) is None
    held = known.newest(RUN, "hold")
    assert held is not None
    assert (held.note.reason, held.note.last) == ("a court", 1)
    for act in (remove, erase):
        with pytest.raises(RunHeldError, match="a court"):
            act(RUN, mine)
    before = there(setup)
    assert done(both).repeated == ()
    assert there(setup, RUN, "note") == [name for name in before if name.startswith("notes/")]
    holding.release(RUN, mine)
    assert "hold" not in tags(setup).values()


def test_what_was_released_stays_so_and_classes_are_settled(
    setup: Setup, note: Path, new: age.X25519Identity
) -> None:
    save(setup, note)
    holding.hold(RUN, setup, reason="a court")
    holding.release(RUN, setup)
    newer = age.X25519Identity.generate()
    done(to(setup, new))
    twice = to(replace(to(setup, new)), newer)
    assert [one.note.kind for one in done(twice).repeated] == ["release"]
    mine = only(twice, newer)
    assert Notes(mine).standing(RUN).released == Notes(setup).standing(RUN).released
    found = settle(mine, RUN, now=datetime.now(UTC))
    assert (found.warnings, found.open) == ((), False)


def test_a_tombstone_is_repeated_where_nothing_else_is_left(
    setup: Setup, note: Path, new: age.X25519Identity
) -> None:
    save(setup, note)
    erase(RUN, setup)
    both = to(setup, new)
    (found,) = rekey(noted_runs(both), both)
    assert (found.run, found.error, [one.note.kind for one in found.repeated]) == (RUN, None, ["erase"])
    assert {one.note.kind for one in Notes(setup).of(RUN)} <= {"erase"}
    assert all(name.startswith("notes/") for name in there(setup))
    with pytest.raises(RunErasedError):
        save(only(both, new), note)


def test_a_hold_for_the_old_keys_while_it_is_rekeyed_is_repeated_too(
    setup: Setup, note: Path, new: age.X25519Identity, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(setup, note)
    later(setup)
    both, inner = to(setup, new), type(setup.store).replace

    def overtaken(*given: object, **named: object) -> object:
        monkeypatch.undo()
        assert Notes(only(both, new)).standing(RUN).merged is not None, "said before a header is rewritten"
        noting.put_note(setup, RUN, RUN, "hold", reason="now", last=1)
        return inner(*given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(type(setup.store), "replace", overtaken)
    done(both)
    assert Notes(only(both, new)).standing(RUN).held is not None


def test_what_does_not_open_is_no_reason_to_forget_it(
    setup: Setup, note: Path, new: age.X25519Identity
) -> None:
    record = save(setup, note)
    theirs = age.X25519Identity.generate()
    others = to(setup, theirs)
    noting.put_note(others, RUN, RUN, "hold", last=1)
    both = to(setup, new)
    with pytest.raises(KeyUnavailableError):
        plan(RUN, both)
    later(setup)
    much = datetime.now(UTC) + 5000 * DAY
    assert record.bundle is not None
    setup.store.delete(record.bundle.name)
    assert isinstance(Gone.of_run(RUN, others).error(record), BundleMissingError)
    links = Gone.of_run(RUN, setup)._links
    assert isinstance(Gone(links, setup, now=much).error(record), BundleMissingError)
    assert expiring.plan(setup, now=much).expired == ()


def test_a_name_of_before_makes_no_note_one_of_before(
    setup: Setup, note: Path, new: age.X25519Identity
) -> None:
    save(setup, note)
    done(to(setup, new))
    backdate(setup, datetime.now(UTC) - timedelta(minutes=1), f"notes/{RUN}/")
    theirs = to(setup, age.X25519Identity.generate())
    noting.put_note(theirs, RUN, RUN, "hold", last=1, now=datetime.now(UTC) - DAY)
    (held,) = [one for one in Notes(theirs).of(RUN) if one.note.kind == "hold"]
    early = layout.note_name(datetime.now(UTC) - DAY, RUN, "ab" * 8)
    at(setup, held.name).rename(at(setup, early))
    unread = Notes(only(to(setup, new), new)).unread(RUN)
    assert unread is not None
    assert unread.name == early


def test_a_note_that_is_damaged_may_be_a_hold(setup: Setup, note: Path) -> None:
    save(setup, note, outcome="failed")
    holding.hold(RUN, setup, reason="a court")
    (name,) = there(setup, RUN, "note")
    overwrite(at(setup, name), b"garbage")
    for one in there(setup, RUN, "bundle", "record"):
        setup.store.retag(one, "intermediate")
    found = expiring.plan(setup, now=datetime.now(UTC) + 5000 * DAY)
    assert found.expired == ()


@pytest.mark.parametrize("ahead", [0, 27_000])
def test_a_hold_begins_when_it_is_stored_whatever_the_clock_says(
    setup: Setup, note: Path, ahead: int
) -> None:
    record = save(setup, note)
    now = datetime.now(UTC)
    noting.put_note(setup, RUN, RUN, "hold", last=1, now=now + ahead * DAY)
    noting.put_note(setup, RUN, RUN, "hold", last=1, now=now + (ahead + 300) * DAY)
    held = Notes(setup).standing(RUN).held
    assert held is not None
    assert held - now < DAY
    links = Gone.of_run(RUN, setup)._links
    error = Gone(links, setup, now=now + 300 * DAY).error(record)
    assert isinstance(error, BundleMissingError)
