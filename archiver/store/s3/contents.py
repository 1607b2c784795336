"""The objects that a page of a list names, taken out of the answer before boto3 makes values of it.

boto3 looks up every element of every object in its model of the service; with a thousand objects a page that
takes longer than the server needs for the answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote_plus
from xml.etree import ElementTree as Xml

from archiver.aws.door import moment
from archiver.errors import StoreError
from archiver.store.s3.request import UNREADABLE, not_understood

EVENT = "before-parse.*.ListObjectsV2"
"""What `take_out` is to be registered for: so it comes before boto3 looks for errors in whole answers."""

VERSIONS_EVENT = "before-parse.*.ListObjectVersions"
"""What `refuse_no_versions` is to be registered for."""

RULES_EVENT = "before-parse.s3.GetBucketLifecycleConfiguration"
"""What `keep_elements` is to be registered for."""

ELEMENTS = "ElementNames"
"""Where it keeps them in the answer."""

_ROOTS = ("ListBucketResult", "Error")
_VERSIONS_ROOTS = ("ListVersionsResult", "Error")

_ASIDE = "ObjectsTakenOut"
"""Where boto3 does not look for them, to decode every key once more."""


def take_out(response_dict: dict[str, Any], customized_response_dict: dict[str, Any], **_: Any) -> None:
    """Set the objects of the answer aside and leave boto3 the rest; all of an error and of what is torn.

    `StoreError` for what is something else: boto3 would take it for a list of no objects.
    """
    try:
        answer = Xml.fromstring(response_dict["body"])  # noqa: S314 - what boto3 does with every answer
    except (Xml.ParseError, ValueError):
        if response_dict["status_code"] < 300 and not response_dict["body"].strip():
            raise _no_list() from None
        return
    if response_dict["status_code"] < 300 and _root(answer) not in _ROOTS:
        raise _no_list()
    space = answer.tag.removesuffix("ListBucketResult")
    try:
        found = [_object(item, space) for item in answer.iterfind(f"{space}Contents")]
    except UNREADABLE:
        return
    if not found:
        return
    if answer.findtext(f"{space}EncodingType") == "url":
        for each in found:
            each["Key"] = _decoded(each["Key"])
    answer[:] = [item for item in answer if item.tag != f"{space}Contents"]
    response_dict["body"] = Xml.tostring(answer)
    customized_response_dict[_ASIDE] = found


def refuse_no_versions(response_dict: dict[str, Any], **_: Any) -> None:
    """`StoreError` for an answer that is no list of versions: boto3 would take it for an empty one.

    A server that does not know of versions gives a list of objects, as if it had not been asked for them.
    """
    if response_dict["status_code"] >= 300:
        return
    try:
        answer = Xml.fromstring(response_dict["body"])  # noqa: S314 - what boto3 does with every answer
    except (Xml.ParseError, ValueError):
        if not response_dict["body"].strip():
            raise not_understood("a list of versions") from None
        return
    if _root(answer) not in _VERSIONS_ROOTS:
        raise not_understood("a list of versions")


def keep_elements(response_dict: dict[str, Any], customized_response_dict: dict[str, Any], **_: Any) -> None:
    """Keep the names of all elements of lifecycle rules: boto3 drops unknown ones without a word."""
    if response_dict["status_code"] >= 300:
        return
    try:
        answer = Xml.fromstring(response_dict["body"])  # noqa: S314 - what boto3 does with every answer
    except (Xml.ParseError, ValueError):
        return  # boto3 refuses it by itself
    customized_response_dict[ELEMENTS] = [_root(one) for one in answer.iter()]


def objects_of(page: dict[str, Any]) -> Sequence[dict[str, Any]]:
    """The objects that the page names, with `Key`, `Size`, `LastModified` and mostly `ETag`."""
    found: Sequence[dict[str, Any]] = page.get(_ASIDE) or page.get("Contents", ())
    return found


def _root(answer: Xml.Element) -> str:
    return answer.tag.rpartition("}")[2]


def _no_list() -> StoreError:
    return not_understood("a list of objects")


def _object(item: Xml.Element, space: str) -> dict[str, Any]:
    found = {
        "Key": item.findtext(f"{space}Key", ""),
        "Size": int(item.findtext(f"{space}Size", "")),
        "LastModified": moment(item.findtext(f"{space}LastModified", "")),
    }
    etag = item.findtext(f"{space}ETag")
    return found if etag is None else {**found, "ETag": etag}


def _decoded(key: str) -> str:
    return unquote_plus(key) if "%" in key or "+" in key else key
