"""A plan's JSON, read as AWS would: who may do what."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from terraform.policies import Request, Statement, allowed, denied

ROLES = ("archiver", "runner", "sweeper", "restorer", "administrator")
REGION = "eu-central-1"
TAG = "archiver-class"
_CALLER = {"aws:SecureTransport": "true", "s3:TlsVersion": "1.3", "aws:RequestedRegion": REGION}
_CREATION = "s3:ObjectCreationOperation"
_NEW = {_CREATION: "true", "s3:if-none-match": "*"}


class Plan:
    """The resources of the module as they are planned."""

    def __init__(self, document: dict[str, Any], outputs: Mapping[str, Any]) -> None:
        modules = document["planned_values"]["root_module"]["child_modules"]
        (module,) = [one for one in modules if one["address"] == "module.store"]
        self.resources = {
            one["address"].removeprefix("module.store."): one["values"] for one in module["resources"]
        }
        made = document["configuration"]["root_module"]["module_calls"]["store"]["module"]["resources"]
        self.after = {one["address"]: one.get("depends_on", []) for one in made}
        self.arns = {role: str(outputs["role_arns"][role]) for role in ROLES}
        self.bucket = f"arn:aws:s3:::{self.resources['aws_s3_bucket.store']['bucket']}"
        self.objects = f"{self.bucket}/team/archive/"
        self.keys = {"archive": outputs["archive_key_arn"], "storage": outputs["storage_key_arn"]}

    def statements(self, address: str, attribute: str = "policy") -> list[Statement]:
        """Those of a policy."""
        found: list[Statement] = json.loads(self.resources[address][attribute])["Statement"]
        return found

    def of_role(self, role: str) -> list[Statement]:
        return self.statements(f'aws_iam_role_policy.this["{role}"]')

    def may(self, role: str, action: str, resource: str) -> bool:
        """Whether the role may do that in S3."""
        return self.may_in(role, action, resource, {})

    def may_in(self, role: str, action: str, resource: str, context: Mapping[str, str | list[str]]) -> bool:
        """The same with these condition keys."""
        request = Request(
            self.arns[role], action, resource, {**_CALLER, "aws:PrincipalArn": self.arns[role], **context}
        )
        return allowed(self.of_role(role), request) and not denied(
            self.statements("aws_s3_bucket_policy.store"), request
        )

    def may_alone(self, role: str, action: str, resource: str, context: Mapping[str, str]) -> bool:
        """Whether its own policy would let it, whatever that of the bucket says."""
        return allowed(self.of_role(role), Request(self.arns[role], action, resource, {**_CALLER, **context}))

    def may_create(
        self,
        role: str,
        name: str,
        word: str,
        more: Mapping[str, str] | None = None,
        *,
        tags: tuple[str, ...] = (),
    ) -> bool:
        """Whether the role may create the object with that class, and these tags besides, in one request."""
        where = self.objects + name
        return self.may_in(role, "s3:PutObject", where, {**_NEW, **(more or {})}) and self.may_in(
            role,
            "s3:PutObjectTagging",
            where,
            {f"s3:RequestObjectTag/{TAG}": word, "s3:RequestObjectTagKeys": [TAG, *tags]},
        )

    def may_create_in_parts(self, role: str, name: str, *, condition: bool = True) -> bool:
        """Whether it may begin an upload and send parts, without a condition, and complete it with one."""
        where, end = self.objects + name, _NEW if condition else {_CREATION: "true"}
        return all(
            self.may_in(role, "s3:PutObject", where, one)
            for one in ({_CREATION: "false"}, {_CREATION: "false"}, end)
        )

    def may_overwrite(self, role: str, name: str, more: Mapping[str, str] | None = None) -> bool:
        """Whether it may put over what is there; `more` has the condition that it does so with."""
        return self.may_in(role, "s3:PutObject", self.objects + name, {_CREATION: "true", **(more or {})})

    def may_retag(self, role: str, name: str, was: str, word: str, action: str = "PutObjectTagging") -> bool:
        """Whether it may change the class of an object."""
        tags = {f"s3:ExistingObjectTag/{TAG}": was, f"s3:RequestObjectTag/{TAG}": word}
        return self.may_in(role, f"s3:{action}", self.objects + name, tags)

    def may_use(self, role: str, key: str, action: str, context: Mapping[str, str]) -> bool:
        """Whether it may use a key; the context is KMS's condition keys."""
        request = Request(self.arns[role], action, self.keys[key], {**_CALLER, **context})
        return allowed(self.statements(f"aws_kms_key.{key}"), request) and not denied(
            self.of_role(role), request
        )

    def may_seal(self, role: str, kind: str, task: str, application: str = "checkpoint-archiver") -> bool:
        return self.may_use(role, "archive", "kms:GenerateDataKey", _context(kind, task, application))

    def may_open(self, role: str, kind: str, task: str, application: str = "checkpoint-archiver") -> bool:
        return self.may_use(role, "archive", "kms:Decrypt", _context(kind, task, application))


def _context(kind: str, task: str, application: str) -> dict[str, str]:
    pairs = {"application": application, "run": "r", "task": task, "object": kind}
    return {f"kms:EncryptionContext:{key}": value for key, value in pairs.items()}
