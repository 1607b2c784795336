"""What lies in the index alone: entries that differ from HEAD, conflicts, and their contents."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from archiver.git import objects
from archiver.git.running import GitError
from archiver.git.view import View
from archiver.model.git_document import MAX_NAME, StagedEntry
from archiver.workspace.found import Skipped
from archiver.workspace.git_changes import Changes, Taken, compare
from archiver.workspace.git_places import Places, is_in_git_folder

_NOTHING = "000000"
_MODULE = "160000"
_MODES = ("100644", "100755", "120000", _MODULE)


@dataclass(frozen=True, slots=True)
class Staged:
    """One entry of the index that differs from HEAD; `blob` is the object with its content, in git."""

    path: str
    mode: str
    stage: int = 0
    blob: str | None = None
    commit: str | None = None
    intent_to_add: bool = False

    def entry(self, digests: Mapping[str, str]) -> StagedEntry | None:
        """As the document has it; None where its content is not carried."""
        if self.blob is not None and self.blob not in digests:
            return None
        return StagedEntry(
            path=self.path,
            mode=self.mode,
            sha256=None if self.blob is None else digests[self.blob],
            stage=self.stage,
            commit=self.commit,
            intent_to_add=self.intent_to_add,
        )


def compared(view: View, places: Places, limit: int, taken: Taken, skipped: list[Skipped]) -> Changes:
    """The changes; where the index cannot be read, those that a new one made of HEAD would show."""
    try:
        return compare(view, places, limit, taken)
    except GitError:
        if view.head is None or _is_sound(view):
            raise
    (view.private / "index").unlink(missing_ok=True)
    view.ask("read-tree", view.head)
    skipped.append(Skipped(".git/index", "it cannot be read, so what was staged is not carried"))
    return compare(view, places, limit, taken)


def _is_sound(view: View) -> bool:
    status, _ = view.run("ls-files", "-z", limit=1)
    return status == 0


def staged(view: View, changes: Changes, limit: int, skipped: list[Skipped]) -> tuple[Staged, ...]:
    """All entries to carry, by path and stage; a content over the limit is named instead."""
    found = sorted(_entries(changes), key=lambda one: (os.fsencode(one.path), one.stage))
    known = objects.sizes(view, {one.blob for one in found if one.blob is not None})
    kept: list[Staged] = []
    for one in found:
        if len(one.path) > MAX_NAME:
            skipped.append(Skipped(one.path, "its name in the index is too long"))
            continue
        if is_in_git_folder(one.path):
            skipped.append(Skipped(one.path, "its name in the index is that of a git folder on some systems"))
            continue
        size = 0 if one.blob is None else known[one.blob][2] if one.blob in known else None
        if size is None:
            skipped.append(Skipped(one.path, "its staged content is missing from the repository"))
        elif size > limit:
            skipped.append(Skipped(one.path, f"its staged content has {size} bytes, the limit is {limit}"))
        else:
            kept.append(one)
    return tuple(kept)


def _entries(changes: Changes) -> Iterator[Staged]:
    for name, (was, now, blob) in changes.staged.items():
        mode = now.decode("ascii")
        if mode == _NOTHING:
            kept = was.decode("ascii")
            yield Staged(os.fsdecode(name), kept if kept in _MODES else _MODES[0])  # old trees have others
        else:
            yield _entry(name, 0, mode, blob)
    for name, stage, now, blob in changes.stages:
        yield _entry(name, stage, now.decode("ascii"), blob)
    for name, now in changes.intended.items():
        yield Staged(os.fsdecode(name), now.decode("ascii"), intent_to_add=True)


def _entry(name: bytes, stage: int, mode: str, blob: bytes) -> Staged:
    one = blob.decode("ascii")
    if mode not in _MODES:
        raise GitError("the index holds an entry of an unknown mode")
    return (
        Staged(os.fsdecode(name), mode, stage, commit=one)
        if mode == _MODULE
        else Staged(os.fsdecode(name), mode, stage, blob=one)
    )


def blobs(view: View, found: tuple[Staged, ...]) -> Iterator[tuple[str, int, bytes]]:
    """The contents: id, bytes, content; each once, in the order of their ids."""
    ids = sorted({one.blob for one in found if one.blob is not None})
    for one, kind, size, content in objects.contents(view, ids):
        if kind != "blob":
            raise GitError("the index names an object that is no file")
        yield one, size, content
