"""An object in a bucket: its version id and its ETag, `s3://bucket/key`.

`s3://bucket/key?region=eu-west-1&endpoint=https://s3.example.com` asks elsewhere than at the store's server.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final
from urllib.parse import parse_qsl

from archiver.aws import presigned
from archiver.aws.options import AwsOptions
from archiver.freshness.hosts import AddressError, Target, without_secrets
from archiver.freshness.network import not_asked, place_of
from archiver.freshness.resources import LOOK, GoneError, Token, World, changed, check_status
from archiver.freshness.unasked import Unasked
from archiver.freshness.verdict import Finding

_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_TOKEN = re.compile(r"[\x21-\x7e]{1,1024}")
_REGION = re.compile(r"[a-z]{2}(?:-[a-z0-9]+){1,4}")
_HEADERS: Final = {"version": "x-amz-version-id", "etag": "etag"}
_WORDS: Final = {"version": "version", "etag": "ETag"}
_LONGEST_SIGNED: Final = 16 << 10
"""Characters of a signed address: the token of a session is long."""


class S3Resource:
    """Asked with HeadObject; the credentials are those that the AWS tools find."""

    def see(self, address: str, world: World) -> Token:
        bucket, key, options = _parsed(address, world.context.aws)
        world.network.check_used()
        options = replace(options, timeout=max(1.0, min(options.timeout, world.context.timeout / 2)))
        world.network.check(_place(bucket, key, options, signed=False))
        answer = world.network.ask("HEAD", _place(bucket, key, options))
        if answer.status == 404 and answer.headers.get("x-amz-delete-marker") == "true":
            raise GoneError("it was deleted (status 404)")
        region = answer.headers.get("x-amz-bucket-region", "")
        if answer.status in (301, 307, 400) and _REGION.fullmatch(region):
            raise Unasked(
                f"the bucket is in another region (status {answer.status})", f"name {region} as its region"
            )
        check_status(answer)
        found = {name: answer.headers.get(header, "").strip('"') for name, header in _HEADERS.items()}
        token: Token = {name: value for name, value in found.items() if _TOKEN.fullmatch(value)}
        if not token:
            raise Unasked("the server gives neither a version nor an ETag")
        return token

    def compare(self, address: str, then: Token, world: World) -> Finding:
        now = self.see(address, world)
        known = [name for name in _HEADERS if isinstance(then.get(name), str)]
        if not known:
            raise ValueError("the record holds no token of it")
        for name in known:
            if name not in now:
                raise Unasked(f"it has no {_WORDS[name]} any more", LOOK)
            if now[name] != then[name]:
                return changed(address, _WORDS[name], str(then[name]), str(now[name]))
        said = " and ".join(f"{_WORDS[name]} {now[name]}" for name in known)
        return Finding("FRESH", f"{address}: {said} as then")


def _place(bucket: str, key: str, options: AwsOptions, *, signed: bool = True) -> Target:
    try:
        address = presigned.head_object(bucket, key, options, signed=signed)
    except presigned.NotSignedError as error:
        raise Unasked(f"not contacted: {error}", "log in to AWS, or check store.profile") from error
    return place_of(address, longest=_LONGEST_SIGNED)


def _parsed(address: str, options: AwsOptions) -> tuple[str, str, AwsOptions]:
    bucket, slash, key = address.removeprefix("s3://").partition("/")
    if not slash or not _BUCKET.fullmatch(bucket):
        raise not_asked(AddressError("its address does not name a bucket and a key"))
    start, mark, query = key.rpartition("?")
    told = dict(parse_qsl(query, keep_blank_values=True)) if mark else {}
    if told and told.keys() <= {"region", "endpoint"}:
        key = start
        options = replace(options, region=told.get("region", options.region))
        if "endpoint" in told:
            options = replace(options, endpoint_url=_endpoint(told["endpoint"]))
    if not key or len(key.encode("utf-8", "replace")) > 1024 or not key.isprintable():
        raise not_asked(AddressError("its key is empty, longer than 1024 bytes, or holds control characters"))
    if options.region is not None and not _REGION.fullmatch(options.region):
        raise not_asked(AddressError("its region is no name of a region"))
    return bucket, key, options


def _endpoint(url: str) -> str:
    try:
        place_of(without_secrets(url))
    except AddressError as error:
        raise not_asked(error) from error
    return url
