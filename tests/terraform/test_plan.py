"""Who may do what on AWS, by the policies of the plan: also what no emulator judges."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from archiver import layout
from archiver.retention import ABORT_DAYS, DAYS, NONCURRENT_DAYS
from terraform.plan import REGION, ROLES, TAG, Plan
from terraform.policies import Request, denied, listed

BUNDLE = "bundles/r/00000001-0123456789abcdef.tar.zst.age"
RECORD = "records/r/00000001.age"
EFFECT = "effects/r/0123456789abcdef0123456789abcdef.age"
NOTE = "notes/r/8250000000000-0123456789abcdef.age"
AUDIT = "audit/r/8250000000000-0123456789abcdef.age"
INDEX = "index/8250000000000-r-00000001"
EVERYTHING = (BUNDLE, RECORD, EFFECT, NOTE, AUDIT, INDEX, "store.json")
CREATORS = ("archiver", "runner", "administrator")
SSE = "s3:x-amz-server-side-encryption"


@pytest.mark.parametrize("role", CREATORS)
def test_bundles_are_created_live_or_final(plan: Plan, role: str) -> None:
    for word in ("live", "success", "failure"):
        assert plan.may_create(role, BUNDLE, word)
    for name, word in ((RECORD, "record"), (EFFECT, "record"), (INDEX, "record")):
        assert plan.may_create(role, name, word)
        assert plan.may_create(role, name, word, tags=("other",)) is (role == "administrator")
    probe = "effects/archiver-doctor/0123456789abcdef0123456789abcdef.age"
    assert plan.may_create(role, probe, "live")
    assert plan.may_create(role, probe.replace("doctor", "init"), "live")
    assert plan.may_create_in_parts(role, BUNDLE)
    assert not plan.may_create(role, BUNDLE, "live", tags=("other",)) or role == "administrator"
    assert plan.may(role, "s3:AbortMultipartUpload", plan.objects + BUNDLE)
    assert plan.may(role, "s3:ListBucketMultipartUploads", plan.bucket)
    if role != "administrator":
        for word in ("intermediate", "hold", "record", "other"):
            assert not plan.may_create(role, BUNDLE, word)
        for name, word in ((RECORD, "live"), (RECORD, "hold"), (NOTE, "hold"), ("store.json", "hold")):
            assert not plan.may_create(role, name, word)
    assert plan.may_create(role, AUDIT, "record") is (role != "archiver")
    if role == "runner":
        assert not plan.may_create(role, AUDIT, "live")
        assert not plan.may_create(role, AUDIT, "record", tags=("other",))


@pytest.mark.parametrize("role", CREATORS)
def test_nothing_is_written_over(plan: Plan, role: str) -> None:
    assert not plan.may_create_in_parts(role, BUNDLE, condition=False)
    for name in (BUNDLE, RECORD):
        assert not plan.may_overwrite(role, name)
        # rekey, which is the administrator's, names the version that it has read
        assert plan.may_overwrite(role, name, {"s3:if-match": '"etag"'}) is (role == "administrator")


def test_others_cannot_put_at_all(plan: Plan) -> None:
    for role, name in itertools.product(("sweeper", "restorer"), EVERYTHING):
        for word in DAYS:
            assert not plan.may_create(role, name, word)
        assert not plan.may_create_in_parts(role, name)
    assert not plan.may_create("runner", "elsewhere/x", "live")


def test_who_reads_what(plan: Plan) -> None:
    reads = {
        "archiver": ("store.json",),
        "runner": EVERYTHING,
        "sweeper": (RECORD, NOTE, "store.json"),
        "restorer": EVERYTHING,
        "administrator": EVERYTHING,
    }
    for role, name in itertools.product(ROLES, EVERYTHING):
        assert plan.may(role, "s3:GetObject", plan.objects + name) is (name in reads[role]), (role, name)
    for role, name in itertools.product(ROLES, EVERYTHING):
        versions = plan.may(role, "s3:GetObjectVersion", plan.objects + name)
        assert versions is (name in reads[role]), (role, name)
        for action in ("s3:GetObjectTagging", "s3:GetObjectVersionTagging"):
            assert plan.may(role, action, plan.objects + name) is (role != "archiver"), (role, name)


def test_all_see_how_the_bucket_is_set_up(plan: Plan) -> None:
    for role, what in itertools.product(ROLES, LOOKS):
        assert plan.may(role, f"s3:Get{what}", plan.bucket), (role, what)


LOOKS = (
    *("BucketLocation", "BucketObjectLockConfiguration", "BucketPolicyStatus", "BucketPublicAccessBlock"),
    *("BucketVersioning", "EncryptionConfiguration", "LifecycleConfiguration"),
)


def test_only_the_administrator_deletes_and_changes_rules(plan: Plan) -> None:
    for role, name in itertools.product(ROLES, EVERYTHING):
        for action in ("s3:DeleteObject", "s3:DeleteObjectVersion"):
            assert plan.may(role, action, plan.objects + name) is (role == "administrator")
        assert not plan.may(role, "s3:DeleteObjectTagging", plan.objects + name)
        assert not plan.may(role, "s3:BypassGovernanceRetention", plan.objects + name)
    for role in ROLES:
        assert plan.may(role, "s3:PutLifecycleConfiguration", plan.bucket) is (role == "administrator")
        assert plan.may(role, "s3:GetLifecycleConfiguration", plan.bucket)
        for action in (
            "PutBucketPolicy",
            "PutBucketVersioning",
            "DeleteBucket",
            "PutEncryptionConfiguration",
        ):
            assert not plan.may(role, f"s3:{action}", plan.bucket)


def test_who_changes_classes(plan: Plan) -> None:
    for action in ("PutObjectTagging", "PutObjectVersionTagging"):
        may = {role: plan.may_retag(role, BUNDLE, "live", "intermediate", action) for role in ROLES}
        assert may == {role: role in ("sweeper", "administrator") for role in ROLES}
        for word in ("live", "success", "failure", "record"):
            for role in ("archiver", "runner"):
                assert not any(plan.may_retag(role, name, word, word, action) for name in EVERYTHING)
        for was in ("live", "failure"):
            assert not plan.may_retag("sweeper", BUNDLE, was, "record", action)
            assert not plan.may_retag("sweeper", BUNDLE, was, "hold", action)
        for to in ("live", "intermediate", "success", "failure", "hold"):
            assert not plan.may_retag("sweeper", BUNDLE, "hold", to, action)
            assert not plan.may_retag("sweeper", RECORD, "record", to, action)
            # by its own policy too, were that of the bucket gone
            alone = {"s3:ExistingObjectTag/" + TAG: "hold", "s3:RequestObjectTag/" + TAG: to}
            assert not plan.may_alone("sweeper", f"s3:{action}", plan.objects + BUNDLE, alone)
        assert denied(plan.of_role("sweeper"), gives_hold(plan, action))
        assert plan.may_retag("administrator", BUNDLE, "success", "hold", action)
        assert plan.may_retag("administrator", RECORD, "hold", "record", action)


def gives_hold(plan: Plan, action: str) -> Request:
    word = {f"s3:RequestObjectTag/{TAG}": "hold", "aws:RequestedRegion": REGION}
    return Request(plan.arns["sweeper"], f"s3:{action}", plan.objects + BUNDLE, word)


def test_a_hold_is_safe_from_everybody_else_in_the_account(plan: Plan) -> None:
    """Whatever another policy gives them: the bucket denies it."""
    everything = [{"Effect": "Allow", "Action": "*", "Resource": "*"}]
    for role in ("archiver", "runner", "sweeper", "restorer"):
        plan_with = Plan.__new__(Plan)
        plan_with.__dict__ |= plan.__dict__
        plan_with.of_role = lambda role: everything  # type: ignore[method-assign]
        for action in ("PutObjectTagging", "PutObjectVersionTagging"):
            assert plan_with.may_retag(role, BUNDLE, "live", "success", action)
            assert not plan_with.may_retag(role, BUNDLE, "hold", "success", action)
            assert not plan_with.may_retag(role, BUNDLE, "live", "hold", action)
        for action in ("DeleteObjectTagging", "DeleteObjectVersionTagging"):
            assert not plan_with.may_retag(role, BUNDLE, "hold", "", action)


@pytest.mark.parametrize("role", ROLES)
def test_without_tls_or_in_another_region_nothing_goes(plan: Plan, role: str) -> None:
    where = plan.objects + "store.json"
    assert plan.may(role, "s3:GetObject", where)
    for one in (
        {"aws:SecureTransport": "false"},
        {"s3:TlsVersion": "1.1"},
        {"aws:RequestedRegion": "us-east-1"},
    ):
        assert not plan.may_in(role, "s3:GetObject", where, one)
        assert not plan.may_in(role, "s3:GetBucketLocation", plan.bucket, one)
    elsewhere = {"aws:RequestedRegion": "us-east-1"}
    assert denied(
        plan.of_role(role), Request(plan.arns[role], "kms:Decrypt", plan.keys["archive"], elsewhere)
    )
    assert plan.may_in(role, "s3:GetObject", where, {"aws:RequestedRegion": "eu-west-1"})


def test_what_is_put_is_encrypted_with_the_storage_key(plan: Plan) -> None:
    key = f"{SSE}-aws-kms-key-id"
    right = {SSE: "aws:kms", key: plan.keys["storage"]}
    for role in CREATORS:
        assert plan.may_create(role, BUNDLE, "live", right)
        for wrong in (
            {SSE: "AES256"},
            {SSE: "aws:kms:dsse", key: plan.keys["storage"]},
            {SSE: "aws:kms"},  # S3 takes the key of the account then, not that of the bucket
            {SSE: "aws:kms", key: plan.keys["archive"]},
            {f"{SSE}-customer-algorithm": "AES256"},
        ):
            assert not plan.may_create(role, BUNDLE, "live", wrong)
    (rule,) = plan.resources["aws_s3_bucket_server_side_encryption_configuration.store"]["rule"]
    (default,) = rule["apply_server_side_encryption_by_default"]
    assert (default["sse_algorithm"], default["kms_master_key_id"]) == ("aws:kms", plan.keys["storage"])
    assert rule["bucket_key_enabled"] is True


def test_who_lists(plan: Plan) -> None:
    for role in ROLES:
        for action in ("s3:ListBucket", "s3:ListBucketVersions"):
            assert plan.may_in(role, action, plan.bucket, {"s3:prefix": "team/archive/records/"})
            assert not plan.may_in(role, action, plan.bucket, {"s3:prefix": "team/other/"})
        # what tells a reader that an object is not there, where it is asked for
        assert plan.may(role, "s3:ListBucket", plan.bucket) is (role != "archiver")


def test_who_seals_and_opens_what(plan: Plan) -> None:
    kinds = ("record", "bundle", "effect", "note", "audit")
    seals = {
        "archiver": kinds[:3],
        "runner": (*kinds[:3], "audit"),
        "sweeper": (),
        "restorer": (),
        "administrator": kinds,
    }
    opens = {
        "archiver": (),
        "runner": kinds[:4],
        "sweeper": ("record", "note"),
        "restorer": kinds[:4],
        "administrator": kinds,
    }
    for role, kind in itertools.product(ROLES, kinds):
        assert plan.may_seal(role, kind, "billing-7") is (kind in seals[role]), (role, kind)
        assert plan.may_open(role, kind, "billing-7") is (kind in opens[role]), (role, kind)
        assert not plan.may_seal(role, kind, "billing-7", "another-application")
        assert not plan.may_open(role, kind, "billing-7", "another-application")


def test_tasks_are_theirs_by_pattern(plan: Plan) -> None:
    seals = {task: [role for role in ROLES if plan.may_seal(role, "bundle", task)] for task in TASKS}
    opens = {task: [role for role in ROLES if plan.may_open(role, "bundle", task)] for task in TASKS}
    assert seals == {
        "billing-7": ["archiver", "runner", "administrator"],
        "support-7": ["archiver", "administrator"],
        "secret-7": ["administrator"],
        "archiver-doctor": ["archiver", "runner", "administrator"],
    }
    assert opens == {
        "billing-7": ["runner", "restorer", "administrator"],
        "support-7": ["administrator"],
        "secret-7": ["administrator"],
        "archiver-doctor": ["runner", "restorer", "administrator"],
    }


def test_a_runner_leaves_audit_of_its_tasks_and_of_several_runs(plan: Plan) -> None:
    assert plan.may_seal("runner", "audit", layout.SEVERAL_RUNS)
    assert plan.may_seal("runner", "audit", "billing-7")
    assert not plan.may_seal("runner", "audit", "support-7")
    assert not plan.may_seal("runner", "record", layout.SEVERAL_RUNS)
    assert plan.may_open("sweeper", "record", "support-7")


def test_the_keys_go_after_the_bucket(plan: Plan) -> None:
    """A bucket that holds runs is not destroyed: then the keys that open them are not either."""
    assert set(plan.after["aws_s3_bucket.store"]) == {"aws_kms_key.storage", "aws_kms_key.archive"}


TASKS = ("billing-7", "support-7", "secret-7", "archiver-doctor")


def test_the_storage_key_is_used_through_s3_alone(plan: Plan) -> None:
    through = {
        "kms:ViaService": f"s3.{REGION}.amazonaws.com",
        "kms:EncryptionContext:aws:s3:arn": plan.bucket,
    }
    for role in ROLES:
        assert plan.may_use(role, "storage", "kms:Decrypt", through)
        assert plan.may_use(role, "storage", "kms:GenerateDataKey", through) is (role in CREATORS)
        for wrong in (
            {"kms:ViaService": "ec2.eu-central-1.amazonaws.com"},
            {"kms:EncryptionContext:aws:s3:arn": "arn:aws:s3:::another"},
        ):
            assert not plan.may_use(role, "storage", "kms:Decrypt", {**through, **wrong})
        assert not plan.may_use(role, "storage", "kms:Decrypt", {})


def test_nobody_else_uses_a_key(plan: Plan) -> None:
    """The account administers its keys; that is no use of them, and no principal is a wildcard."""
    root = f"arn:aws:iam::{plan.arns['archiver'].split(':')[4]}:root"
    for key in plan.keys:
        statements = plan.statements(f"aws_kms_key.{key}")
        assert root in [one["Principal"]["AWS"] for one in statements]  # else nobody could mend the policy
        for one in statements:
            (principal,) = listed(one["Principal"]["AWS"])
            assert one["Effect"] == "Allow"
            assert principal in (root, *plan.arns.values())
            actions = set(listed(one["Action"]))
            assert not [action for action in actions if "*" in action]
            used = actions & {"kms:Decrypt", "kms:Encrypt", "kms:GenerateDataKey", "kms:CreateGrant"}
            assert bool(used) is (principal != root)
            if principal == root:
                assert actions >= {"kms:PutKeyPolicy", "kms:DescribeKey", "kms:CancelKeyDeletion"}
            if principal != root:
                assert actions <= {"kms:Decrypt", "kms:GenerateDataKey"}
                assert one["Condition"]
        assert plan.resources[f"aws_kms_key.{key}"]["enable_key_rotation"] is True
        assert plan.resources[f"aws_kms_key.{key}"]["deletion_window_in_days"] == 30
    for role in ROLES:
        granted = [one for one in plan.of_role(role) if one["Effect"] == "Allow"]
        assert all(
            action.startswith("s3:") and "*" not in action
            for one in granted
            for action in listed(one["Action"])
        )


def test_who_may_become_a_role(plan: Plan) -> None:
    for role in ROLES:
        statements = plan.statements(f'aws_iam_role.this["{role}"]', "assume_role_policy")
        by_name = {one["Sid"]: one for one in statements}
        people = listed(by_name["Principals"]["Principal"]["AWS"])
        assert len(people) == 1
        assert "*" not in people[0]
        wanted = {"Bool": {"aws:MultiFactorAuthPresent": "true"}} if role == "administrator" else None
        assert by_name["Principals"].get("Condition") == wanted
        assert ("Subjects" in by_name) is (role == "runner")
    subjects = next(
        one
        for one in plan.statements('aws_iam_role.this["runner"]', "assume_role_policy")
        if one["Sid"] == "Subjects"
    )
    assert subjects["Action"] == "sts:AssumeRoleWithWebIdentity"
    assert subjects["Condition"] == {
        "StringEquals": {"token.actions.githubusercontent.com:aud": "sts.amazonaws.com"},
        "StringLike": {
            "token.actions.githubusercontent.com:sub": ["repo:example/agents:ref:refs/heads/main"]
        },
    }


def test_every_rule_names_one_class_and_no_rule_the_hold(plan: Plan) -> None:
    rules = {one["id"]: one for one in plan.resources["aws_s3_bucket_lifecycle_configuration.store"]["rule"]}
    longer = {"success": 60, "record": 730}  # as the example says
    expiring = {word for word, days in DAYS.items() if days is not None}
    assert set(rules) == {f"archiver-{word}" for word in (*expiring, "uploads", "markers")}
    for word in expiring:
        rule: dict[str, Any] = rules[f"archiver-{word}"]
        (where,) = rule["filter"]
        (both,) = where["and"]
        assert (both["prefix"], both["tags"]) == ("team/archive/", {TAG: word})
        assert [one["days"] for one in rule["expiration"]] == [longer.get(word, DAYS[word])]
        old = [one["noncurrent_days"] for one in rule["noncurrent_version_expiration"]]
        assert old == [NONCURRENT_DAYS[word]]
        assert rule["status"] == "Enabled"
    for word in ("uploads", "markers"):
        rule = rules[f"archiver-{word}"]
        assert rule["filter"][0]["prefix"] == "team/archive/"
        assert not rule["noncurrent_version_expiration"]
        assert not [one for one in rule["expiration"] if one.get("days") or one.get("date")]
    (abort,) = rules["archiver-uploads"]["abort_incomplete_multipart_upload"]
    assert abort["days_after_initiation"] == ABORT_DAYS
    assert rules["archiver-markers"]["expiration"][0]["expired_object_delete_marker"] is True


def test_the_bucket(plan: Plan) -> None:
    bucket = plan.resources["aws_s3_bucket.store"]
    assert bucket["object_lock_enabled"] is True
    (versions,) = plan.resources["aws_s3_bucket_versioning.store"]["versioning_configuration"]
    assert versions["status"] == "Enabled"
    (owner,) = plan.resources["aws_s3_bucket_ownership_controls.store"]["rule"]
    assert owner["object_ownership"] == "BucketOwnerEnforced"
    block = plan.resources["aws_s3_bucket_public_access_block.store"]
    words = ("block_public_acls", "block_public_policy", "ignore_public_acls", "restrict_public_buckets")
    assert all(block[word] is True for word in words)
    (lock,) = plan.resources["aws_s3_bucket_object_lock_configuration.store[0]"]["rule"]
    assert [(one["mode"], one["days"]) for one in lock["default_retention"]] == [("GOVERNANCE", 7)]
    assert all(one["Effect"] == "Deny" for one in plan.statements("aws_s3_bucket_policy.store"))
