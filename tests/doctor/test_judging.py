"""What an answer means, for answers that no server here gives."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from archiver.doctor import bucket, lifecycle, rights, server, versions
from archiver.doctor.check import Check, exit_code, failed, fencing, ok, unknown, warning
from archiver.errors import (
    ConfigError,
    DamagedError,
    KeyUnavailableError,
    StoreDeniedError,
    StoreError,
    StoreUnreachableError,
)
from archiver.lifecycle.rules import Wanted, rules
from archiver.retention import DAYS
from archiver.setup.fencing import Fencing
from archiver.store.probe.answer import Answer
from archiver.store.probe.bucket import Bucket
from archiver.store.probe.server import Reach


def done(**value: Any) -> Answer:
    return Answer(value=value, status=200)


def refused(status: int, code: str) -> Answer:
    return Answer(error=StoreError(code), code=code, status=status)


SILENCE = Answer(error=StoreUnreachableError("nobody answers"))
DENIED = refused(403, "AccessDenied")
UNSUPPORTED = refused(501, "NotImplemented")


def test_the_worst_decides() -> None:
    fine = [ok("a", "x"), warning("b", "x"), unknown("c", "x")]
    assert exit_code(fine) == 0
    denied, no_key, damaged = StoreDeniedError("x"), KeyUnavailableError("x"), DamagedError("x")
    assert exit_code([*fine, failed("d", no_key)]) == 6
    assert exit_code([failed("d", no_key), failed("e", denied)]) == 8
    assert exit_code([failed("d", no_key), failed("e", denied), failed("f", damaged)]) == 4


@pytest.mark.parametrize(
    ("in_turn", "race", "wanted", "verdict", "said"),
    [
        (True, True, True, "ok", "enforced"),
        (True, True, False, "warning", "enforced"),
        (True, False, True, "failure", "not enforced"),
        (False, False, True, "failure", "not enforced"),
        (False, None, False, "warning", "not enforced"),
        (True, None, True, "unknown", "unknown"),
        (True, None, False, "unknown", "unknown"),
    ],
)
def test_fencing_is_never_promised_for_what_was_not_seen(
    in_turn: bool, race: bool | None, wanted: bool, verdict: str, said: str
) -> None:
    found = server.fencing(Fencing(in_turn, race), wanted=wanted)
    assert (found.verdict, fencing([found])) == (verdict, said)


@pytest.mark.parametrize(
    ("answer", "sent", "verdict"),
    [
        (refused(400, "BadDigest"), True, "ok"),
        (refused(400, "XAmzContentChecksumMismatch"), False, "ok"),
        (done(), True, "failure"),
        (done(), False, "warning"),
        (UNSUPPORTED, True, "failure"),
        (UNSUPPORTED, False, "unknown"),
        (DENIED, True, "unknown"),
        (SILENCE, True, "unknown"),
        (refused(503, "SlowDown"), True, "unknown"),
    ],
)
def test_checksums(answer: Answer, sent: bool, verdict: str) -> None:
    assert server.checksum("SHA-256", answer, sent=sent).verdict == verdict


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        (done(), "ok"),
        (refused(412, "PreconditionFailed"), "ok"),
        (refused(409, "ConditionalRequestConflict"), "ok"),
        (refused(400, "InvalidRequest"), "failure"),
        (UNSUPPORTED, "failure"),
        (SILENCE, "failure"),
        (DENIED, "unknown"),
    ],
)
def test_multipart(answer: Answer, verdict: str) -> None:
    assert server.multipart(answer).verdict == verdict


@pytest.mark.parametrize(
    ("listing", "reading", "verdict"),
    [
        (DENIED, DENIED, "ok"),
        (DENIED, None, "ok"),
        (DENIED, done(), "failure"),
        (done(), None, "failure"),
        (SILENCE, DENIED, "unknown"),
        (DENIED, SILENCE, "unknown"),
    ],
)
def test_strangers(listing: Answer, reading: Answer | None, verdict: str) -> None:
    assert server.strangers(listing, reading).verdict == verdict


@pytest.mark.parametrize(
    ("location", "configured", "verdict"),
    [
        (done(LocationConstraint=None), "us-east-1", "ok"),
        (done(LocationConstraint="EU"), "eu-west-1", "ok"),
        (done(LocationConstraint="eu-west-1"), "us-east-1", "warning"),
        (done(LocationConstraint="eu-west-1"), None, "ok"),
        (DENIED, "us-east-1", "unknown"),
    ],
)
def test_regions(location: Answer, configured: str | None, verdict: str) -> None:
    assert server.region(location, done(), configured).verdict == verdict


@pytest.mark.parametrize(
    ("there", "keys", "verdict", "text"),
    [
        ("eu-west-1", {"a": "eu-west-1"}, "ok", "lie in eu-west-1"),
        ("eu-west-1", {"a": "eu-west-1", "b": "us-east-1"}, "ok", "others in us-east-1"),
        ("eu-west-1", {"b": "us-east-1"}, "warning", "policies have to allow us-east-1"),
        (None, {"b": "us-east-1"}, "unknown", "us-east-1"),
    ],
)
def test_regions_of_keys(there: str | None, keys: dict[str, str], verdict: str, text: str) -> None:
    found = server.key_regions(there, keys)
    assert found is not None
    assert found.verdict == verdict
    assert text in found.text
    assert server.key_regions(there, {}) is None


def test_the_first_answer() -> None:
    def reached(first: Answer, latency: float = 0.01) -> Check:
        return server.reached(Reach(first, latency, 0.0, None), "s3://b/p")

    assert reached(done()).verdict == "ok"
    assert reached(done(), latency=3).verdict == "warning"
    assert reached(DENIED).verdict == "ok"  # it answers; what may not be done is said where it matters
    for answer in (SILENCE, refused(404, "NoSuchBucket"), refused(403, "InvalidAccessKeyId")):
        assert reached(answer).verdict == "failure"


def test_credentials() -> None:
    arn = "arn:aws:iam::111122223333"
    assert server.credentials("env", done(Arn=f"{arn}:user/x"), aws=True).verdict == "ok"
    assert server.credentials("env", done(Arn=f"{arn}:root"), aws=True).verdict == "warning"
    assert server.credentials("env", DENIED, aws=True).verdict == "unknown"
    assert server.credentials(None, UNSUPPORTED, aws=False).verdict == "unknown"


def test_rights() -> None:
    asked: dict[str, Answer | None] = {
        "s3:ListBucket": done(),
        "s3:GetObject": DENIED,
        "s3:PutObject": done(),
        "s3:PutObjectTagging": None,
    }
    found = rights.needed("writer", asked)
    assert (found.verdict, found.exit_code) == ("failure", 8)
    assert "a writer needs s3:GetObject, and" in found.text
    assert rights.needed("create-only writer", asked).verdict == "unknown"
    assert rights.needed("create-only writer", {**asked, "s3:PutObjectTagging": done()}).verdict == "ok"


def test_rights_that_are_too_many() -> None:
    asked = {
        "s3:DeleteObject": done(),
        "s3:DeleteObjectVersion": DENIED,
        "s3:PutLifecycleConfiguration": refused(400, "MalformedXML"),
        "s3:PutBucketPolicy": refused(500, "InternalError"),
    }
    by = {check.verdict: check.text for check in rights.excess("writer", asked)}
    assert "s3:DeleteObject)" in by["warning"]
    assert "s3:PutLifecycleConfiguration" in by["warning"]
    assert by["ok"] == "not among them: s3:DeleteObjectVersion"
    assert "s3:PutBucketPolicy" in by["unknown"]
    assert "Bypass" not in "".join(by.values())  # it means nothing where nothing can be locked


@pytest.mark.parametrize(
    ("signs", "has_file", "reads", "opens", "role"),
    [
        (False, True, True, None, "reader"),
        (False, False, True, True, "reader"),
        (True, True, True, None, "writer"),
        (True, True, False, None, "writer"),
        (True, False, True, None, "create-only writer"),
        (True, False, True, True, "writer"),
        (True, False, True, False, "create-only writer"),
        (True, False, False, True, "create-only writer"),
        (True, False, False, False, "create-only writer"),
    ],
)
def test_roles(signs: bool, has_file: bool, reads: bool, opens: bool | None, role: str) -> None:
    assert rights.role_of(signs=signs, has_file=has_file, reads=reads, opens=opens) == role


@pytest.mark.parametrize(
    ("keys", "archives", "role"),
    [
        ({"signs": False, "has_file": False, "reads": True, "opens": None}, False, "sweeper"),
        ({"signs": False, "has_file": True, "reads": True, "opens": None}, True, "sweeper"),
        ({"signs": True, "has_file": False, "reads": False, "opens": None}, False, "sweeper"),
        ({"signs": True, "has_file": False, "reads": False, "opens": False}, True, "sweeper that archives"),
        ({"signs": True, "has_file": False, "reads": True, "opens": False}, True, "sweeper that archives"),
        # Who reads and opens all that it saves is a writer, and its own sweeper.
        ({"signs": True, "has_file": False, "reads": True, "opens": True}, True, "writer"),
        ({"signs": True, "has_file": True, "reads": False, "opens": None}, False, "writer"),
    ],
)
def test_roles_of_who_changes_classes(keys: dict[str, Any], archives: bool, role: str) -> None:
    assert rights.role_of(**keys, sweeps=True, archives=archives) == role
    assert not rights.role_of(**keys, archives=archives).startswith("sweeper")


def test_what_a_sweeper_needs() -> None:
    asked: dict[str, Answer | None] = {
        "s3:ListBucket": done(),
        rights.READS: done(),
        rights.RETAGS: refused(404, "NoSuchKey"),  # of a bundle that is not there: it may
        "s3:PutObject": DENIED,
        "s3:PutObjectTagging": None,
    }
    assert rights.needed("sweeper", asked).verdict == "ok"
    for right in ("s3:ListBucket", rights.READS, rights.RETAGS):
        found = rights.needed("sweeper", {**asked, right: DENIED})
        assert found.verdict == "failure"
        assert f"a sweeper needs {right}, and" in found.text
    archiving = rights.needed("sweeper that archives", asked)
    assert archiving.verdict == "failure"
    assert "s3:PutObject, and" in archiving.text
    putting = {**asked, "s3:PutObject": done(), "s3:PutObjectTagging": done()}
    assert rights.needed("sweeper that archives", putting).verdict == "ok"


SWEEPS = (rights.READS, rights.OPENS, rights.RETAGS)
NOBODY = (
    *("s3:DeleteObject", "s3:DeleteObjectVersion", "s3:BypassGovernanceRetention"),
    *("s3:PutLifecycleConfiguration", "s3:PutBucketPolicy"),
)


@pytest.mark.parametrize(
    ("role", "right", "too_many"),
    [
        ("reader", "s3:PutObject", True),
        ("writer", "s3:PutObject", False),
        ("create-only writer", "s3:PutObject", False),
        ("create-only writer", rights.READS, True),
        ("writer", rights.READS, False),
        ("reader", rights.READS, False),
        ("create-only writer", rights.OPENS, True),
        ("writer", rights.OPENS, False),
        ("reader", rights.OPENS, False),
        ("sweeper", "s3:PutObject", True),
        ("sweeper that archives", "s3:PutObject", False),
        *((role, right, False) for role in rights.SWEEPERS for right in SWEEPS),
        *((role, right, True) for role in rights.SWEEPERS for right in NOBODY),
        *(
            (role, right, True)
            for role in ("reader", "writer", "create-only writer")
            for right in (rights.RETAGS, "s3:DeleteObject", "s3:PutLifecycleConfiguration")
        ),
    ],
)
def test_what_is_too_much_for_a_role(role: rights.Role, right: str, too_many: bool) -> None:
    found = rights.excess(role, {right: Answer(status=200)})
    assert [check.verdict for check in found] == (["warning"] if too_many else [])
    if too_many:
        assert f"those of a {role}, can" in found[0].text
        assert right in found[0].text
        assert "terraform/" in (found[0].remedy or "")
    withheld = rights.excess(role, {right: DENIED})
    assert [check.verdict for check in withheld] == (["ok"] if too_many else [])


@pytest.mark.parametrize(
    ("versioning", "listed", "read", "verdict", "text"),
    [
        (done(), DENIED, None, "ok", "keeps none"),
        (done(Status="Suspended"), DENIED, None, "warning", "s3:ListBucketVersions"),
        (DENIED, DENIED, None, "warning", "s3:ListBucketVersions"),
        (DENIED, UNSUPPORTED, None, "unknown", "no list of versions"),
        (done(Status="Enabled"), SILENCE, None, "unknown", "no list of versions"),
        (done(Status="Enabled"), done(), None, "unknown", "none to be read"),
        (done(Status="Enabled"), done(), DENIED, "warning", "s3:GetObjectVersion"),
        (done(Status="Enabled"), done(), refused(400, "Strange"), "unknown", "Strange"),
        (DENIED, done(), done(), "ok", "listed and read"),
    ],
)
def test_versions_that_cannot_be_seen(
    versioning: Answer, listed: Answer, read: Answer | None, verdict: str, text: str
) -> None:
    found = Bucket(done(), versioning, DENIED, DENIED, DENIED, DENIED, DENIED)
    check = versions.reading(found, listed, read)
    assert check.verdict == verdict
    assert text in check.text


def test_the_set_up_of_a_bucket() -> None:
    assert bucket.versioning(done(Status="Enabled")).verdict == "ok"
    assert bucket.versioning(done(Status="Suspended")).text.startswith("suspended")
    assert bucket.versioning(SILENCE).verdict == "unknown"
    public = done(PolicyStatus={"IsPublic": True})
    found = bucket.public_access(done(), public)
    assert (found.verdict, found.exit_code) == ("failure", 3)
    absent = refused(404, "NoSuchPublicAccessBlockConfiguration")
    assert bucket.public_access(absent, DENIED).verdict == "warning"
    assert bucket.public_access(UNSUPPORTED, UNSUPPORTED).verdict == "unknown"
    wanted = Wanted("p/", versioned=False, tag="t", days=DAYS)
    (nothing, *_) = bucket.lifecycle_of(done(Rules=[], Unknown=()), wanted)
    assert nothing.verdict == "warning"
    (denied,) = bucket.lifecycle_of(DENIED, wanted)
    assert denied.verdict == "unknown"


def sse(word: str | None, key: str | None = None, *, bucket_key: bool = True) -> Answer:
    default = {"SSEAlgorithm": word, **({"KMSMasterKeyID": key} if key else {})}
    rule = {"ApplyServerSideEncryptionByDefault": default, "BucketKeyEnabled": bucket_key}
    return done(ServerSideEncryptionConfiguration={"Rules": [rule]})


@pytest.mark.parametrize(
    ("answer", "verdict", "text"),
    [
        (sse("aws:kms", "arn:x"), "ok", "aws:kms with arn:x, on top of the own sealing; readers"),
        (sse("aws:kms"), "ok", "aws:kms, on top"),
        (sse("aws:kms", bucket_key=False), "warning", "without a bucket key"),
        (sse("aws:kms:dsse", bucket_key=False), "ok", "aws:kms:dsse"),
        (sse("AES256"), "warning", "AES256 with a key of the server's"),
        (
            refused(404, "ServerSideEncryptionConfigurationNotFoundError"),
            "warning",
            "none of the server's own",
        ),
        (done(ServerSideEncryptionConfiguration={}), "warning", "none of the server's own"),
        (DENIED, "unknown", "s3:GetEncryptionConfiguration"),
        (UNSUPPORTED, "unknown", "nothing of the kind"),
    ],
)
def test_encryption(answer: Answer, verdict: str, text: str) -> None:
    found = bucket.encryption(answer)
    assert found.verdict == verdict
    assert text in found.text
    assert (found.remedy is not None) == (verdict == "warning")


def test_rules_that_drifted() -> None:
    wanted = Wanted("p/", versioned=True, tag="t", days=DAYS)
    own = rules(wanted)
    assert [check.verdict for check in lifecycle.checks(own, wanted)] == ["ok"]
    longer = [
        {**rule, **({"Expiration": {"Days": 999}} if rule["ID"] == "archiver-live" else {})} for rule in own
    ]
    (found,) = lifecycle.checks(longer, wanted)
    assert found.verdict == "warning"
    assert "archiver-live has days 999, not 180" in found.text
    shorter = [
        {**rule, **({"Expiration": {"Days": 9}} if rule["ID"] == "archiver-live" else {})} for rule in own
    ]
    by = {check.verdict: check for check in lifecycle.checks(shorter, wanted)}
    assert by["failure"].exit_code == 3
    assert "promised for 180 days" in by["failure"].text
    off = [{**rule, **({"Status": "Disabled"} if rule["ID"] == "archiver-live" else {})} for rule in own]
    texts = " ".join(check.text for check in lifecycle.checks(off, wanted))
    assert "live never expire" in texts
    assert "archiver-live is disabled" in texts
    (strange,) = lifecycle.checks(own, wanted, ("AllVersionsExpiration",))
    assert strange.verdict == "warning"
    assert "AllVersionsExpiration" in strange.text


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("versioning", [DENIED, SILENCE, refused(500, "InternalError")])
def test_rules_of_a_bucket_that_may_keep_versions(versioning: Answer, kept: bool) -> None:
    """No rule is said to have drifted that only looks so because nobody knows whether there are versions."""
    wanted = Wanted("p/", versioned=False, tag="t", days=DAYS)

    def of(own: list[dict[str, Any]], versioning: Answer = versioning) -> list[Check]:
        found = Bucket(DENIED, versioning, DENIED, DENIED, DENIED, DENIED, done(Rules=own))
        return [check for check in bucket.judge(found, wanted) if check.name == "lifecycle"]

    own = rules(replace(wanted, versioned=kept))
    (check,) = of(own)
    assert check.verdict == "unknown"
    assert "s3:GetBucketVersioning" in (check.remedy or "")
    # What is wrong either way is still said.
    short = [{**one, "Expiration": {"Days": 9}} if one["ID"] == "archiver-live" else one for one in own]
    assert [check.verdict for check in of(short)] == ["failure", "unknown"]
    # A server that has no versions has none to be unsure of.
    assert [one.verdict for one in of(rules(wanted), UNSUPPORTED)] == ["ok"]


def test_config_errors_keep_their_code() -> None:
    assert failed("store", ConfigError("x")).exit_code == 2
