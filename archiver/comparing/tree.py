"""The files of two workspaces compared, from their lists alone and side by side: no content is held."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from archiver.comparing.state import changes
from archiver.errors import ArchiveFormatError
from archiver.model.difference import MAX_PATHS, FileChanges
from archiver.model.workspace import MAX_DOCUMENT, WORKSPACE, TreeEntry, WorkspaceDocument, path_bytes
from archiver.workspace.tree import read_tree

_ENTRIES: Final = 1_000_000
"""As many as a setting can allow a workspace to have."""
_GIT_STATE: Final = ("branch", "head", "upstream", "in_progress")

Line = tuple[bytes, TreeEntry]
"""A path as the file system has it, and its entry without the time, which is no change."""


@dataclass(frozen=True, slots=True)
class Tree:
    """The files of one workspace: each pass gives them in the order of their paths."""

    lines: Callable[[], Iterator[Line]]
    base: str | None = None
    """The commit that they are the difference to."""
    state: Mapping[str, Any] | None = None
    """What else the workspace says of itself."""


def tree_in(folder: Path) -> Tree | None:
    """The workspace of an unpacked bundle; None where it holds none.

    Raises `ArchiveFormatError` or `UnsupportedSchemaError` where its document, and what `read_tree` raises
    where a line, does not have its form.
    """
    if not (folder / WORKSPACE).is_file():
        return None
    with (folder / WORKSPACE).open("rb") as file:
        document = WorkspaceDocument.parse(file.read(MAX_DOCUMENT + 1))
    paths = [_member(folder, name) for name in document.trees]
    git = document.git
    state: dict[str, Any] = {"kind": document.kind, "root": document.root}
    if git is not None:
        state |= {f"git.{name}": getattr(git, name) for name in _GIT_STATE}
    return Tree(lambda: _lines(paths, git=git is not None), git.base if git is not None else None, state)


def files(before: Tree, after: Tree) -> FileChanges | None:
    """Paths that were added, are another now, or are gone; None where nothing is another."""
    found: dict[str, list[str]] = {"added": [], "changed": [], "gone": []}
    counts = dict.fromkeys(found, 0)
    for kind, path in _walk(before.lines(), after.lines()):
        counts[kind] += 1
        if counts[kind] <= MAX_PATHS:
            found[kind].append(os.fsdecode(path))
    old, new = dict(before.state or {}), dict(after.state or {})
    state = tuple(changes(old, new, sorted({*old, *new})))
    if not any(counts.values()) and not state and before.base == after.base:
        return None
    return FileChanges(
        **counts,
        **{f"paths_{kind}": tuple(paths) for kind, paths in found.items()},
        base_before=before.base,
        base_after=after.base,
        state=state,
    )


def _walk(before: Iterator[Line], after: Iterator[Line]) -> Iterator[tuple[str, bytes]]:
    old, new = next(before, None), next(after, None)
    while old is not None or new is not None:
        if new is None or (old is not None and old[0] < new[0]):
            assert old is not None  # noqa: S101 - one of the two is there
            yield "gone", old[0]
            old = next(before, None)
        elif old is None or new[0] < old[0]:
            yield "added", new[0]
            new = next(after, None)
        else:
            if old[1] != new[1]:
                yield "changed", new[0]
            old, new = next(before, None), next(after, None)


def _lines(paths: list[Path], *, git: bool) -> Iterator[Line]:
    for entry in read_tree(paths, limit=_ENTRIES, git=git):
        yield path_bytes(entry.path), replace(entry, modified=0)


def _member(folder: Path, name: str) -> Path:
    path = folder / name
    if path.is_symlink() or not path.is_file():
        raise ArchiveFormatError(
            f"{WORKSPACE}: the bundle does not hold {name}",
            remedy="compare other checkpoints, or restore this one from a copy of the store",
        )
    return path
