"""Properties of classes, endings and promises over any chain, and of the order in which classes change."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_retention import DAY, START, committed

from archiver import layout
from archiver.model.record import RetentionClass
from archiver.retention import (
    DAYS,
    NOTHING,
    Committed,
    Standing,
    class_of,
    classes,
    endings,
    epochs,
    is_shorter,
    promised,
)
from archiver.tagging.planning import Known, There, next_time, ordered, wanted

UNTIMED: Any = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
FEW = settings(max_examples=50, **UNTIMED)
OUTCOMES = st.sampled_from(["running"] * 5 + ["succeeded", "failed", "cancelled", "crashed"])


@st.composite
def chains(draw: Any, least: int = 1) -> list[Committed]:
    """Records in order: checkpoints with any bases, claims and numbers that were lost."""
    found: list[Committed] = []
    at = START
    for seq in range(1, draw(st.integers(least, 9)) + 1):
        at += timedelta(hours=draw(st.integers(0, 300)))
        kind = draw(st.sampled_from(["checkpoint"] * 4 + ["claim", "skipped"]))
        outcome = draw(OUTCOMES)
        before = [one.record.seq for one in found if one.record.bundle is not None]
        bases = tuple(sorted(draw(st.sets(st.sampled_from(before), max_size=3)))) if before else ()
        late = timedelta(hours=draw(st.sampled_from([0, 0, 5])))
        created = class_of(outcome) if kind == "checkpoint" else "record"
        found.append(
            committed(seq, at, at + late, kind=kind, outcome=outcome, retention=created, bases=bases)
        )
    return found


def connected(run: list[Committed]) -> set[frozenset[int]]:
    """Epochs, in the plainest way."""
    groups = {frozenset({one.record.seq}) for one in run if one.record.bundle}
    for one in run:
        for base in one.record.bundle.bases if one.record.bundle else ():
            both = {group for group in groups if one.record.seq in group or base in group}
            groups = (groups - both) | {frozenset().union(*both)}
    return groups


@FEW
@given(chains())
def test_an_epoch_is_what_bases_connect(run: list[Committed]) -> None:
    found = epochs(run)
    assert {frozenset(group) for group in found} == connected(run)
    assert found == sorted(found)
    assert all(list(group) == sorted(group) for group in found)


@settings(max_examples=100, **UNTIMED)
@given(chains(), st.integers(1, 4), st.data())
def test_no_class_is_shorter_than_what_may_be_gone(run: list[Committed], keep: int, data: Any) -> None:
    """What rules delete by the classes of any moment is never called damage, then or later."""
    length = data.draw(st.integers(1, len(run)))
    then, now = run[:length], max(one.at for one in run[:length])
    merged = data.draw(st.booleans())
    standing = Standing(merged=now) if merged else NOTHING
    for seq, word in classes(then, keep=keep, standing=standing).items():
        count = DAYS[word]
        assert count is not None
        deleted = max(now, run[seq - 1].at + count * DAY)
        held = Standing(held=deleted + DAY, merged=standing.merged)
        for known, said in ((then, standing), (run, standing), (run, held)):
            end = endings(known, said)[seq]
            assert end is not None
            assert end.at <= deleted


@FEW
@given(chains(), st.integers(1, 4))
def test_nothing_is_kept_less_long_than_what_needs_it(run: list[Committed], keep: int) -> None:
    found = classes(run, keep=keep)
    for one in run:
        for base in one.record.bundle.bases if one.record.bundle else ():
            assert not is_shorter(found[base], found[one.record.seq])


@FEW
@given(chains(), st.integers(1, 4))
def test_the_newest_keep_and_their_epochs_are_never_superseded(run: list[Committed], keep: int) -> None:
    newest = [one.record.seq for one in run if one.record.bundle][-keep:]
    found = classes(run, keep=keep)
    for group in connected(run):
        live = {seq for seq in group if run[seq - 1].record.retention == "live"}
        if group.intersection(newest):
            assert not any(found[seq] == "intermediate" for seq in live)
        else:
            assert len({found[seq] for seq in live}) <= 1 or len(live) < len(group)


@FEW
@given(chains())
def test_a_hold_covers_everything_and_ends_nothing(run: list[Committed]) -> None:
    assert set(classes(run, keep=1, standing=Standing(held=START)).values()) <= {"hold"}
    assert all(end is None for end in endings(run, Standing(held=START)).values())


@FEW
@given(chains(), st.data())
def test_a_promise_is_the_least_of_what_is_needed(run: list[Committed], data: Any) -> None:
    bundles = [one.record.seq for one in run if one.record.bundle]
    words = st.sampled_from(["live", "intermediate", "success", "hold"])
    having: dict[int, RetentionClass] = {seq: data.draw(words) for seq in bundles}
    found = promised(run, having)
    for one in run:
        if one.record.bundle is None:
            continue
        needs, todo = set[int](), [one.record.seq]
        while todo:
            seq = todo.pop()
            if seq not in needs:
                needs.add(seq)
                bundle = run[seq - 1].record.bundle
                todo += bundle.bases if bundle else ()
        ends = [run[seq - 1].at + (DAYS[having[seq]] or 0) * DAY for seq in needs if having[seq] != "hold"]
        assert found[one.record.seq] == min(ends, default=None)


def test_age_counts_from_the_bundle_where_it_is_known() -> None:
    one = replace(committed(1, START + DAY), stored=START)
    assert promised([one], {}) == {1: START + 180 * DAY}
    assert promised([replace(one, stored=None)], {}) == {1: START + 181 * DAY}
    assert promised([one], {1: "live"}, {**DAYS, "live": 200}) == {1: START + 200 * DAY}


def test_a_merged_run_that_goes_on_is_kept_as_any_other() -> None:
    merged = Standing(merged=START)
    failed = committed(1, outcome="failed", retention="failure")
    assert classes([failed], keep=5, standing=merged) == {1: "success"}
    going_on = [failed, committed(2, START + DAY)]
    assert classes(going_on, keep=5, standing=merged) == {1: "failure", 2: "live"}


# --- the order ------------------------------------------------------------------------------------------


def there(run: list[Committed]) -> list[There]:
    return [There(one.record.bundle.name, one.at) for one in run if one.record.bundle is not None]


@FEW
@given(chains(), st.integers(1, 3), st.integers(1, 3), st.data())
def test_at_no_step_a_bundle_outlives_what_it_needs(
    run: list[Committed], keep: int, other: int, data: Any
) -> None:
    length = data.draw(st.integers(1, len(run)))
    times = st.sampled_from([NOTHING, Standing(held=START), Standing(released=START)])
    before = Known(run[:length], data.draw(times))
    tags: dict[There, RetentionClass | None] = {
        want.there: want.to for want in wanted(before, there(run[:length]), keep=other, now=START)
    }
    for place in there(run)[len(tags) :]:
        tags[place] = "live"
    for one in run[length:]:
        if one.record.bundle is not None:
            tags[There(one.record.bundle.name, one.at)] = one.record.retention
    known = Known(run, data.draw(times))
    step = dict(tags)
    names = {one.record.bundle.name: one.record.seq for one in run if one.record.bundle is not None}
    places = {names[place.name]: place for place in tags}
    is_whole = _is_whole(run, step, places)
    for change in ordered(wanted(known, there(run), keep=keep, now=START), tags, known):
        place = places[names[change.name]]
        assert step[place] == change.was != change.to
        assert change.was != "hold" or known.standing.released is not None
        step[place] = change.to
        assert _is_whole(run, step, places) or not is_whole


def _is_whole(run: list[Committed], tags: dict[There, RetentionClass | None], places: Any) -> bool:
    for one in run:
        for base in one.record.bundle.bases if one.record.bundle else ():
            mine, its = tags[places[one.record.seq]], tags[places[base]]
            assert mine is not None
            assert its is not None
            if is_shorter(its, mine):
                return False
    return True


def test_a_chain_that_is_not_whole_shortens_nothing_and_may_be_held() -> None:
    run = [committed(seq, START + seq * DAY) for seq in (1, 2, 3)]
    tags: dict[There, RetentionClass | None] = dict.fromkeys(there(run), "live")
    for whole, expected in ((True, ["intermediate"] * 2), (False, [])):
        known = Known(run, NOTHING, whole)
        found = ordered(wanted(known, there(run), keep=1, now=START), tags, known)
        assert [change.to for change in found] == expected
        assert [change.name for change in found] == [place.name for place in reversed(there(run)[:2])][
            : len(expected)
        ]
    held = Known(run, Standing(held=START), whole=False)
    found = ordered(wanted(held, there(run), keep=1, now=START), tags, held)
    assert [change.to for change in found] == ["hold"] * 3
    assert [change.name for change in found] == [place.name for place in there(run)]


def test_orphans_are_given_up_after_two_days_by_the_clock_of_the_store() -> None:
    orphan = There(layout.bundle_name("r", 7, "f" * 16), START)
    known = Known([committed(1)])
    assert next_time(known, [orphan, *there([committed(1)])], START) == START + 2 * DAY
    assert next_time(known, [orphan], START + 2 * DAY) is None
    assert wanted(known, [orphan], keep=1, now=START + 2 * DAY - timedelta(seconds=1)) == []
    (want,) = wanted(known, [orphan], keep=1, now=START + 2 * DAY)
    assert want.to == "intermediate"
    doubtful = replace(known, whole=False)
    assert wanted(doubtful, [orphan], keep=1, now=START + 9 * DAY) == []
    assert next_time(replace(known, standing=Standing(held=START)), [orphan], START) is None


def test_what_has_no_class_is_left_without_one() -> None:
    run = [committed(1, outcome="failed")]
    known = Known(run, Standing(held=START))
    assert ordered(wanted(known, there(run), keep=1, now=START), {there(run)[0]: None}, known) == []


def test_of_a_run_on_hold_and_one_released_everything_changes_but_notes() -> None:
    run = [committed(1, outcome="failed", retention="failure")]
    others = [
        There(layout.record_name("r", 1), START, "v1"),
        There(layout.record_name("r", 1), START, "v2"),
        There(layout.effect_name("r", "0" * 32), START),
        There(layout.audit_name(START, "r", "0" * 16), START),
        There(layout.note_name(START, "r", "0" * 16), START),
        There("bundles/r/stranger", START),
    ]
    everything = [*others, *there(run)]
    held = Known(run, Standing(held=START))
    assert [(want.there, want.to) for want in wanted(held, everything, keep=1, now=START)] == [
        (place, "hold") for place in (*others[:4], *there(run))
    ]
    released = Known(run, Standing(released=START))
    found = wanted(released, everything, keep=1, now=START)
    assert [want.to for want in found] == ["record"] * 4 + ["failure"]
    assert wanted(Known(run), others, keep=1, now=START) == []
