"""`manifest.json`, the first member of a bundle: what the bundle is and which files it holds."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import unicodedata
from collections.abc import Iterable
from functools import cached_property
from itertools import pairwise
from typing import Annotated, Any, Final, Literal

from pydantic import (
    AfterValidator,
    FailFast,
    Field,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
    model_validator,
)

from archiver import jsonio
from archiver.errors import ArchiveFormatError, UnsupportedSchemaError
from archiver.model.base import Frozen
from archiver.model.checkpoint import Digest
from archiver.model.limits import MAX_MEMBER

MANIFEST: Final = "manifest.json"
MANIFEST_FORMAT: Final = 3
"""The newest form of the table. A bundle that holds all of its members itself has form 1."""
MOST_DICTIONARY: Final = 2**19
"""Bytes of a dictionary: more text of the same run makes what comes after it hardly smaller."""
MAX_PATH: Final = 1024
MAX_COMPONENT: Final = 255
MAX_DEPTH: Final = 16
"""Components of a path: a table of a few kilobytes cannot ask for millions of folders."""
MAX_TIME: Final = 8**11
"""One more than the largest time that a tar header holds."""
DEFAULT_TIME: Final = 315_532_800
"""1980-01-01 in seconds since 1970: the oldest time that no archive tool calls implausible."""

_BELOW: Final = "\0"
"""Stands for `/` where paths are sorted: no path holds it, and it comes before every other character."""
_CROWD: Final = 2**20
"""Bytes up to which any table is small in memory."""
_MARKS: Final = (b",", b"[", b"{")
_STRING: Final = re.compile(rb'"(?:[^"\\]|\\.)*+"?', re.DOTALL)
_FORMAT: Final = re.compile(rb'[{,]\s*"format"\s*:\s*([0-9]{1,9})\s*[,}]')
_BUNDLE = r"^bundles/[A-Za-z0-9._~-]{1,200}/[0-9]{8}-[0-9a-f]{16}\.tar\.zst\.age$"


def check_path(path: str) -> str:
    """The path itself, if a member may have it; else `ValueError` that says why not.

    Relative, `/` between components, none of them empty, `.` or `..`; Unicode without control characters and
    backslashes; at most 1024 bytes, 255 in a component, 16 components; not `manifest.json`.
    """
    components = path.split("/")
    if not all(components):
        raise ValueError("a path is relative and has no empty component")
    if "." in components or ".." in components:
        raise ValueError("a path has no component '.' or '..'")
    if "\\" in path or any(unicodedata.category(character) in {"Cc", "Cs"} for character in path):
        raise ValueError("a path holds no backslash, control character or half a surrogate pair")
    if len(path.encode()) > MAX_PATH or any(len(part.encode()) > MAX_COMPONENT for part in components):
        raise ValueError(f"a path has at most {MAX_PATH} bytes, a component {MAX_COMPONENT}")
    if len(components) > MAX_DEPTH:
        raise ValueError(f"a path has at most {MAX_DEPTH} components")
    if components[0] == MANIFEST:
        raise ValueError(f"{MANIFEST} is the table itself")
    return path


def check_apart(paths: Iterable[str]) -> None:
    """`ValueError` if two paths are the same, or one is a folder of another."""
    # In this order what lies below a path follows it at once, so that neighbours are all there is to see.
    for path, following in pairwise(sorted(path.replace("/", _BELOW) for path in paths)):
        if path == following:
            raise ValueError("two members have the same path")
        if following.startswith(path + _BELOW):
            raise ValueError(f"{path.replace(_BELOW, '/')!r} is a member and a folder of members")


def _check_text(text: str) -> str:
    if any(unicodedata.category(character) == "Cs" for character in text):
        raise ValueError("half a surrogate pair is not text")
    return text


def _check_base64(text: str) -> str:
    try:
        if base64.b64encode(base64.b64decode(text, validate=True)).decode() == text:
            return text
    except (binascii.Error, ValueError):
        pass
    raise ValueError("not canonical base64")


Run = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_check_text)]
Key = Annotated[str, Field(max_length=128), AfterValidator(_check_base64)]


class ManifestHead(Frozen):
    """What a bundle says of itself beside its members.

    `redaction_key`: the run's key for placeholders, in base64. `mtime`: the time of every tar header, in
    seconds since 1970.
    """

    run: Run
    seq: Annotated[int, Field(ge=1, le=99_999_999)]
    schema_version: Annotated[int, Field(ge=1)]
    redaction_key: Key
    mtime: Annotated[int, Field(ge=0, lt=MAX_TIME)] = DEFAULT_TIME


class ManifestMember(Frozen):
    """One file of this bundle: path, permission bits, bytes, SHA-256; `bundle` is always null."""

    path: Annotated[str, AfterValidator(check_path)]
    mode: Annotated[int, Field(ge=0, le=0o777)]
    size: Annotated[int, Field(ge=0, le=MAX_MEMBER)]
    sha256: Digest
    bundle: None = None


class BaseRef(Frozen):
    """The earlier bundle of the run that holds the other members, and the SHA-256 of its `manifest.json`."""

    bundle: Annotated[str, Field(pattern=_BUNDLE)]
    sha256: Digest


class Manifest(Frozen):
    """The table of a bundle's members, in the order they lie in it.

    Format 2 is that of an incremental bundle: its members are those of `base`, without `dropped`, and those
    that lie here, which come in the place of those of the same path. Format 3 is the same, with its members
    compressed behind a dictionary: the end of the texts that the table of its base has.
    """

    format: Literal[1, 2, 3] = 1
    run: Run
    seq: Annotated[int, Field(ge=1, le=99_999_999)]
    schema_version: Annotated[int, Field(ge=1)]
    redaction_key: Key
    base: BaseRef | None = None
    dropped: Annotated[tuple[Annotated[str, AfterValidator(check_path)], ...], FailFast()] = ()
    """Paths of the base's table that this bundle does not have any more, sorted."""
    dictionary: Annotated[int, Field(ge=1, le=MOST_DICTIONARY)] | None = None
    """Bytes of the dictionary, which are the last of those texts."""
    members: Annotated[tuple[ManifestMember, ...], FailFast()]

    @model_serializer(mode="wrap")
    def _as_its_format(self, as_usual: SerializerFunctionWrapHandler) -> dict[str, Any]:
        document: dict[str, Any] = as_usual(self)
        if self.format == 1:
            document.pop("base", None)
            document.pop("dropped", None)
        if self.format < 3:
            document.pop("dictionary", None)
        return document

    @model_validator(mode="after")
    def _format_fits(self) -> Manifest:
        if (self.base is None) != (self.format == 1) or (self.dropped and self.base is None):
            raise ValueError("a table of format 2 or 3 has a base, and one of format 1 has none")
        if (self.dictionary is None) != (self.format < 3):
            raise ValueError("a table of format 3 has a dictionary, and no other has one")
        if any(path >= following for path, following in pairwise(self.dropped)):
            raise ValueError("dropped paths are sorted, each once")
        if not {member.path for member in self.members}.isdisjoint(self.dropped):
            raise ValueError("a member is dropped and here")
        return self

    @model_validator(mode="after")
    def _paths_are_apart(self) -> Manifest:
        check_apart(member.path for member in self.members)
        return self

    def _sorted(self) -> list[str]:
        return sorted(member.path.replace("/", _BELOW) for member in self.members)

    @cached_property
    def raw(self) -> bytes:
        """The bytes of `manifest.json`: canonical JSON, so that one table has one digest."""
        around = jsonio.canonical(self.document(exclude={"members"}) | {"members": []})
        before, _, after = around.partition(b'"members":[]')
        # Member by member into one buffer: 100,000 dictionaries at once would take hundreds of megabytes.
        raw = bytearray(before + b'"members":[')
        for place, member in enumerate(self.members):
            raw += b"," if place else b""
            raw += jsonio.canonical(member.document())
        return bytes(raw + b"]" + after)

    @property
    def sha256(self) -> str:
        """Of `manifest.json`; the signed record repeats it."""
        return hashlib.sha256(self.raw).hexdigest()

    @property
    def unpacked(self) -> int:
        """Bytes of the members that lie in this bundle."""
        return sum(member.size for member in self.members)

    @property
    def folders(self) -> int:
        """How many folders the paths lie in, each counted once."""
        count, before = 0, [""]
        for path in self._sorted():
            parts = path.split(_BELOW)
            shared = 0
            while shared < len(parts) - 1 and before[shared : shared + 1] == parts[shared : shared + 1]:
                shared += 1
            count += len(parts) - 1 - shared
            before = parts[:-1]
        return count

    @classmethod
    def parse(cls, raw: bytes) -> Manifest:
        """Read `manifest.json`: `ArchiveFormatError`, or `UnsupportedSchemaError` for a newer format."""
        _refuse_crowded(raw)
        try:
            manifest = cls.model_validate_json(raw)
        except ValidationError as error:
            _refuse_newer(raw)
            first = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(map(str, first["loc"])) or "the table"
            raise ArchiveFormatError(f"{MANIFEST} is malformed at {where}: {first['msg']}") from error
        if manifest.raw != raw:
            raise ArchiveFormatError(f"{MANIFEST} is not written in the one form that its content has")
        return manifest


def _refuse_crowded(raw: bytes) -> None:
    """Refuse a large table of many tiny values, which would take a hundred times its size in memory.

    A member has five values, one bracket and more than 120 bytes.
    """
    if len(raw) < _CROWD or sum(map(raw.count, _MARKS)) <= len(raw) // 20:
        return
    outside = _STRING.sub(b"", raw)
    if sum(map(outside.count, _MARKS)) > len(raw) // 20:
        raise ArchiveFormatError(f"{MANIFEST} is malformed: it has more values than members of its size have")


def _refuse_newer(raw: bytes) -> None:
    found = _FORMAT.search(raw[:_CROWD])
    version = int(found[1]) if found else 0
    if version > MANIFEST_FORMAT:
        raise UnsupportedSchemaError(
            f"the bundle has archive format {version}, this release knows {MANIFEST_FORMAT}",
            remedy=f"use a release of checkpoint-archiver that knows archive format {version}",
        )
