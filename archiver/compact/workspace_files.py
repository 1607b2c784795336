"""Contents of a workspace that are not carried where there is no room: the tree goes on naming them."""

from __future__ import annotations

import hashlib
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from archiver.model import Member
from archiver.model.workspace import WORKSPACE, TreeEntry, WorkspaceDocument, object_member

_OBJECTS: Final = "workspace/objects/"
_TREES: Final = "workspace/tree/"
MAX_NAMED: Final = 1000
"""Files that the receipt names; of more only how many there are, and their bytes."""


@dataclass(frozen=True, slots=True)
class LeftFile:
    """A content that may be left: the file that has it, by its path below `workspace/`, and its member."""

    name: str
    member: Member


class WorkspaceFiles:
    """The contents of a workspace among the members of a bundle, of which some may have to stay."""

    def __init__(self, members: Iterable[Member], held: Container[str] = ()) -> None:
        """`held`: paths of members that a base has, which cost the store nothing."""
        of_workspace = [one for one in members if one.path.startswith("workspace/")]
        self._objects = {one.path: one for one in of_workspace if one.path.startswith(_OBJECTS)}
        self._trees = [one for one in of_workspace if one.path.startswith(_TREES)]
        self._document = next((one for one in of_workspace if one.path == WORKSPACE), None)
        self._held = held
        self._left: dict[str, Member] = {}

    @property
    def saved(self) -> int:
        """Bytes that are not carried so far."""
        return sum(member.size for member in self._left.values())

    @property
    def count(self) -> int:
        """Contents that are not carried so far."""
        return len(self._left)

    def largest(self, least: int = 0, *, new: bool = False) -> list[LeftFile]:
        """Those of more than `least` bytes that are carried and may be left, the largest first.

        `new`: without those that a base has.
        """
        if not any(one.size > least for one in self._objects.values()):
            return []
        found = [
            LeftFile(name, self._objects[path])
            for path, name in self._named.items()
            if path not in self._left
            and self._objects[path].size > least
            and not (new and path in self._held)
        ]
        return sorted(found, key=lambda one: (-one.member.size, one.name))

    def leave(self, file: LeftFile) -> None:
        """Do not carry it."""
        self._left[file.member.path] = file.member

    def instead(self, member: Member) -> list[Member]:
        """What is carried in place of a member: itself, the document that says what is not, or nothing."""
        if member.path in self._left:
            return []
        if member.path != WORKSPACE or not self._left:
            return [member]
        left = {path.removeprefix(_OBJECTS) for path in self._left}
        document = WorkspaceDocument.parse(_bytes(member))
        raw = document.model_copy(update={"not_carried": tuple(sorted(left))}).raw
        return [Member(member.path, raw, len(raw), hashlib.sha256(raw).hexdigest())]

    @cached_property
    def _named(self) -> dict[str, str]:
        """What each content that may be left is called: not one that the index of git needs.

        By a file that has it, or, where its line lies in the tree of a base, by its member.
        """
        if self._document is None:
            return {}
        git = WorkspaceDocument.parse(_bytes(self._document)).git
        staged = {one.sha256 for one in git.staged} if git is not None else set()
        needed = {object_member(sha256) for sha256 in staged if sha256 is not None}
        found: dict[str, str] = {}
        for tree in self._trees:
            for entry in map(TreeEntry.parse, _lines(tree)):
                if entry.sha256 is not None:
                    found.setdefault(object_member(entry.sha256), f"workspace/{entry.path}")
        return {path: found.get(path, path) for path in self._objects if path not in needed}


def _bytes(member: Member) -> bytes:
    return member.source if isinstance(member.source, bytes) else member.source.read_bytes()


def _lines(member: Member) -> Iterator[bytes]:
    if isinstance(member.source, bytes):
        yield from (line + b"\n" for line in member.source.split(b"\n")[:-1])
        return
    with member.source.open("rb") as file:
        yield from file
