"""Rules are judged by what they would do to the objects of a store; no server is needed for that."""

from __future__ import annotations

from typing import Any

import pytest

from archiver.doctor.check import Check
from archiver.doctor.lifecycle import EXPIRING, judge, parse

PREFIX = "team/store/"
TAG = "archiver-class"


def rule(name: str, prefix: str = "", tags: dict[str, str] | None = None, **actions: Any) -> dict[str, Any]:
    """A rule as boto3 gives it, in the shape that S3 demands of its filter."""
    pairs = [{"Key": key, "Value": value} for key, value in (tags or {}).items()]
    if pairs and (prefix or len(pairs) > 1):
        where: dict[str, Any] = {"And": {"Prefix": prefix, "Tags": pairs}}
    else:
        where = {"Tag": pairs[0]} if pairs else {"Prefix": prefix}
    return {"ID": name, "Status": "Enabled", "Filter": where, **actions}


def expire(word: str, days: int, prefix: str = "", name: str = "") -> dict[str, Any]:
    return rule(name or f"{word}-{days}", prefix, {TAG: word}, Expiration={"Days": days})


ABORT = rule("abort", AbortIncompleteMultipartUpload={"DaysAfterInitiation": 7})
OLD = rule("old", NoncurrentVersionExpiration={"NoncurrentDays": 30})
DAYS = {"live": 30, "intermediate": 30, "success": 90, "failure": 180, "record": 400}
GOOD = [ABORT, OLD, *(expire(word, days) for word, days in DAYS.items())]


def judged(*rules: dict[str, Any], versioned: bool = True) -> list[Check]:
    return judge(parse(rules), PREFIX, TAG, versioned=versioned)


def only(*rules: dict[str, Any], versioned: bool = True) -> Check:
    (found,) = judged(*rules, versioned=versioned)
    return found


def test_rules_that_fit() -> None:
    assert set(DAYS) == set(EXPIRING)
    assert only(*GOOD).verdict == "ok"
    assert only(*GOOD[:1], *GOOD[2:], versioned=False).verdict == "ok"
    narrowed = [expire(word, days, PREFIX) for word, days in DAYS.items()]
    assert only(ABORT, OLD, *narrowed).verdict == "ok"


def test_the_old_form_of_a_rule_is_read_too() -> None:
    old = {"ID": "x", "Status": "Enabled", "Prefix": PREFIX + "index/", "Expiration": {"Days": 5}}
    assert only(*GOOD, old).verdict == "ok"  # hints may go, whatever their class
    assert parse([old])[0].prefix == PREFIX + "index/"


def test_no_rules_at_all() -> None:
    texts = [check.text for check in judged()]
    assert any("nothing ever expires" in text for text in texts)
    assert any("unfinished uploads" in text for text in texts)
    assert any("old ones" in text for text in texts)
    assert {check.verdict for check in judged()} == {"warning"}


@pytest.mark.parametrize("prefix", ["", "team/", PREFIX, PREFIX + "records/", PREFIX + "bundles/run/"])
def test_a_rule_that_spares_no_class_is_a_failure(prefix: str) -> None:
    found = only(*GOOD, rule("all", prefix, Expiration={"Days": 365}))
    assert (found.verdict, found.exit_code) == ("failure", 3)
    assert "rule all expires objects after 365 days" in found.text
    assert "on hold" in found.text


def test_a_fixed_date_is_an_end_too() -> None:
    found = only(*GOOD, rule("all", Expiration={"Date": "2030-01-01T00:00:00Z"}))
    assert "on a fixed date" in found.text


@pytest.mark.parametrize(
    "harmless",
    [
        rule("others", "other/", Expiration={"Days": 1}),
        rule("off", Expiration={"Days": 1}) | {"Status": "Disabled"},
        rule("foreign", tags={"env": "dev"}, Expiration={"Days": 1}),
        rule("markers", Expiration={"ExpiredObjectDeleteMarker": True}),
        rule("neighbour", "team/store-2/", Expiration={"Days": 1}),
    ],
)
def test_rules_that_do_not_touch_the_store(harmless: dict[str, Any]) -> None:
    assert only(*GOOD, harmless).verdict == "ok"


def test_a_hold_never_ends() -> None:
    found = only(*GOOD, expire("hold", 3650))
    assert (found.verdict, found.exit_code) == ("failure", 3)


def test_the_shorter_of_two_rules_wins_and_is_named() -> None:
    found = only(*GOOD, expire("failure", 10, PREFIX))
    assert found.verdict == "warning"
    assert "failure-180 (after 180 days) and rule failure-10 (after 10 days)" in found.text
    assert "they go after 10 days" in found.text
    assert only(*GOOD, expire("failure", 10, "other/")).verdict == "ok"


@pytest.mark.parametrize("tags", [{TAG: "sucess"}, {TAG: "live", "env": "dev"}])
def test_a_rule_that_matches_nothing(tags: dict[str, str]) -> None:
    found = only(*GOOD, rule("odd", tags=tags, Expiration={"Days": 1}))
    assert found.verdict == "warning"
    assert "matches nothing" in found.text


def test_a_class_without_a_rule_never_expires() -> None:
    without = [found for found in GOOD if found["ID"] != "success-90"]
    assert only(*without).text == "success never expire: no rule names the class"
    part = expire("success", 90, PREFIX + "bundles/")
    assert "success never expire" in only(*without, part).text
    small = expire("success", 90)
    small["Filter"] = {"And": {"Tags": [{"Key": TAG, "Value": "success"}], "ObjectSizeGreaterThan": 9}}
    assert "success never expire" in only(*without, small).text


def test_records_live_longest() -> None:
    found = only(*[expire("record", 90) if each["ID"] == "record-400" else each for each in GOOD])
    assert found.verdict == "warning"
    assert "400 days" in found.text


def test_versions_need_a_rule_of_their_own() -> None:
    found = only(*[each for each in GOOD if each["ID"] != "old"])
    assert "nothing that expires is ever gone" in found.text


def test_uploads_need_a_rule() -> None:
    assert "unfinished uploads" in only(*GOOD[1:]).text
    tagged = rule("abort", PREFIX + "bundles/", AbortIncompleteMultipartUpload={"DaysAfterInitiation": 7})
    assert "unfinished uploads" in only(*GOOD[1:], tagged).text


def test_storage_from_which_nobody_reads_at_three_in_the_morning() -> None:
    moves = [{"Days": 30, "StorageClass": "DEEP_ARCHIVE"}]
    assert "takes hours" in only(*GOOD, rule("cold", Transitions=moves)).text
    moves = [{"Days": 30, "StorageClass": "GLACIER_IR"}]
    assert only(*GOOD, rule("cold", Transitions=moves)).verdict == "ok"
