"""The files of two workspaces compared, from their lists alone and side by side: memory does not grow."""

from __future__ import annotations

import heapq
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from archiver import jsonio
from archiver.comparing.state import changes
from archiver.errors import ArchiveFormatError
from archiver.model.difference import MAX_PATHS, FileChanges

_DOCUMENT: Final = "workspace/workspace.json"
_FOLDER: Final = "workspace/tree"
_MOST: Final = 16 << 20
"""Bytes of a document or of a line that are read."""
_STATE: Final = ("kind", "root")
_GIT_STATE: Final = ("branch", "head", "upstream", "in_progress")

Line = tuple[bytes, bytes]
"""A path as the file system has it, and all of its entry that counts as a change."""


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

    Raises `ArchiveFormatError` where its document, and each pass where a line, does not have its form.
    """
    if not (folder / _DOCUMENT).is_file():
        return None
    document = _document(folder / _DOCUMENT)
    names = document.get("trees")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise _wrong(_DOCUMENT, "its `trees` are no list of members")
    paths = [_member(folder, name) for name in names]
    git = document.get("git")
    git = git if isinstance(git, dict) else {}
    base = git.get("base")
    state = {name: document.get(name) for name in _STATE}
    state |= {f"git.{name}": git.get(name) for name in _GIT_STATE if git}
    return Tree(lambda: _merged(paths), base if isinstance(base, str) else None, state)


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


def _merged(paths: list[Path]) -> Iterator[Line]:
    """The lines of several lists in the order of paths; of those with one path the one of the last list."""
    numbered = (((path, -number, rest) for path, rest in _lines(place)) for number, place in enumerate(paths))
    last: bytes | None = None
    for path, _, rest in heapq.merge(*(list_ for list_ in numbered)):
        if path != last:
            yield path, rest
        last = path


def _lines(place: Path) -> Iterator[Line]:
    last = b""
    with place.open("rb") as file:
        while line := file.readline(_MOST):
            found = _line(line, place.name)
            if found[0] <= last:
                raise _wrong(place.name, "its paths are not in order")
            last = found[0]
            yield found


def _line(line: bytes, name: str) -> Line:
    try:
        entry = jsonio.exact(line)
    except ValueError as error:
        raise _wrong(name, "a line is not JSON") from error
    path = entry.get("path") if isinstance(entry, dict) else None
    if not isinstance(path, str) or not path:
        raise _wrong(name, "a line names no path")
    try:
        encoded = os.fsencode(path)
    except UnicodeEncodeError as error:
        raise _wrong(name, "a path is none that a file system has") from error
    counted = {key: value for key, value in entry.items() if key not in ("path", "modified")}
    return encoded, jsonio.canonical(counted)


def _document(path: Path) -> dict[str, Any]:
    if path.stat().st_size > _MOST:
        raise _wrong(_DOCUMENT, f"it has more than {_MOST} bytes")
    try:
        document = jsonio.exact(path.read_bytes())
    except ValueError as error:
        raise _wrong(_DOCUMENT, "it is not JSON") from error
    if not isinstance(document, dict):
        raise _wrong(_DOCUMENT, "it is not a JSON object")
    return document


def _member(folder: Path, name: str) -> Path:
    parts = name.split("/")
    if "/".join(parts[:2]) != _FOLDER or len(parts) != 3 or parts[2] in ("", ".", ".."):
        raise _wrong(_DOCUMENT, f"{name!r:.200} is no list of files")
    path = folder / name
    if path.is_symlink() or not path.is_file():
        raise _wrong(_DOCUMENT, f"the bundle does not hold {name!r:.200}")
    return path


def _wrong(name: str, what: str) -> ArchiveFormatError:
    return ArchiveFormatError(
        f"{name}: {what}", remedy="compare other checkpoints, or restore this one from a copy of the store"
    )
