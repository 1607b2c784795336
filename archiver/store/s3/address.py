"""The address of a store in a bucket: `s3://bucket/prefix`, where names become keys.

records/run/00000001.age → <prefix>/records/run/00000001.age
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import Final

from archiver.errors import ConfigError, InvalidNameError
from archiver.store.names import is_name, split, split_prefix

MAX_KEY: Final = 1024
"""Bytes of a key, prefix included."""
MAX_PREFIX: Final = 512

_BUCKET = re.compile(r"[a-z0-9](?:[a-z0-9.-]{1,61})[a-z0-9]")
_BAD_START = ("xn--", "sthree-")
_BAD_END = ("--ol-s3", ".mrap", "--x-s3", "--table-s3")
"""Directory buckets (`--x-s3`) among them: they list in no order."""
_PREFIX_PART = re.compile(r"[A-Za-z0-9!_.*'()=+@,-]+")


@dataclass(frozen=True, slots=True)
class Address:
    """A bucket, and what all keys of the store start with: empty, or components that each end in `/`."""

    bucket: str
    prefix: str

    @property
    def url(self) -> str:
        """The address as it is written, without a slash at its end."""
        return f"s3://{self.bucket}/{self.prefix}".rstrip("/")

    def key(self, name: str) -> str:
        """The key of an object; `InvalidNameError` if it cannot be one's name."""
        split(name)
        key = self.prefix + name
        if len(key) > MAX_KEY:
            raise InvalidNameError(
                f"the key of {name[:80]!r} is longer than the {MAX_KEY} bytes that S3 allows",
                remedy="use a shorter prefix or run id",
            )
        return key

    def key_start(self, prefix: str) -> str:
        """What the keys of objects start with whose names start with `prefix`."""
        split_prefix(prefix)
        return self.prefix + prefix

    def name(self, key: str) -> str | None:
        """The name of the object with this key; None if it is not of this store."""
        name = key.removeprefix(self.prefix)
        return name if key.startswith(self.prefix) and is_name(name) else None


def parse(url: str) -> Address:
    """The address that `url` writes; `ConfigError` for anything that is not exactly one."""
    scheme, separator, rest = url.partition("://")
    if scheme.lower() != "s3" or not separator:
        raise _refused(url, "it does not start with s3://")
    bucket, _, prefix = rest.partition("/")
    if "@" in bucket or ":" in bucket:
        # What stands there may be a secret, so it is not repeated.
        raise ConfigError(
            "the address of an S3 store holds a user, a password or a port before its bucket",
            remedy="write s3://bucket/prefix; credentials belong into the AWS configuration, another server "
            "into store.endpoint_url",
        )
    if reason := _wrong_bucket(bucket):
        raise _refused(url, reason)
    parts = prefix.removesuffix("/").split("/") if prefix.removesuffix("/") else []
    if reason := _wrong_prefix(prefix, parts):
        raise _refused(url, reason)
    return Address(bucket, "".join(f"{part}/" for part in parts))


def _wrong_bucket(bucket: str) -> str | None:
    if not _BUCKET.fullmatch(bucket):
        return "a bucket's name has 3 to 63 lower-case letters, digits, dots and hyphens"
    if ".." in bucket or ".-" in bucket or "-." in bucket:
        return "dots in a bucket's name stand between letters or digits"
    if bucket.startswith(_BAD_START) or bucket.endswith(_BAD_END):
        return "S3 keeps such names for itself, or they are of another kind than a bucket"
    try:
        ipaddress.IPv4Address(bucket)
    except ValueError:
        return None
    return "a bucket's name is no IP address"


def _wrong_prefix(prefix: str, parts: list[str]) -> str | None:
    if len(prefix) > MAX_PREFIX:
        return f"its prefix has more than {MAX_PREFIX} bytes"
    if not all(map(_PREFIX_PART.fullmatch, parts)) or prefix == "/":
        return "a prefix has letters, digits and !_.*'()=+@,- between single slashes"
    if any(set(part) == {"."} for part in parts):
        return "a component of a prefix is more than dots"
    return None


def _refused(url: str, reason: str) -> ConfigError:
    return ConfigError(
        f"{url[:200]!r} is not the address of an S3 store: {reason}", remedy="write s3://bucket/prefix"
    )
