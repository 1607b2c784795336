"""Rules are judged by what they would do to the objects of a store; no server is needed for that."""

from __future__ import annotations

from typing import Any

import pytest

from archiver.lifecycle.judge import Finding, judge
from archiver.lifecycle.parse import parse
from archiver.lifecycle.rules import EXPIRING, RawRule, Wanted, rules
from archiver.retention import DAYS as PROMISED

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
DAYS = {"live": 180, "intermediate": 30, "success": 90, "failure": 180, "record": 400}
OLD = [
    rule(f"old-{word}", "", {TAG: word}, NoncurrentVersionExpiration={"NoncurrentDays": 30}) for word in DAYS
]
GOOD = [ABORT, *OLD, *(expire(word, days) for word, days in DAYS.items())]


def wanted(prefix: str = PREFIX, *, versioned: bool = True) -> Wanted:
    return Wanted(prefix, versioned, TAG, PROMISED)


def judged(*given: RawRule, versioned: bool = True) -> list[Finding]:
    return judge(parse(given), wanted(versioned=versioned))


def only(*given: RawRule, versioned: bool = True) -> Finding:
    (found,) = judged(*given, versioned=versioned)
    return found


def test_rules_that_fit() -> None:
    assert set(DAYS) == set(EXPIRING)
    assert judged(*GOOD) == []
    assert judged(ABORT, *GOOD[1 + len(OLD) :], versioned=False) == []
    narrowed = [expire(word, days, PREFIX) for word, days in DAYS.items()]
    assert judged(ABORT, *OLD, *narrowed) == []


@pytest.mark.parametrize("versioned", [True, False])
@pytest.mark.parametrize("prefix", ["", PREFIX])
def test_the_own_rules_fit(prefix: str, versioned: bool) -> None:
    own = wanted(prefix, versioned=versioned)
    assert judge(parse(rules(own)), own) == []


def test_the_old_form_of_a_rule_is_read_too() -> None:
    old = {"ID": "x", "Status": "Enabled", "Prefix": PREFIX + "index/", "Expiration": {"Days": 5}}
    assert judged(*GOOD, old) == []  # hints may go, whatever their class
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
    assert found.verdict == "failure"
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
    assert judged(*GOOD, harmless) == []


def test_a_hold_never_ends() -> None:
    found = only(*GOOD, expire("hold", 3650))
    assert found.verdict == "failure"


def test_the_shorter_of_two_rules_wins_and_is_named() -> None:
    found = only(*GOOD, expire("failure", 200, PREFIX))
    assert found.verdict == "warning"
    assert "failure-180 (after 180 days) and rule failure-200 (after 200 days)" in found.text
    assert "they go after 180 days" in found.text
    assert judged(*GOOD, expire("failure", 10, "other/")) == []


@pytest.mark.parametrize("word", DAYS)
def test_a_class_that_lives_shorter_than_promised_is_a_failure(word: str) -> None:
    least = PROMISED[word]
    assert least is not None
    others = [each for each in GOOD if not each["ID"].startswith(f"{word}-")]
    assert judged(*others, expire(word, least)) == []
    found = only(*others, expire(word, least - 1))
    assert found.verdict == "failure"
    assert f"promised for {least} days" in found.text
    dated = rule("dated", "", {TAG: word}, Expiration={"Date": "2030-01-01T00:00:00Z"})
    assert only(*others, dated).verdict == "failure"


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


def test_versions_need_rules_of_their_own() -> None:
    found = only(*[each for each in GOOD if each not in OLD])
    assert "nothing that expires is ever gone" in found.text
    assert "old versions of success, so" in only(*[each for each in GOOD if each["ID"] != "old-success"]).text


def test_no_rule_takes_old_versions_of_every_class() -> None:
    every = rule("every", NoncurrentVersionExpiration={"NoncurrentDays": 30})
    found = only(*GOOD, every)
    assert found.verdict == "failure"
    assert "old versions after 30 days, whatever their class, so also those on hold" in found.text
    assert judged(*GOOD, every, versioned=False) == []
    held = rule("held", "", {TAG: "hold"}, NoncurrentVersionExpiration={"NoncurrentDays": 9999})
    assert only(*GOOD, held).verdict == "failure"


def test_uploads_need_a_rule() -> None:
    assert "unfinished uploads" in only(*GOOD[1:]).text
    tagged = rule("abort", PREFIX + "bundles/", AbortIncompleteMultipartUpload={"DaysAfterInitiation": 7})
    assert "unfinished uploads" in only(*GOOD[1:], tagged).text


def test_storage_from_which_nobody_reads_at_three_in_the_morning() -> None:
    moves = [{"Days": 30, "StorageClass": "DEEP_ARCHIVE"}]
    assert "takes hours" in only(*GOOD, rule("cold", Transitions=moves)).text
    moves = [{"Days": 30, "StorageClass": "GLACIER_IR"}]
    assert judged(*GOOD, rule("cold", Transitions=moves)) == []
