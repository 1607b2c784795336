"""A workspace as members of a bundle: the document, and one line for each entry of its tree."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Final, Literal

from pydantic import Field, SerializerFunctionWrapHandler, ValidationError, model_serializer, model_validator

from archiver import jsonio
from archiver.errors import ArchiveFormatError, NotSerialisableError, UnsupportedSchemaError
from archiver.model.base import Frozen, JsonValue
from archiver.model.checkpoint import Digest
from archiver.model.git_document import GitDocument

WORKSPACE: Final = "workspace/workspace.json"
WORKSPACE_FORMAT: Final = 1
MAX_TREE_PATH: Final = 4096
"""Bytes of a path below the root, and of the target of a link."""
MAX_TREE_DEPTH: Final = 256
"""Components of a path: whoever walks down holds a handle for each."""
MAX_TREE_LINE: Final = 1 << 16
"""Bytes of a line, its end included: both texts at their longest, each byte an escape."""
MAX_TREES: Final = 1000
"""Members that the lines of one tree lie in."""
MAX_DOCUMENT: Final = 16 << 20
"""Bytes of `workspace.json`, which is read whole."""

_Raw = bytes
"""Within the document `bytes` is a field."""

EntryType = Literal["file", "link", "folder", "gone"]

_TYPES: Final = ("file", "link", "folder", "gone")
_MAX_COUNT: Final = 2**63
_SHOWN: Final = 200
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
_FORMAT: Final = re.compile(rb'[{,]\s*"format"\s*:\s*([0-9]{1,9})\s*[,}]')
_TREE = r"^workspace/tree/[0-9]{4}\.jsonl$"


def tree_member(number: int) -> str:
    """The path of the member that holds the tree's lines, by its number from 0 on."""
    return f"workspace/tree/{number:04d}.jsonl"


def object_member(sha256: str) -> str:
    """The path of the member that is the content with that SHA-256."""
    return f"workspace/objects/{sha256}"


def path_bytes(path: str) -> bytes:
    """The path as the file system has it; trees are sorted by this."""
    return path.encode("utf-8", "surrogateescape")


def check_tree_path(path: str) -> str:
    """The path itself, if an entry may have it; else `ValueError` that says why not.

    Relative, `/` between components, none of them empty, `.` or `..`, any bytes but NUL; at most 4096 bytes
    and 256 components. Bytes that are no UTF-8 are lone surrogates, U+DC80 to U+DCFF.
    """
    raw = _raw(path, "a path")
    components = raw.split(b"/")
    if not all(components):
        raise ValueError("a path is relative and has no empty component")
    if b"." in components or b".." in components:
        raise ValueError("a path has no component '.' or '..'")
    if len(components) > MAX_TREE_DEPTH:
        raise ValueError(f"a path has at most {MAX_TREE_DEPTH} components")
    return path


def _raw(text: object, what: str) -> bytes:
    """The bytes of a name; each sequence of bytes has one text only, or two entries would be one file."""
    if not isinstance(text, str):
        raise ValueError(f"{what} is a text")  # noqa: TRY004 - one kind of error for what is no entry
    try:
        raw = path_bytes(text)
    except UnicodeEncodeError as error:
        raise ValueError(f"{what} holds a surrogate that stands for no byte") from error
    if raw.decode("utf-8", "surrogateescape") != text:
        raise ValueError(f"{what} writes UTF-8 as single bytes")
    if b"\0" in raw or len(raw) > MAX_TREE_PATH:
        raise ValueError(f"{what} has no NUL and at most {MAX_TREE_PATH} bytes")
    return raw


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """One thing in a tree, by its path below the root.

    `mode`: permission bits. `modified`: nanoseconds since 1970, may be negative. `size` and `sha256`: of the
    content that is carried. `target`: of a link. `redacted`: placeholders stand in the content. `gone` is
    what the commit below the tree has and the tree has not.
    """

    path: str
    type: EntryType
    mode: int
    modified: int
    size: int = 0
    sha256: str | None = None
    target: str | None = None
    redacted: bool = False

    def line(self) -> bytes:
        """Its one line, with the line end: canonical JSON, without what does not apply.

        Raises `NotSerialisableError` for a file of which the content is not known.
        """
        value: dict[str, str | int | bool] = {
            "path": self.path, "type": self.type, "mode": self.mode, "modified": self.modified,
        }  # fmt: skip
        if self.type == "file":
            if self.sha256 is None:
                raise NotSerialisableError(f"the entry of {_shown(self.path)} has no digest", path="$.sha256")
            value["size"], value["sha256"] = self.size, self.sha256
        if self.target is not None:
            value["target"] = self.target
        if self.redacted:
            value["redacted"] = True
        return jsonio.canonical(value, checked=True) + b"\n"

    @classmethod
    def parse(cls, line: bytes) -> TreeEntry:
        """Read one line, its end included; `ArchiveFormatError` for anything but the one form of an entry."""
        try:
            _check_size(line)
            entry = cls(**jsonio.loads(line))
            entry._check(line)
        except (ValueError, TypeError, NotSerialisableError) as error:
            shown = _shown(line[:_SHOWN].decode("utf-8", "replace"))
            raise ArchiveFormatError(f"{shown} is no entry of a tree: {error}") from error
        return entry

    def _check(self, line: bytes) -> None:
        """`ValueError` for an entry that no tree has, or another line than its own."""
        check_tree_path(self.path)
        if self.type not in _TYPES:
            raise ValueError(f"its type is none of {', '.join(_TYPES)}")
        _check_number(self.mode, 0, 0o777, "mode")
        _check_number(self.modified, -_MAX_COUNT, _MAX_COUNT - 1, "modified")
        _check_number(self.size, 0, _MAX_COUNT - 1, "size")
        self._check_target()
        self._check_content()
        if self.line() != line:
            raise ValueError("it is not written in the one form that it has")

    def _check_target(self) -> None:
        if self.type != "link":
            if self.target is not None:
                raise ValueError("only a link has a target")
        elif not _raw(self.target, "the target"):
            raise ValueError("the target of a link is not empty")

    def _check_content(self) -> None:
        if type(self.redacted) is not bool:
            raise ValueError("redacted is true or left out")
        if self.type != "file":
            if self.sha256 is not None or self.size or self.redacted:
                raise ValueError("only a file has content")
        elif not isinstance(self.sha256, str) or _DIGEST.fullmatch(self.sha256) is None:
            raise ValueError("sha256 is 64 hex digits")


def _check_size(line: bytes) -> None:
    if len(line) > MAX_TREE_LINE:
        raise ValueError(f"it has {len(line)} bytes, more than {MAX_TREE_LINE}")


def _check_number(value: object, least: int, most: int, name: str) -> None:
    if type(value) is not int or not least <= value <= most:
        raise ValueError(f"{name} is an integer from {least} to {most}")


def _shown(text: str) -> str:
    return ascii(text)[:_SHOWN]


class WorkspaceDocument(Frozen):
    """`workspace.json`: what the tree is, and which members hold its lines.

    `root`: the folder's path when it was captured, redacted. `trees`: members with lines; of two lines with
    one path the later counts. `entries` and `bytes`: how many lines count, and how large their files are.
    `not_carried`, absent where there are none: SHA-256 of contents that the tree names and limits had no room
    for.
    """

    format: Literal[1] = WORKSPACE_FORMAT
    kind: Literal["folder", "git"]
    root: str
    trees: Annotated[tuple[Annotated[str, Field(pattern=_TREE)], ...], Field(max_length=MAX_TREES)]
    entries: Annotated[int, Field(ge=0)]
    bytes: Annotated[int, Field(ge=0)]
    git: GitDocument | None = None
    not_carried: tuple[Digest, ...] = ()

    @model_serializer(mode="wrap")
    def _without_what_is_rare(self, as_usual: SerializerFunctionWrapHandler) -> dict[str, JsonValue]:
        """A document of which everything is carried has the form of those made before anything was not."""
        document: dict[str, JsonValue] = as_usual(self)
        if not self.not_carried:
            document.pop("not_carried", None)
        return document

    @model_validator(mode="after")
    def _git_is_there_or_not(self) -> WorkspaceDocument:
        if (self.kind == "git") != (self.git is not None):
            raise ValueError("`git` is there for the kind git, and for no other")
        return self

    @property
    def is_readable(self) -> bool:
        """Whether `parse` takes it back: its size counts, and a copy with changes is not validated."""
        try:
            self.parse(self.raw)
        except ArchiveFormatError:
            return False
        return True

    @property
    def raw(self) -> _Raw:
        """The bytes of `workspace.json`: canonical JSON."""
        return jsonio.canonical(self.document())

    @classmethod
    def parse(cls, raw: _Raw) -> WorkspaceDocument:
        """Read `workspace.json`: `ArchiveFormatError`, or `UnsupportedSchemaError` for a newer format."""
        if len(raw) > MAX_DOCUMENT:
            raise ArchiveFormatError(f"{WORKSPACE} has {len(raw)} bytes, more than {MAX_DOCUMENT}")
        try:
            document = cls.model_validate(
                jsonio.loads(raw)
            )  # its own reader takes no bytes that are not UTF-8
        except ValueError as error:
            _refuse_newer(raw)
            if not isinstance(error, ValidationError):
                raise ArchiveFormatError(f"{WORKSPACE} is not JSON: {error}") from error
            first = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(map(str, first["loc"])) or "the document"
            raise ArchiveFormatError(f"{WORKSPACE} is malformed at {where}: {first['msg']}") from error
        if document.raw != raw:
            raise ArchiveFormatError(f"{WORKSPACE} is not written in the one form that its content has")
        return document


def _refuse_newer(raw: bytes) -> None:
    found = _FORMAT.search(raw)
    version = int(found[1]) if found else 0
    if version > WORKSPACE_FORMAT:
        raise UnsupportedSchemaError(
            f"{WORKSPACE} has format {version}, this release knows {WORKSPACE_FORMAT}",
            remedy=f"use a release of checkpoint-archiver that knows format {version} of a workspace",
        )
