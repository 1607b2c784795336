"""What differs between a captured work tree and a folder that is there; nothing is changed there."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from archiver.git.running import GitError
from archiver.git.view import View, opened
from archiver.model.git_document import GitDocument, StagedEntry
from archiver.model.workspace import TreeEntry
from archiver.safetext import one_line
from archiver.workspace import git_changes, git_index, git_state
from archiver.workspace.differing import Differing, Here, differs
from archiver.workspace.git_changes import Changes, Taken
from archiver.workspace.git_places import Places

_TIMEOUT: Final = 60.0
_MAX_FILE: Final = 64 << 20
_ALL: Final = Taken()
_Key = tuple[str, int]
"""Path and stage of an entry of the index."""


def git_difference(
    document: GitDocument,
    entries: Iterable[TreeEntry],
    folder: Path,
    *,
    taken: Taken = _ALL,
    apart: Sequence[Path] = (),
    timeout: float = _TIMEOUT,
) -> list[Differing]:
    """All that is otherwise in `folder`: HEAD, branch, operation, index, and the files, by their paths.

    `taken`: which untracked files count. `apart`: folders that never do. A folder that is no repository is
    compared file by file, which is said. Its configuration is not read, and nothing of it is run.
    """
    saved = {os.fsencode(entry.path): entry for entry in entries}
    found: list[Differing] = []
    places = Places(folder)
    names: dict[bytes, bool] = {}
    try:
        with tempfile.TemporaryDirectory(prefix="archiver-git-") as private:
            repository = opened(folder, timeout)
            view = View(repository, Path(private), repository.tree())
            places = Places(view.tree, apart)
            changes = git_changes.compare(view, places, _MAX_FILE, taken)
            found += _state(document, view)
            found += _index(document, view, changes, {one.path for one in saved.values() if one.redacted})
            names = _names(document, view, changes, found)
    except (GitError, OSError) as error:
        said = f"only the captured files are compared: {one_line(str(error))}"
        found.append(Differing("unknown", None, said))
    for name in sorted(saved.keys() | names.keys()):
        entry, seen = saved.get(name), places.look(name)
        if entry is not None:
            here = None if seen is None else Here(seen, places.at(name))
            found += differs(entry, here, hidden=here is None and places.is_hidden(name))
        elif (names[name] or seen is not None) and not places.is_apart(name):
            what = "changed here, and not in what was captured"
            found.append(Differing("content" if names[name] else "extra", os.fsdecode(name), what))
    return found


def _state(document: GitDocument, view: View) -> Iterator[Differing]:
    now_running = git_state.operation(view.repository.git_folder)
    for what, nothing, then, now in (
        ("HEAD", "no commit", document.head, view.head),
        ("branch", "no branch", document.branch, view.branch),
        ("in progress", "nothing", document.in_progress, now_running),
    ):
        if then != now:
            captured, here = one_line(then or nothing), one_line(now or nothing)
            yield Differing("state", None, f"{what}: {captured} was captured, here it is {here}")


def _index(document: GitDocument, view: View, changes: Changes, redacted: set[str]) -> Iterator[Differing]:
    """What is staged otherwise; `redacted`: paths whose content was not carried as it was."""
    if document.head != view.head:
        if document.staged or changes.staged or changes.stages:
            yield Differing("unknown", None, "the index is not compared: it belongs to another commit here")
        return
    staged = git_index.staged(view, changes, _MAX_FILE, [])
    digests = {
        blob: hashlib.sha256(content).hexdigest() for blob, _, content in git_index.blobs(view, staged)
    }
    now = {(one.path, one.stage): one for each in staged if (one := each.entry(digests)) is not None}
    then = {(one.path, one.stage): one for one in document.staged}
    for key in sorted(now.keys() | then.keys(), key=lambda one: (os.fsencode(one[0]), one[1])):
        yield from _staged_differs(key, then.get(key), now.get(key), redacted)


def _staged_differs(
    key: _Key, then: StagedEntry | None, now: StagedEntry | None, redacted: set[str]
) -> Iterator[Differing]:
    path = key[0]
    if now is None:
        yield Differing("index", path, "was staged, is not staged here")
    elif then is None:
        yield Differing("index", path, "is staged here, was not")
    elif now != then:
        only_content = now.model_copy(update={"sha256": then.sha256}) == then
        if only_content and path in redacted:
            what = "what is staged cannot be compared: credentials were replaced when it was captured"
            yield Differing("unknown", path, what)
        else:
            yield Differing("index", path, "is staged otherwise here")


def _names(document: GitDocument, view: View, changes: Changes, found: list[Differing]) -> dict[bytes, bool]:
    """What differs here from the base that the capture is relative to."""
    names, base = changes.names, document.base
    if base is None:
        return dict.fromkeys(git_changes.tracked(view, ()), False) | names
    if base == view.head:
        return names
    if view.head is None or not view.repository.has_commit(base):
        said = f"commit {base} is not here: only the captured files and uncommitted changes are compared"
        found.append(Differing("unknown", None, said))
        return names
    return names | git_changes.between(view, base, view.head)
