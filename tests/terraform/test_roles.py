"""What the roles may do under their own credentials, on an emulator that enforces policies.

ministack 1.5.33 knows no `s3:if-none-match`, no `s3:RequestObjectTag`, no `s3:ExistingObjectTag` of what is
to be tagged, and no context of KMS. So that a name is new, a hold is safe and a task is one's own is asserted
on the plan (`test_plan.py`). For tags that come with a put it asks for no right.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

from terraform.applied import USERS, Applied
from terraform.test_plan import AUDIT, BUNDLE, EFFECT, NOTE, RECORD

ROLES = dict(zip(("archiver", "runner", "sweeper", "restorer", "administrator"), USERS, strict=True))
CONTEXT = {"application": "checkpoint-archiver", "run": "r", "task": "billing-7", "object": "bundle"}
Client = Callable[[str], Any]


class Objects:
    """Objects of the store, put by the root under a name of this test, and calls on them."""

    def __init__(self, applied: Applied) -> None:
        self.bucket = applied.bucket
        self._root = applied.client("s3")

    def put(self, name: str, word: str, client: Any = None) -> str:
        """Gives the version."""
        put = (client or self._root).put_object(
            Bucket=self.bucket,
            Key=f"team/archive/{name}",
            Body=b"x",
            IfNoneMatch="*",
            Tagging=f"archiver-class={word}",
        )
        return str(put["VersionId"])

    def tag(self, name: str) -> str:
        found = self._root.get_object_tagging(Bucket=self.bucket, Key=f"team/archive/{name}")["TagSet"]
        return {one["Key"]: one["Value"] for one in found}["archiver-class"]

    def calls(self, client: Any, name: str, version: str) -> dict[str, Callable[[], Any]]:
        """Everything that may not be everybody's."""
        at = {"Bucket": self.bucket, "Key": f"team/archive/{name}"}
        tags = {"TagSet": [{"Key": "archiver-class", "Value": "success"}]}
        return {
            "get": lambda: client.get_object(**at),
            "head": lambda: client.head_object(**at),
            "get version": lambda: client.get_object(**at, VersionId=version),
            "retag": lambda: client.put_object_tagging(**at, Tagging=tags),
            "retag version": lambda: client.put_object_tagging(**at, VersionId=version, Tagging=tags),
            "overwrite": lambda: client.put_object(**at, Body=b"y"),
            "delete": lambda: client.delete_object(**at),
            "delete version": lambda: client.delete_object(**at, VersionId=version),
        }


@pytest.fixture
def objects(applied: Applied) -> Objects:
    return Objects(applied)


def refused(call: Callable[[], Any]) -> bool:
    """Whether a call is not allowed; any other error is one."""
    try:
        call()
    except ClientError as error:
        code = error.response["Error"]["Code"]
        assert code in {"AccessDenied", "AccessDeniedException", "403"}, code
        return True
    return False


def of_run(name: str, run: str) -> str:
    return name.replace("/r/", f"/{run}/")


def allowed_calls(objects: Objects, client: Any, name: str, word: str) -> set[str]:
    """Of all calls on a new object of that class, those that the client may make; deletion comes last."""
    version = objects.put(name, word)
    return {what for what, call in objects.calls(client, name, version).items() if not refused(call)}


READS = {"get", "head", "get version"}


def test_the_archiver_creates_and_nothing_else(objects: Objects, s3: Client) -> None:
    client = s3("archiver")
    for number, (name, word) in enumerate(((BUNDLE, "live"), (RECORD, "record"), (EFFECT, "record"))):
        objects.put(of_run(name, f"created-{number}"), word, client)
        assert objects.tag(of_run(name, f"created-{number}")) == word
    for name, word in ((BUNDLE, "live"), (RECORD, "record"), (NOTE, "hold")):
        able = allowed_calls(objects, client, of_run(name, "archiver"), word)
        # That a name is new, the bucket demands by a condition that this emulator does not know.
        assert able - {"overwrite"} == set(), name
    for name in (NOTE, AUDIT, "elsewhere/r/x"):
        assert refused(lambda name=name: objects.put(of_run(name, "no"), "record", client))


def test_the_restorer_reads_and_writes_nothing(objects: Objects, s3: Client) -> None:
    client = s3("restorer")
    for name, word in ((BUNDLE, "live"), (RECORD, "record"), (EFFECT, "record"), (NOTE, "hold")):
        assert allowed_calls(objects, client, of_run(name, "restorer"), word) == READS
        assert refused(lambda name=name: objects.put(of_run(name, "no"), "record", client))


def test_the_runner_reads_back_what_it_creates(objects: Objects, s3: Client) -> None:
    client = s3("runner")
    objects.put(of_run(BUNDLE, "made-by-runner"), "live", client)
    objects.put(of_run(AUDIT, "made-by-runner"), "record", client)
    for name, word in ((BUNDLE, "live"), (RECORD, "record")):
        able = allowed_calls(objects, client, of_run(name, "runner"), word)
        assert able - {"overwrite"} == READS
    assert allowed_calls(objects, client, of_run(NOTE, "runner"), "hold") == READS


def test_the_sweeper_retags_bundles_and_nothing_else(objects: Objects, s3: Client) -> None:
    client = s3("sweeper")
    able = allowed_calls(objects, client, of_run(BUNDLE, "sweeper"), "live")
    assert able == {"retag", "retag version"}
    assert objects.tag(of_run(BUNDLE, "sweeper")) == "success"
    for name, word in ((RECORD, "record"), (NOTE, "hold")):
        assert allowed_calls(objects, client, of_run(name, "sweeper"), word) == READS
        assert objects.tag(of_run(name, "sweeper")) == word
    assert allowed_calls(objects, client, of_run(EFFECT, "sweeper"), "record") == set()
    assert refused(lambda: objects.put(of_run(BUNDLE, "no"), "live", client))


def test_the_administrator_does_all_of_it(objects: Objects, s3: Client) -> None:
    client = s3("administrator")
    for name, word in ((BUNDLE, "live"), (RECORD, "record"), (NOTE, "hold")):
        assert len(allowed_calls(objects, client, of_run(name, "administrator"), word)) == 8
    rules = client.get_bucket_lifecycle_configuration(Bucket=objects.bucket)["Rules"]
    client.put_bucket_lifecycle_configuration(Bucket=objects.bucket, LifecycleConfiguration={"Rules": rules})
    assert refused(lambda: client.delete_bucket_policy(Bucket=objects.bucket))


def test_who_lists_what(objects: Objects, s3: Client) -> None:
    for role in ROLES:
        client, where = s3(role), {"Bucket": objects.bucket}
        client.list_objects_v2(**where, Prefix="team/archive/records/")
        client.list_object_versions(**where, Prefix="team/archive/records/")
        assert refused(lambda client=client, where=where: client.list_objects_v2(**where, Prefix="team/o"))
        missing = {**where, "Key": "team/archive/records/none/00000001.age"}
        if role in ("restorer", "runner", "sweeper"):
            with pytest.raises(client.exceptions.NoSuchKey):
                client.get_object(**missing)


def test_who_seals_and_who_opens(applied: Applied, kms: Client) -> None:
    key = {"KeyId": applied.outputs["archive_key_arn"], "EncryptionContext": CONTEXT}
    sealed = kms("administrator").generate_data_key(**key, KeySpec="AES_256")["CiphertextBlob"]
    may = {
        role: (
            not refused(lambda role=role: kms(role).generate_data_key(**key, KeySpec="AES_256")),
            not refused(lambda role=role: kms(role).decrypt(**key, CiphertextBlob=sealed)),
        )
        for role in ROLES
    }
    assert may == {
        "archiver": (True, False),
        "runner": (True, True),
        "sweeper": (
            False,
            True,
        ),  # records and notes alone: by their context, which this emulator does not judge
        "restorer": (False, True),
        "administrator": (True, True),
    }
    for role in ROLES:
        storage = {**key, "KeyId": applied.outputs["storage_key_arn"]}
        assert refused(
            lambda role=role, storage=storage: kms(role).generate_data_key(**storage, KeySpec="AES_256")
        )
        assert refused(lambda role=role: kms(role).schedule_key_deletion(KeyId=key["KeyId"]))
        assert refused(
            lambda role=role: kms(role).create_grant(
                KeyId=key["KeyId"], GranteePrincipal="x", Operations=["Decrypt"]
            )
        )


def test_without_a_role_nobody_does_anything(applied: Applied, objects: Objects) -> None:
    for user in USERS:
        client = applied.client("s3", applied.user(user))
        assert allowed_calls(objects, client, of_run(BUNDLE, f"user-{user}"), "live") == set()
        key = {"KeyId": applied.outputs["archive_key_arn"], "EncryptionContext": CONTEXT}
        assert refused(
            lambda user=user, key=key: applied.client("kms", applied.user(user)).generate_data_key(
                **key, KeySpec="AES_256"
            )
        )


def test_nobody_becomes_another_role(applied: Applied) -> None:
    for role, user in ROLES.items():
        for other in set(USERS) - {user}:
            assert refused(lambda role=role, other=other: applied.session(role, other))
