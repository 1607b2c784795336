"""Calls of S3 about one store: a client for each process, errors by meaning, the tag of every object."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final, get_args

from archiver.aws.door import FAILURES, ClientError, client, code_of, is_expired
from archiver.errors import ArchiverError
from archiver.model.record import RetentionClass
from archiver.store.base import ObjectInfo
from archiver.store.options import S3Options
from archiver.store.s3 import contents
from archiver.store.s3.address import Address
from archiver.store.s3.answers import answered
from archiver.store.s3.failures import no_credentials, unanswered
from archiver.store.s3.quick import QuickReads
from archiver.store.s3.request import UNREADABLE, PastEndError, Request, not_understood, understood

CLASS_TAG: Final = "archiver-class"
"""The key of the tag that holds an object's retention class; lifecycle rules name it."""

_CLASSES: dict[str, RetentionClass] = {word: word for word in get_args(RetentionClass)}


class S3:
    """The S3 of one store; safe between threads and after a fork. Nothing is sent before the first call."""

    def __init__(self, address: Address, options: S3Options) -> None:
        self.address = address
        self.options = options
        self._client: tuple[int, Any, QuickReads] | None = None

    def call(self, operation: str, name: str | None = None, **params: Any) -> dict[str, Any]:
        """Carry the operation out on the object, or on the bucket; errors are those of this package."""
        if name is not None:
            params["Key"] = self.address.key(name)
        request = self.request(operation, name)
        method = getattr(self._of_this_process(request)[0], operation)
        with self._translated(request):
            answer: dict[str, Any] = method(Bucket=self.address.bucket, **params)
        return answer

    def pages(self, operation: str, **params: Any) -> Iterator[dict[str, Any]]:
        """The answers of an operation on the bucket that answers in pages."""
        request = self.request(operation, None)
        paginator = self._of_this_process(request)[0].get_paginator(operation)
        with self._translated(request):
            yield from paginator.paginate(Bucket=self.address.bucket, **params)

    @contextmanager
    def _translated(self, request: Request) -> Iterator[None]:
        """Around everything that boto3 does: what it raises, as errors of this package."""
        try:
            yield
        except ClientError as error:
            raise self._explained(error, request) from error
        except FAILURES as error:
            raise unanswered(error, request) from error
        except UNREADABLE as error:
            raise not_understood(request.what) from error
        except RuntimeError as error:
            if not is_expired(error):
                raise
            raise no_credentials(error, request) from error

    def quickly(self, name: str, limit: int) -> bytes | None:
        """A small object whole, if nothing stands against it; None: ask for it in the ordinary way."""
        quick = self._of_this_process(self.request("get_object", name))[1]
        return quick.read(self.address.key(name), limit)

    def request(self, operation: str, name: str | None) -> Request:
        """The call as an error names it."""
        return Request(operation, self.address.bucket, name, self.options.aws.endpoint_url)

    def tags(self, name: str, version: str | None = None) -> dict[str, str]:
        """All tags of the object, or of that version of it."""
        more = {} if version is None else {"VersionId": version}
        answer = self.call("get_object_tagging", name, **more)
        with understood(f"object {name}"):
            return {str(tag["Key"]): str(tag["Value"]) for tag in answer.get("TagSet", [])}

    def _of_this_process(self, request: Request) -> tuple[Any, QuickReads]:
        """The client. Two threads may each make one at first; that costs a moment and nothing else.

        One inherited over a fork is dropped: its connections are the parent's, and stay open there.
        """
        held = self._client
        if held is None or held[0] != os.getpid():
            made = self._made(request)
            held = self._client = (os.getpid(), made, QuickReads(made))
        return held[1:]

    def _made(self, request: Request) -> Any:
        try:
            # Every request carries the checksum that the settings ask for, and readers check it themselves:
            # boto3's own would be a trailer over TLS, which some servers store inside the object.
            made = client(
                "s3",
                self.options.aws,
                request_checksum_calculation="when_required",
                response_checksum_validation="when_required",
            )
        except (*FAILURES, ValueError) as error:
            raise unanswered(error, request) from error
        made.meta.events.register(contents.EVENT, contents.take_out)
        made.meta.events.register(contents.VERSIONS_EVENT, contents.refuse_no_versions)
        made.meta.events.register(contents.RULES_EVENT, contents.keep_elements)
        if self.options.checksums != "off":
            made.meta.events.register("before-sign.s3.GetObject", _ask_for_checksum)
        return made

    def _explained(self, error: ClientError, request: Request) -> ArchiverError:
        """The meaning of a refusal; that of a HEAD has no body, so a GET of one byte says why."""
        if request.operation == "head_object" and code_of(error).isdigit():
            try:
                self.call("get_object", request.name, Range="bytes=0-0")["Body"].close()
            except PastEndError:
                pass  # an empty object: it is there, so what was refused is the HEAD alone
            except ArchiverError as found:
                return found
        return answered(error, request)


def _ask_for_checksum(request: Any, **_: Any) -> None:
    """Have the server send the checksum it keeps; boto3 itself compares it only where nothing is resumed."""
    request.headers["x-amz-checksum-mode"] = "ENABLED"


def class_of(tags: dict[str, str]) -> RetentionClass | None:
    """The retention class; None without its tag or with an unknown one: such an object never expires."""
    return _CLASSES.get(tags.get(CLASS_TAG, ""))


def info_of(name: str, answer: dict[str, Any], retention: RetentionClass | None = None) -> ObjectInfo:
    """The object as the answer to a HEAD or a GET of all of it has it."""
    with understood(f"object {name}"):
        return ObjectInfo(
            name,
            size_of(answer["ContentLength"]),
            answer["LastModified"].astimezone(UTC),
            retention,
            answer.get("ETag"),
        )


def size_of(value: Any) -> int:
    """A number of bytes in an answer; `ValueError` if it is none."""
    size = int(value)
    if size < 0:
        raise ValueError
    return size


def date_of(answer: dict[str, Any]) -> datetime:
    """When the server answered, by its clock; by this machine's where it says nothing."""
    try:
        return parsedate_to_datetime(answer["ResponseMetadata"]["HTTPHeaders"]["date"]).astimezone(UTC)
    except UNREADABLE:
        return datetime.now(UTC)
