"""The lines of a tree, from the members that hold them: each path once, as the newest line says."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from archiver.errors import ArchiveFormatError, LimitExceededError
from archiver.model.workspace import MAX_TREE_LINE, TreeEntry, path_bytes
from archiver.safetext import one_line

_BLOCK: Final = 1 << 16
_Line = tuple[bytes, int, TreeEntry]


def read_tree(members: Sequence[Path], *, limit: int, git: bool) -> Iterator[TreeEntry]:
    """The entries of a tree whose members lie at these places, in the order of the document.

    `git`: whether it is the tree of a git work tree, where `gone` is said of what a commit has. In that of a
    folder it takes an older line back, and is no entry.
    Raises `ArchiveFormatError` for lines that are no entries or out of order, and for an entry below what is
    no folder; `LimitExceededError` for more than `limit` entries.
    """
    lines = [_lines(member, -place) for place, member in enumerate(members)]
    before, count, others = b"", 0, set[str]()
    for raw, _, entry in heapq.merge(*lines, key=lambda line: line[:2]):
        if raw == before:  # an older line of the same path: the newest comes first
            continue
        before = raw
        if entry.type == "gone" and not git:
            continue
        count += 1
        if count > limit:
            raise LimitExceededError(
                f"the tree has more than {limit} entries",
                remedy="raise `workspace.entries` in `archiver.toml`",
            )
        _check_place(entry, others)
        yield entry


def _check_place(entry: TreeEntry, others: set[str]) -> None:
    """`others`: paths of what is no folder, so far."""
    around = entry.path.rpartition("/")[0]
    while around:
        if around in others:
            raise ArchiveFormatError(f"{one_line(entry.path)} lies in {one_line(around)}, which is no folder")
        around = around.rpartition("/")[0]
    if entry.type in ("file", "link"):
        others.add(entry.path)


def _lines(member: Path, place: int) -> Iterator[_Line]:
    before = b""
    for line in _raw_lines(member):
        entry = TreeEntry.parse(line)
        raw = path_bytes(entry.path)
        if raw <= before:
            raise ArchiveFormatError(f"{one_line(entry.path)} is out of order in {member.name}")
        before = raw
        yield raw, place, entry


def _raw_lines(member: Path) -> Iterator[bytes]:
    """Lines of at most one byte more than there may be, some at a time: many members are read side by side,
    and a process may not hold so many files open.
    """
    at = 0
    while True:
        lines: list[bytes] = []
        with member.open("rb") as file:
            end = file.seek(at) + _BLOCK
            while at < end and (line := file.readline(MAX_TREE_LINE + 1)):
                lines.append(line)
                at += len(line)
        if not lines:
            return
        yield from lines
