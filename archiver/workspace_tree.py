"""The tree of a workspace as members: all of its lines, or those that are not in the tree of a base."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from archiver.model import Member
from archiver.model.workspace import MAX_TREES, TreeEntry, path_bytes, tree_member
from archiver.scratch import Scratch
from archiver.workspace.versions import Digests, TreeVersions

if TYPE_CHECKING:
    from archiver.pack import Held

LARGEST: Final = 0.5
"""The part of all lines from which on the lines that changed are not written apart."""


@dataclass(frozen=True, slots=True)
class TreeMembers:
    """A tree: which members its lines lie in, and those of them that the base has not."""

    trees: tuple[str, ...]
    members: tuple[Member, ...]
    digests: Digests
    """SHA-256 of all of them, in order."""

    @property
    def kept(self) -> tuple[str, ...]:
        """The members that lie in the base."""
        return self.trees[: len(self.trees) - len(self.members)]


def whole(entries: Sequence[TreeEntry], scratch: Scratch) -> TreeMembers:
    """All lines in one member; the entries come in the order of their paths."""
    spool = scratch.spool("tree")
    for entry in entries:
        spool.write(entry.line())
    done = spool.close()
    path = tree_member(0)
    return TreeMembers((path,), (Member(path, done.path, done.size, done.sha256),), (done.sha256,))


def changes(
    entries: Sequence[TreeEntry], versions: TreeVersions, table: Mapping[str, Held]
) -> TreeMembers | None:
    """What is new since the tree of the base, whose table this is; None where a whole tree is to be written.

    The versions have these entries as the newest tree; no later base has an older one than this.
    """
    before = dict(_members(table))
    digests = tuple(sha256 for _, sha256, _ in before.values())
    found = versions.since(digests)
    if found is None:
        return None
    versions.forget_before(digests)
    new, gone = found
    paths = tuple(before)
    if not new and not gone:
        return TreeMembers(paths, (), digests)
    if len(before) >= MAX_TREES or len(new) + len(gone) > LARGEST * len(entries):
        return None
    lines = [entry for entry in entries if entry.path in new]
    lines += (TreeEntry(path, "gone", 0, 0) for path in gone)
    lines.sort(key=lambda entry: path_bytes(entry.path))
    data = b"".join(entry.line() for entry in lines)
    first, *later = (size for size, _, _ in before.values())
    if sum(later) + len(data) > LARGEST * first:
        return None
    path, sha256 = tree_member(len(before)), hashlib.sha256(data).hexdigest()
    return TreeMembers((*paths, path), (Member(path, data, len(data), sha256),), (*digests, sha256))


def _members(table: Mapping[str, Held]) -> Iterator[tuple[str, Held]]:
    """The members that the tree of a base lies in, in order."""
    number = 0
    while (held := table.get(tree_member(number))) is not None:
        yield tree_member(number), held
        number += 1
