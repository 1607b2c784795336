"""The rules that the classes need, and how they join those of others without touching them."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from archiver.lifecycle.applying import alike, differences
from archiver.lifecycle.rules import Wanted, drift, is_own, merge, ours, rules, same, short_hash
from archiver.retention import DAYS

TAG = "archiver-class"


def store(prefix: str = "team/", *, versioned: bool = True) -> Wanted:
    return Wanted(prefix, versioned, TAG, DAYS)


def by_id(found: list[dict[str, Any]]) -> dict[str, Any]:
    return {rule["ID"]: rule for rule in found}


def test_one_rule_a_class_with_its_old_versions() -> None:
    found = by_id(rules(store()))
    assert found["archiver-failure"] == {
        "ID": "archiver-failure",
        "Status": "Enabled",
        "Filter": {"And": {"Prefix": "team/", "Tags": [{"Key": TAG, "Value": "failure"}]}},
        "Expiration": {"Days": 180},
        "NoncurrentVersionExpiration": {"NoncurrentDays": 30},
    }
    assert not any("hold" in name for name in found)
    for name in ("archiver-uploads", "archiver-markers"):
        assert found[name]["Filter"] == {"Prefix": "team/"}
    plain = by_id(rules(store("", versioned=False)))
    assert plain["archiver-live"]["Filter"] == {"Tag": {"Key": TAG, "Value": "live"}}
    assert "archiver-markers" not in plain
    assert not any("NoncurrentVersionExpiration" in rule for rule in plain.values())


def test_days_that_are_longer_count() -> None:
    longer = Wanted("", False, TAG, {**DAYS, "success": 99})
    assert by_id(rules(longer))["archiver-success"]["Expiration"] == {"Days": 99}


def test_two_stores_of_one_bucket_leave_each_other_alone() -> None:
    one, other = store("one/"), store("two/")
    first = merge([], one)
    both = merge(first, other)
    assert both[: len(first)] == first
    assert len(both) == 2 * len(first)
    assert len({rule["ID"] for rule in both}) == len(both)
    assert {rule["ID"] for rule in both if is_own(rule, "two/")} == {
        f"archiver-{word}-{short_hash('two/')}"
        for word in ("intermediate", "success", "failure", "live", "record", "uploads", "markers")
    }
    assert merge(both, other) == both
    again = merge(both, one)
    assert by_id(again) == by_id(both)
    assert drift(both, one) == drift(both, other) == []


def test_the_store_above_takes_no_rule_of_the_store_below() -> None:
    below = merge([], store("a/"))
    assert not any(is_own(rule, "") for rule in below)
    assert merge(below, store(""))[: len(below)] == below


def test_what_is_not_as_it_should_be_is_said() -> None:
    own = rules(store())
    assert [one.kind for one in drift([], store())] == ["missing"] * len(own)
    changed = [dict(rule) for rule in own]
    changed[0] = {**changed[0], "Expiration": {"Days": 3}}
    changed[1] = {**changed[1], "Status": "Disabled"}
    found = drift(changed, store())
    assert [(one.name, one.kind) for one in found] == [
        (own[0]["ID"], "changed"),
        (own[1]["ID"], "disabled"),
    ]
    assert "days 3, not 8" in found[0].text
    (extra,) = drift(own, store(versioned=False))[-1:]
    assert (extra.name, extra.kind) == ("archiver-markers", "superfluous")


def test_what_a_server_writes_otherwise_is_the_same_rule() -> None:
    one = {"ID": "x", "Status": "Enabled", "Filter": {"Prefix": "a/"}, "Expiration": {"Days": 1}}
    assert same(one, {**one, "Filter": {"And": {"Prefix": "a/", "Tags": []}}})
    assert not same(one, {**one, "Filter": {"Prefix": ""}})
    assert not same(one, {**one, "Status": "Disabled"})
    assert not same(one, {**one, "Expiration": {"Days": 2}})
    assert differences([one], [{**one, "Expiration": {"Days": 2}}]) == ["x came back otherwise"]
    assert differences([one], []) == ["x is not there"]
    assert differences([], [one]) == ["x is new"]
    assert alike([one, {**one, "ID": "y"}], [{**one, "ID": "y"}, one])


def test_the_old_form_of_rules_of_others_is_put_as_a_filter() -> None:
    """S3 refuses a prefix beside a rule where another rule has a filter."""
    old = {"ID": "logs", "Status": "Enabled", "Prefix": "logs/", "Expiration": {"Days": 14}}
    merged = merge([old], store())
    assert merged[0] == {
        "ID": "logs", "Status": "Enabled", "Filter": {"Prefix": "logs/"}, "Expiration": {"Days": 14}
    }  # fmt: skip
    assert same(old, merged[0])
    assert not any("Prefix" in rule for rule in merged)
    assert alike([old, *rules(store())], merged)  # so that alone is no change that has to be put


FOREIGN = st.builds(
    lambda name, prefix, days, status: {
        "ID": name,
        "Status": status,
        "Filter": {"Prefix": prefix},
        "Expiration": {"Days": days},
        "Transitions": [{"Days": days, "StorageClass": "GLACIER_IR"}],
    },
    st.sampled_from(
        ["logs", "", "archiver-success", "archiver-live", "archiver", "terraform-1", "archiver-x"]
    ),
    st.sampled_from(["", "team", "logs/", "team/x/"]),
    st.integers(1, 400),
    st.sampled_from(["Enabled", "Disabled"]),
)
PRESENT = st.lists(FOREIGN, max_size=6, unique_by=lambda rule: rule["ID"])
PREFIX = st.sampled_from(["team/", "a/b/", "logs/"])


@given(PRESENT, PREFIX, st.booleans())
def test_rules_of_others_stay_as_they_are_and_where_they_are(
    present: list[dict[str, Any]], prefix: str, versioned: bool
) -> None:
    wanted = store(prefix, versioned=versioned)
    others = [rule for rule in present if not is_own(rule, prefix)]
    merged = merge(present, wanted)
    assert merged[: len(others)] == others
    assert merged[len(others) :] == ours(present, wanted)
    names = [rule["ID"] for rule in merged]
    assert len(set(names)) == len(names)


@given(PRESENT, PREFIX, st.booleans())
def test_to_merge_twice_is_to_merge_once(present: list[dict[str, Any]], prefix: str, versioned: bool) -> None:
    wanted = store(prefix, versioned=versioned)
    merged = merge(present, wanted)
    assert merge(merged, wanted) == merged
    assert drift(merged, wanted) == []


@given(PRESENT, st.permutations(["team/", "a/b/", ""]))
def test_stores_of_one_bucket_come_in_any_order(present: list[dict[str, Any]], order: list[str]) -> None:
    merged = present
    for prefix in order:
        merged = merge(merged, store(prefix))
    for prefix in order:
        assert drift(merged, store(prefix)) == []
        assert by_id(merge(merged, store(prefix))) == by_id(merged)
