"""The commands on a bucket of the imitation: rules of others stay, and what they would delete is found."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from archiver.aws.door import client
from archiver.aws.options import AwsOptions
from archiver.config import config_home, load, state_home
from archiver.errors import RefusedError, StoreDeniedError, StoreError, StoreUnreachableError
from archiver.lifecycle import applying, bucket
from archiver.lifecycle.checking import check
from archiver.setup import Setup, open_setup
from archiver.store.s3 import rules as configured
from archiver.store.s3.client import S3
from archiver.store.s3.rules import Configuration

from .conftest import REGION, Command, make_bucket

URL = "s3://bucket/team"
LOGS = {
    "ID": "logs",
    "Status": "Enabled",
    "Filter": {"Prefix": "logs/"},
    "Expiration": {"Days": 14},
    "Transitions": [{"Days": 7, "StorageClass": "GLACIER_IR"}],
}


def put(s3: Any, *rules: dict[str, Any]) -> None:
    s3.put_bucket_lifecycle_configuration(Bucket="bucket", LifecycleConfiguration={"Rules": list(rules)})


def get(s3: Any) -> dict[str, Any]:
    found = s3.get_bucket_lifecycle_configuration(Bucket="bucket")["Rules"]
    return {rule["ID"]: rule for rule in found}


def expire(days: int, prefix: str = "", name: str = "theirs") -> dict[str, Any]:
    return {"ID": name, "Status": "Enabled", "Filter": {"Prefix": prefix}, "Expiration": {"Days": days}}


@pytest.fixture(scope="module")
def made(s3: Any, command: Command) -> Command:
    """A store with a run that succeeded and one that failed."""
    make_bucket(s3, "bucket")
    made = command("init", URL, "--region", REGION)
    assert made.code == 0, made.err
    Path("notes.txt").write_text("hello\n")
    for outcome in ("succeeded", "failed"):
        saved = command("archive", "notes.txt", "--run-id", outcome, "--outcome", outcome)
        assert saved.code == 0, saved.err
    return command


@pytest.fixture(scope="module")
def opened(made: Command) -> tuple[bucket.Bucket, Setup]:
    """What the commands read of it, read once."""
    return bucket.read(load()), open_setup(load(), "read")


@pytest.fixture
def store(made: Command, s3: Any) -> Command:
    """The same, in a bucket without rules."""
    s3.delete_bucket_lifecycle(Bucket="bucket")
    return made


def test_a_folder_has_no_rules(command: Command) -> None:
    for second in ("show", "check", "apply --yes"):
        refused = command("lifecycle", *second.split(), "--store", "/srv/archive")
        assert refused.code == 2
        assert "archiver expire" in refused.err


def test_the_rules_are_shown_put_and_then_as_they_should_be(store: Command, s3: Any) -> None:
    put(s3, LOGS)
    shown = store("lifecycle", "show", "--json").json
    assert [one["own"] for one in shown["rules"]] == [False]
    assert {one["state"] for one in shown["drift"]} == {"missing"}
    rows = store("lifecycle", "show").rows
    assert {len(row) for row in rows} == {7}
    assert rows[0][:4] == ["other", "logs", "enabled", "logs/"]
    assert ["own", "archiver-success", "missing", "team/"] in [row[:4] for row in rows]

    refused = store("lifecycle", "apply")
    assert refused.code == 2
    assert "--dry-run" in refused.err
    dry = store("lifecycle", "apply", "--dry-run")
    assert dry.code == 0
    assert ["kept", "logs"] in dry.rows
    assert ["added", "archiver-success"] in dry.rows
    assert set(get(s3)) == {"logs"}

    before = get(s3)["logs"]
    done = store("lifecycle", "apply", "--yes", "--because", "first time", "--json")
    assert done.code == 0, done.err
    assert (done.json["put"], done.json["changed"]) == (True, True)
    assert get(s3)["logs"] == before
    shown = store("lifecycle", "show", "--json").json
    assert shown["drift"] == []
    assert shown["findings"] == []
    own = [one["rule"] for one in shown["rules"] if one["own"]]
    assert {rule["ID"]: rule for rule in own} == {rule["ID"]: rule for rule in shown["wanted"]}

    again = store("lifecycle", "apply", "--yes", "--json")
    assert (again.json["put"], again.json["changed"]) == (False, False)
    assert {row[0] for row in store("lifecycle", "apply", "--dry-run").rows} == {"kept"}

    lines = [json.loads(line) for line in (state_home() / "audit.jsonl").read_text().splitlines()]
    (act,) = [line for line in lines if line["action"] == "lifecycle"]
    assert (act["why"], act["detail"]) == ("first time", {"others": 1, "rules": 7})

    terminal = store("lifecycle", "show", terminal=True, columns=200)
    assert "The own rules are as they should be." in terminal.out


def test_what_was_changed_is_put_right_again(store: Command, s3: Any) -> None:
    assert store("lifecycle", "apply", "--yes").code == 0
    rules = [
        {**rule, "Expiration": {"Days": 3}} if rule["ID"] == "archiver-failure" else rule
        for rule in get(s3).values()
    ]
    put(s3, *rules)
    (drift,) = store("lifecycle", "show", "--json").json["drift"]
    assert (drift["rule"], drift["state"]) == ("archiver-failure", "changed")
    checked = store("lifecycle", "check", "--json")
    assert checked.code == 3
    assert checked.json["error"]["rules"] == ["archiver-failure"]
    diff = store("lifecycle", "apply", "--dry-run", terminal=True, columns=120).out
    assert '-    "Days": 3' in diff
    assert '+    "Days": 180' in diff
    assert ["changed", "archiver-failure"] in store("lifecycle", "apply", "--yes").rows
    assert get(s3)["archiver-failure"]["Expiration"] == {"Days": 180}
    assert store("lifecycle", "check").code == 0


def test_a_rule_of_others_that_deletes_what_is_promised(store: Command, s3: Any) -> None:
    put(s3, expire(60, "team/bundles/"))
    checked = store("lifecycle", "check", "--json")
    assert checked.code == 3
    (rule,) = checked.json["rules"]
    assert (rule["rule"], rule["own"], rule["takes"], rule["early"]) == ("theirs", False, 2, 1)
    assert rule["first"][0]["name"].startswith("bundles/failed/")
    assert rule["first"][0]["why"] == "class failure"
    assert checked.json["error"]["type"] == "UnsafeLifecycleError"
    assert checked.json["promises"] == "records"
    (row,) = store("lifecycle", "check").rows
    assert row[:5] == ["early", "theirs", "other", "2", "1"]

    refused = store("lifecycle", "apply", "--yes")
    assert refused.code == 3
    assert "--despite-others" in refused.err
    assert set(get(s3)) == {"theirs"}
    done = store("lifecycle", "apply", "--yes", "--despite-others")
    assert done.code == 0, done.err
    assert "rule theirs takes 1 before" in done.err
    assert len(get(s3)) == 7


@pytest.mark.parametrize(
    ("rule", "early"),
    [
        (expire(400, "team/"), 1),  # store.json is promised without end
        (expire(399, "team/records/"), 2),
        (expire(400, "team/records/"), 0),
        (expire(1, "team/index/"), 0),  # nobody believes a hint
        (expire(1, "other/"), 0),
        (expire(1, "team/bun"), 2),
        ({**expire(1, "team/"), "Status": "Disabled"}, 0),
        ({**expire(1), "Filter": {"Tag": {"Key": "archiver-class", "Value": "success"}}}, 1),
        ({**expire(1), "Filter": {"Tag": {"Key": "env", "Value": "dev"}}}, 0),
        ({**expire(1), "Expiration": {"Date": "2030-01-01T00:00:00Z"}, "Filter": {"Prefix": "team/b"}}, 0),
        ({**expire(1), "Expiration": {"Date": "2020-01-01T00:00:00Z"}, "Filter": {"Prefix": "team/b"}}, 2),
    ],
)
def test_rules_of_every_kind(opened: tuple[bucket.Bucket, Setup], rule: dict[str, Any], early: int) -> None:
    there, setup = opened
    found = check(replace(there, configuration=Configuration([rule])), setup, now=datetime.now(UTC))
    assert found.early == early, found.rules
    assert (found.error() is not None) == (early > 0)


def test_a_tag_that_is_wrong_is_found_by_the_records(store: Command, s3: Any) -> None:
    assert store("lifecycle", "apply", "--yes").code == 0
    (key,) = [
        one["Key"] for one in s3.list_objects_v2(Bucket="bucket", Prefix="team/bundles/failed/")["Contents"]
    ]
    tag = {"TagSet": [{"Key": "archiver-class", "Value": "intermediate"}]}
    s3.put_object_tagging(Bucket="bucket", Key=key, Tagging=tag)
    checked = store("lifecycle", "check", "--json")
    assert checked.code == 3
    (rule,) = [one for one in checked.json["rules"] if one["early"]]
    assert (rule["rule"], rule["own"]) == ("archiver-intermediate", True)
    assert "archiver sweep" in checked.json["error"]["remedy"]
    warned = store("lifecycle", "apply", "--yes")  # the own rules are there and right: the tag is not
    assert warned.code == 0
    assert "takes 1 before" in warned.err

    s3.delete_bucket_lifecycle(Bucket="bucket")
    refused = store("lifecycle", "apply", "--yes", "--json")  # nothing takes it until they are put
    assert refused.code == 3
    assert refused.json["error"]["early"] == 1
    assert "class failure" in refused.json["error"]["message"]
    with pytest.raises(ClientError, match="NoSuchLifecycle"):
        get(s3)
    assert store("lifecycle", "apply", "--yes", "--despite-tags").code == 0

    s3.delete_object_tagging(Bucket="bucket", Key=key)
    checked = store("lifecycle", "check", "--json")
    assert checked.code == 0
    assert checked.json["unclassed"] == {"objects": 1, "first": [key.removeprefix("team/")]}
    tag["TagSet"][0]["Value"] = "failure"
    s3.put_object_tagging(Bucket="bucket", Key=key, Tagging=tag)


def test_without_an_identity_tags_count(store: Command, s3: Any, home: Path) -> None:
    identity = config_home() / "keys" / "identity.txt"
    identity.rename(home / "away")
    put(s3, expire(60, "team/bundles/"))
    checked = store("lifecycle", "check", "--json")
    assert (checked.code, checked.json["promises"], checked.json["early"]) == (3, "tags", 1)
    assert "tags alone" in checked.err
    put(s3, LOGS)
    done = store("lifecycle", "apply", "--yes")
    assert done.code == 0, done.err
    assert "archiver-record" in get(s3)
    (home / "away").rename(identity)


def test_a_sample_is_looked_at(store: Command, s3: Any) -> None:
    put(s3, LOGS)
    whole = store("lifecycle", "check", "--json").json
    assert whole["looked"] == whole["total"] > 3
    part = store("lifecycle", "check", "--sample", "3", "--json").json
    assert (part["looked"], part["total"]) == (3, whole["total"])
    assert store("lifecycle", "check", "--sample", "0").code == 2
    assert store("lifecycle", "check", "--sample", "50%").code == 0


def test_a_dangerous_rule_is_refused_before_there_is_anything(store: Command, s3: Any) -> None:
    put(s3, {**expire(5), "Filter": {"Tag": {"Key": "archiver-class", "Value": "live"}}})
    assert store("lifecycle", "check").code == 0
    refused = store("lifecycle", "apply", "--yes")
    assert refused.code == 3
    assert "promised for 180 days" in refused.err
    assert store("lifecycle", "apply", "--yes", "--despite-others").code == 0


def test_somebody_changes_the_rules_meanwhile(
    store: Command, s3: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse = applying.refuse_unsafe

    def meanwhile(*given: Any) -> None:
        refuse(*given)
        client("s3", AwsOptions(region=REGION)).put_bucket_lifecycle_configuration(
            Bucket="bucket", LifecycleConfiguration={"Rules": [LOGS]}
        )

    monkeypatch.setattr(applying, "refuse_unsafe", meanwhile)
    refused = store("lifecycle", "apply", "--yes", "--json")
    assert refused.code == 3
    assert "meanwhile" in refused.json["error"]["message"]
    assert set(get(s3)) == {"logs"}


def test_a_server_that_keeps_something_else_is_told_so(store: Command, s3: Any) -> None:
    """The imitation drops sizes where they stand beside a tag: then it is another rule than was put."""
    found = applying.plan(bucket.read(load()))
    sized = {
        "ID": "sized",
        "Status": "Enabled",
        "Filter": {"And": {"Prefix": "x/", "Tags": [{"Key": "a", "Value": "b"}], "ObjectSizeGreaterThan": 9}},
        "Expiration": {"Days": 1},
    }
    with pytest.raises(StoreError, match="sized came back otherwise"):
        applying.apply(applying.Plan(found.bucket, [sized, *found.merged]))


def test_a_bucket_that_does_not_say_whether_it_keeps_versions(
    store: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without an answer it may keep some: only one that knows none is taken for a bucket without."""
    ask = S3.call
    answers: list[Exception] = []

    def call(self: S3, operation: str, *given: Any, **params: Any) -> Any:
        if operation == "get_bucket_versioning":
            raise answers[0]
        return ask(self, operation, *given, **params)

    monkeypatch.setattr(S3, "call", call)
    timeout = StoreUnreachableError("no answer")
    timeout.__cause__ = TimeoutError()
    answers[:] = [timeout]
    for second in ("show", "check", "apply --yes"):
        assert store("lifecycle", *second.split()).code == 8
    for code, status, versioning in (("NotImplemented", 501, "off"), ("AccessDenied", 403, "on")):
        refused = StoreDeniedError("no")
        refused.__cause__ = ClientError(
            {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}, "GetBucketVersioning"
        )
        answers[:] = [refused]
        shown = store("lifecycle", "show", "--json")
        assert (shown.code, shown.json["versioning"]) == (0, versioning)
        assert shown.json["remarks"]


def test_parts_of_rules_that_only_one_server_has(store: Command, s3: Any) -> None:
    put(s3, LOGS)
    there = bucket.read(load())
    client, _ = there.s3._of_this_process(there.s3.request("get_bucket_lifecycle_configuration", None))

    def more(response_dict: dict[str, Any], **_: Any) -> None:
        response_dict["body"] = response_dict["body"].replace(
            b"<Status>", b"<DelMarkerDays>1</DelMarkerDays><Status>"
        )

    client.meta.events.register_first("before-parse.s3.GetBucketLifecycleConfiguration", more)
    found = configured.get(there.s3)
    assert found.unknown == ("DelMarkerDays",)
    assert [rule["ID"] for rule in found.rules] == ["logs"]
    with pytest.raises(RefusedError, match="DelMarkerDays"):
        applying.plan(replace(there, configuration=found))


def test_old_versions(store: Command, s3: Any) -> None:
    s3.put_bucket_versioning(Bucket="bucket", VersioningConfiguration={"Status": "Enabled"})
    assert store("archive", "notes.txt", "--run-id", "r", "--outcome", "failed").code == 0
    (key,) = [one["Key"] for one in s3.list_objects_v2(Bucket="bucket", Prefix="team/bundles/r/")["Contents"]]
    old = s3.head_object(Bucket="bucket", Key=key)["VersionId"]
    s3.put_object(Bucket="bucket", Key=key, Body=b"x", Tagging="archiver-class=failure")
    put(
        s3,
        {**LOGS, "Filter": {"Prefix": "team/"}}
        | {"NoncurrentVersionExpiration": {"NoncurrentDays": 2}}
        | {"Expiration": {"ExpiredObjectDeleteMarker": True}},
    )
    checked = store("lifecycle", "check", "--json")
    assert checked.code == 3
    (rule,) = checked.json["rules"]
    assert (rule["early"], rule["first"][0]["version"]) == (1, old)
    assert store("lifecycle", "apply", "--yes").code == 3
    put(s3, LOGS)
    assert store("lifecycle", "apply", "--yes").code == 0
    assert "archiver-markers" in get(s3)
    assert get(s3)["archiver-failure"]["NoncurrentVersionExpiration"] == {"NoncurrentDays": 30}
    assert store("lifecycle", "check").code == 0
    # The old version is put on hold: no own rule takes it, and one of others that would is found.
    tag = {"TagSet": [{"Key": "archiver-class", "Value": "hold"}]}
    s3.put_object_tagging(Bucket="bucket", Key=key, VersionId=old, Tagging=tag)
    assert store("lifecycle", "check").code == 0
    late = {"ID": "old", "Status": "Enabled", "Filter": {"Prefix": ""}}
    put(s3, *get(s3).values(), late | {"NoncurrentVersionExpiration": {"NoncurrentDays": 900}})
    checked = store("lifecycle", "check", "--json")
    assert checked.code == 3
    (early,) = [one for one in checked.json["rules"] if one["early"]]
    assert (early["rule"], early["first"][0]["version"], early["first"][0]["promised"]) == ("old", old, None)


def test_a_person_is_asked(store: Command, s3: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    put(s3, LOGS)
    answers = [False, True]
    monkeypatch.setattr("typer.confirm", lambda *_, **__: answers.pop(0))
    monkeypatch.delenv("CI", raising=False)
    refused = store("lifecycle", "apply", terminal=True, columns=160)
    assert refused.code == 0
    assert '+  "ID": "archiver-success"' in refused.out
    assert '"ID": "logs"' not in "".join(line for line in refused.out.splitlines() if line[:1] in "+-")
    assert "Nothing was put." in refused.out
    assert set(get(s3)) == {"logs"}
    done = store("lifecycle", "apply", terminal=True, columns=160)
    assert "Put, and read back; 1 rule of others stayed" in done.out
    assert "archiver-success" in get(s3)
    checked = store("lifecycle", "check", terminal=True, columns=160)
    assert checked.code == 0
    assert "promises from verified records" in checked.out
