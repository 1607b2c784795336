"""What these credentials may do that a writer should not, asked without changing anything but probes.

Deleting is tried on probes. The set-up of the bucket is "changed" to something that is no document at all: a
server looks first whether the caller may, and then refuses what it cannot read. It is asked of those servers
only that are known to read the document before they keep it.
"""

from __future__ import annotations

from typing import Any, Final

from archiver.aws import door
from archiver.store.probe.answer import Answer, ask, ask_of
from archiver.store.s3.client import CLASS_TAG, S3

READ_BEFORE_KEEPING: Final = ("AmazonS3", "SeaweedFS", "MinIO")
"""How the servers call themselves that refuse a lifecycle or a policy which is no document."""

_NO_DOCUMENT = "this is no document, so that nothing can come of it"


def may_be_asked(server: str | None) -> bool:
    """Whether asking the server about its set-up is without danger."""
    return (server or "").startswith(READ_BEFORE_KEEPING)


def put_lifecycle(s3: S3) -> Answer:
    """Put a lifecycle that is none; a refusal of the document says that a real one would have been taken."""

    def client() -> Any:
        made = door.client("s3", s3.options.aws)
        made.meta.events.register("before-call.s3.PutBucketLifecycleConfiguration", _without_document)
        return made

    operation = "put_bucket_lifecycle_configuration"
    return ask_of(
        client,
        operation,
        s3.request(operation, None),
        Bucket=s3.address.bucket,
        LifecycleConfiguration={"Rules": []},
    )


def put_policy(s3: S3) -> Answer:
    """The same for the policy of the bucket."""
    return ask(s3, "put_bucket_policy", Policy=_NO_DOCUMENT)


def put(s3: S3, name: str, *, tagged: bool = True, condition: bool = True) -> Answer:
    """Put a probe, as saves do: with its class, and on condition that the name is free.

    A policy may demand the condition; some servers refuse every request that has one.
    """
    more = {
        **({"Tagging": f"{CLASS_TAG}=live"} if tagged else {}),
        **({"IfNoneMatch": "*"} if condition else {}),
    }
    return ask(s3, "put_object", name, Body=b"probe", **more)


def retag(s3: S3, name: str) -> Answer:
    """Put the class that a probe has once more, as it is: who may do that could put another."""
    tags = {"TagSet": [{"Key": CLASS_TAG, "Value": "live"}]}
    return ask(s3, "put_object_tagging", name, Tagging=tags)


def delete(s3: S3, name: str) -> Answer:
    """Delete a probe; in a bucket with versions this puts a marker in front of it."""
    return ask(s3, "delete_object", name)


def delete_version(s3: S3, name: str, version: str, *, bypass: bool = False) -> Answer:
    """Delete a version of a probe for good, `bypass` past its retention in governance mode."""
    more = {"BypassGovernanceRetention": True} if bypass else {}
    return ask(s3, "delete_object", name, VersionId=version, **more)


def _without_document(params: dict[str, Any], **_: Any) -> None:
    params["body"] = _NO_DOCUMENT.encode()


def see_versions(s3: S3, name: str) -> tuple[Answer, Answer | None]:
    """List the versions of an object, and read the first byte of one; None where there is none to read."""
    key = s3.address.key(name)
    listed = ask(s3, "list_object_versions", Prefix=key, MaxKeys=10)
    found = (listed.value or {}).get("Versions") or ()
    version = next((one.get("VersionId") for one in found if one.get("Key") == key), None)
    if version is None:
        return listed, None
    read = ask(s3, "get_object", name, VersionId=str(version), Range="bytes=0-0")
    if read.value is not None:
        read.value["Body"].close()
    return listed, read
