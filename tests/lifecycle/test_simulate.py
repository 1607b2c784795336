"""The engine against what S3 documents, and properties that hold for any rules and objects."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver.lifecycle.parse import Rule, parse
from archiver.lifecycle.simulate import Fate, Version, aborted, midnight, simulate

CREATED = datetime(2026, 1, 15, 10, 30, tzinfo=UTC)
NOW = CREATED


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def rule(name: str, where: Any = None, **does: Any) -> Rule:
    raw = {"ID": name, "Status": "Enabled", "Filter": where if where is not None else {"Prefix": ""}, **does}
    (found,) = parse([raw])
    return found


def expire(days: int, where: Any = None, name: str = "x", **more: Any) -> Rule:
    return rule(name, where, Expiration={"Days": days}, **more)


def one(*rules: Rule, now: datetime = NOW, versioning: Any = "off", **version: Any) -> Fate:
    found = Version("a/b", CREATED, **version)
    ((_, fate),) = simulate(rules, [found], now, versioning=versioning)
    return fate


def test_days_are_rounded_up_to_midnight() -> None:
    assert midnight(at("2026-01-18T10:30")) == at("2026-01-19")
    assert midnight(at("2026-01-18")) == at("2026-01-18")
    deleted = one(expire(3)).deleted
    assert deleted is not None
    assert deleted.at == at("2026-01-19")  # the example that AWS gives
    assert one(expire(3)).hidden is None
    assert one(expire(3), now=at("2027-01-01")).deleted.at == at("2027-01-01")  # type: ignore[union-attr]


def test_nothing_without_a_rule() -> None:
    assert one() == Fate()
    assert one(rule("off", AbortIncompleteMultipartUpload={"DaysAfterInitiation": 1})) == Fate()
    assert parse([{"ID": "x", "Status": "Disabled", "Prefix": "", "Expiration": {"Days": 1}}]) == []


@pytest.mark.parametrize(
    ("where", "fits"),
    [
        ({}, True),
        ({"Prefix": "a/"}, True),
        ({"Prefix": "b/"}, False),
        ({"Tag": {"Key": "k", "Value": "v"}}, True),
        ({"Tag": {"Key": "k", "Value": "w"}}, False),
        ({"And": {"Prefix": "a/", "Tags": [{"Key": "k", "Value": "v"}]}}, True),
        ({"And": {"Prefix": "a/", "Tags": [{"Key": "k", "Value": "v"}, {"Key": "l", "Value": "v"}]}}, False),
        ({"And": {"Prefix": "b/", "Tags": [{"Key": "k", "Value": "v"}]}}, False),
        ({"ObjectSizeGreaterThan": 99}, True),
        ({"ObjectSizeGreaterThan": 100}, False),
        ({"ObjectSizeLessThan": 101}, True),
        ({"ObjectSizeLessThan": 100}, False),
        ({"And": {"Prefix": "a/", "ObjectSizeGreaterThan": 10, "ObjectSizeLessThan": 50}}, False),
    ],
)
def test_filters(where: dict[str, Any], fits: bool) -> None:
    found = one(expire(1, where), tags={"k": "v"}, size=100)
    assert (found.deleted is not None) == fits


def test_the_old_form_of_a_rule() -> None:
    (old,) = parse([{"ID": "x", "Status": "Enabled", "Prefix": "a/", "Expiration": {"Days": 1}}])
    assert one(old).deleted is not None
    (other,) = parse([{"ID": "x", "Status": "Enabled", "Prefix": "z/", "Expiration": {"Days": 1}}])
    assert one(other).deleted is None


def test_a_date_also_takes_what_comes_later() -> None:
    dated = rule("x", Expiration={"Date": "2026-03-01T00:00:00Z"})
    deleted = one(dated).deleted
    assert deleted is not None
    assert deleted.at == at("2026-03-01")
    past = rule("x", Expiration={"Date": at("2020-01-01")})
    deleted = one(past).deleted
    assert deleted is not None
    assert deleted.at == CREATED
    unreadable = one(rule("x", Expiration={"Date": "when it suits"})).deleted
    assert unreadable is not None
    assert unreadable.at == CREATED


def test_the_shorter_wins_and_is_named() -> None:
    fate = one(expire(9, name="long"), expire(3, name="short"), expire(5, name="middle"))
    assert fate.deleted is not None
    assert (fate.deleted.rule.name, fate.deleted.at) == ("rule short", at("2026-01-19"))


def test_with_versions_it_is_hidden_and_then_removed() -> None:
    both = expire(3, NoncurrentVersionExpiration={"NoncurrentDays": 2})
    fate = one(both, versioning="on")
    assert fate.hidden is not None
    assert fate.deleted is not None
    assert (fate.hidden.at, fate.deleted.at) == (at("2026-01-19"), at("2026-01-21"))
    assert fate.first is fate.hidden
    assert not fate.is_gone(at("2026-01-20"))
    assert fate.is_gone(at("2026-01-21"))
    alone = one(expire(3), versioning="on")
    assert alone.hidden is not None
    assert alone.deleted is None


def test_while_versions_are_suspended_what_has_no_id_is_gone() -> None:
    assert one(expire(3), versioning="suspended").hidden is None
    assert one(expire(3), versioning="suspended").deleted is not None
    kept = one(expire(3), versioning="suspended", id="abc")
    assert kept.hidden is not None
    assert kept.deleted is None


def test_the_marker_without_an_id_takes_the_place_of_an_old_version_without_one() -> None:
    """While versions are suspended: what lies behind with an id stays, and what goes sooner goes sooner."""
    newest = Version("a/b", CREATED, id="2")
    behind = [Version("a/b", CREATED, noncurrent_since=CREATED, id=word) for word in ("1", "null")]

    def ends(*rules: Rule, versioning: Any = "suspended") -> list[datetime | None]:
        found = simulate(rules, [newest, *behind], NOW, versioning=versioning)
        return [fate.deleted.at if fate.deleted else None for _, fate in found]

    assert ends(expire(3)) == [None, None, at("2026-01-19")]
    assert ends(expire(3), versioning="on") == [None, None, None]
    assert ends(old(9)) == [None, at("2026-01-25"), at("2026-01-25")]
    assert ends(expire(3), old(1))[1:] == [at("2026-01-17"), at("2026-01-17")]
    assert ends(expire(3), old(9))[1:] == [at("2026-01-25"), at("2026-01-19")]


def test_a_number_of_old_versions_without_days_takes_the_others_at_once() -> None:
    left = rule("left", NoncurrentVersionExpiration={"NewerNoncurrentVersions": 1})
    fates = [fate for _, fate in simulate([left], stack(3), NOW, versioning="on")]
    assert [fate.deleted is not None for fate in fates] == [False, False, True]
    assert fates[2].deleted is not None
    assert fates[2].deleted.at == at("2026-01-17")  # the midnight after something came over it


def old(days: int, newer: int | None = None, where: Any = None) -> Rule:
    more = {} if newer is None else {"NewerNoncurrentVersions": newer}
    return rule("old", where, NoncurrentVersionExpiration={"NoncurrentDays": days, **more})


def stack(count: int, *, marker: bool = False) -> list[Version]:
    """So many versions of one object, one a day, the newest first; that one may be a marker."""
    times = [CREATED + timedelta(days=number) for number in reversed(range(count))]
    return [
        Version(
            "a/b",
            created,
            noncurrent_since=times[place - 1] if place else None,
            marker=marker and not place,
            id=str(place),
        )
        for place, created in enumerate(times)
    ]


def test_old_versions_count_from_when_they_became_old() -> None:
    fates = simulate([old(5)], stack(3), NOW, versioning="on")
    ends = [fate.deleted.at if fate.deleted else None for _, fate in fates]
    assert ends == [None, at("2026-01-23"), at("2026-01-22")]


def test_the_newest_old_versions_are_left() -> None:
    fates = [fate for _, fate in simulate([old(5, newer=2)], stack(4), NOW, versioning="on")]
    assert [fate.deleted is not None for fate in fates] == [False, False, False, True]
    # The current one becomes old too when it expires, and pushes the others on.
    both = [old(5, newer=2), expire(1)]
    fates = [fate for _, fate in simulate(both, stack(4), NOW, versioning="on")]
    assert [fate.deleted is not None for fate in fates] == [False, False, True, True]


def test_a_marker_goes_when_it_hides_nothing_any_more() -> None:
    markers = rule("markers", Expiration={"ExpiredObjectDeleteMarker": True})
    fates = [fate for _, fate in simulate([old(5), markers], stack(2, marker=True), NOW, versioning="on")]
    assert fates[0].deleted is not None
    assert fates[0].deleted.at == fates[1].deleted.at  # type: ignore[union-attr]
    assert fates[0].deleted.rule.name == "rule markers"
    fates = [fate for _, fate in simulate([markers], stack(2, marker=True), NOW, versioning="on")]
    assert [fate.deleted for fate in fates] == [None, None]  # it hides something, without end
    fates = [fate for _, fate in simulate([old(5)], stack(2, marker=True), NOW, versioning="on")]
    assert fates[0].deleted is None
    alone = [Version("a/b", CREATED, marker=True, id="m")]
    ((_, fate),) = simulate([markers], alone, NOW, versioning="on")
    assert fate.deleted is not None
    ((_, fate),) = simulate([expire(3)], alone, NOW, versioning="on")
    assert fate.deleted is not None
    assert fate.deleted.at == at("2026-01-19")
    ((_, fate),) = simulate([expire(3, {"Tag": {"Key": "k", "Value": "v"}})], alone, NOW, versioning="on")
    assert fate.deleted is None  # a marker has no tags


def test_uploads_are_aborted() -> None:
    abort = rule("abort", {"Prefix": "a/"}, AbortIncompleteMultipartUpload={"DaysAfterInitiation": 7})
    found = aborted([abort, expire(1)], "a/b", CREATED, NOW)
    assert found is not None
    assert found.at == at("2026-01-23")
    assert aborted([abort], "b/b", CREATED, NOW) is None


def test_moves_are_reported_alone() -> None:
    cold = rule(
        "cold",
        Transitions=[
            {"Days": 30, "StorageClass": "GLACIER"},
            {"Date": at("2026-05-01"), "StorageClass": "X"},
        ],
        NoncurrentVersionTransitions=[{"NoncurrentDays": 1, "StorageClass": "OLD"}],
    )
    fate = one(cold)
    assert fate.first is None
    assert [(when, move.storage) for when, move, _ in fate.moves] == [
        (at("2026-02-15"), "GLACIER"),
        (at("2026-05-01"), "X"),
    ]


RULES = st.builds(
    lambda number, prefix, tag, days, old_days, newer: rule(
        str(number),
        {"And": {"Prefix": prefix, "Tags": [{"Key": "c", "Value": tag}]}} if tag else {"Prefix": prefix},
        **({"Expiration": {"Days": days}} if days else {}),
        **(
            {"NoncurrentVersionExpiration": {"NoncurrentDays": old_days, "NewerNoncurrentVersions": newer}}
            if old_days
            else {}
        ),
    ),
    st.integers(0, 99),
    st.sampled_from(["", "a/", "a/b", "z"]),
    st.sampled_from(["", "x", "y"]),
    st.integers(0, 40),
    st.integers(0, 40),
    st.integers(0, 3),
)
OBJECTS = st.builds(
    lambda key, hours, tag: Version(key, CREATED + timedelta(hours=hours), {"c": tag} if tag else {}),
    st.sampled_from(["a/b", "a/c", "q"]),
    st.integers(0, 2000),
    st.sampled_from(["", "x", "y"]),
)
VERSIONING = st.sampled_from(["off", "on", "suspended"])


@given(st.lists(RULES, max_size=6), OBJECTS, st.integers(0, 400), st.integers(0, 400), VERSIONING)
def test_what_is_gone_stays_gone(
    rules: list[Rule], found: Version, early: int, more: int, versioning: Any
) -> None:
    """Seen from a later time an object is gone no later, but for what is late by then."""
    first, then = NOW + timedelta(days=early), NOW + timedelta(days=early + more)
    ((_, before),) = simulate(rules, [found], first, versioning=versioning)
    ((_, after),) = simulate(rules, [found], then, versioning=versioning)
    assert (before.first is None) == (after.first is None)
    if before.first is not None and after.first is not None:
        assert after.first.at == max(before.first.at, then)
        assert after.first.rule == before.first.rule


@given(st.lists(RULES, max_size=6), RULES, OBJECTS, VERSIONING)
def test_one_rule_more_deletes_no_later(
    rules: list[Rule], more: Rule, found: Version, versioning: Any
) -> None:
    ((_, before),) = simulate(rules, [found], NOW, versioning=versioning)
    ((_, after),) = simulate([*rules, more], [found], NOW, versioning=versioning)
    if before.first is not None:
        assert after.first is not None
        assert after.first.at <= before.first.at
    if before.deleted is not None:
        assert after.deleted is not None
        assert after.deleted.at <= before.deleted.at


@given(st.lists(RULES, max_size=6), OBJECTS, VERSIONING)
def test_it_goes_by_the_earliest_of_the_rules_alone(
    rules: list[Rule], found: Version, versioning: Any
) -> None:
    ((_, fate),) = simulate(rules, [found], NOW, versioning=versioning)
    alone = [next(simulate([each], [found], NOW, versioning=versioning))[1].first for each in rules]
    earliest = min((event.at for event in alone if event is not None), default=None)
    assert (fate.first.at if fate.first else None) == earliest


def test_a_hundred_thousand_objects() -> None:
    rules = [expire(days, {"Tag": {"Key": "c", "Value": str(days)}}, str(days)) for days in range(1, 8)]
    many = (Version(f"a/{number}", CREATED, {"c": str(number % 9)}) for number in range(100_000))
    gone = sum(fate.deleted is not None for _, fate in simulate(rules, many, NOW))
    assert gone == sum(1 <= number % 9 <= 7 for number in range(100_000))
