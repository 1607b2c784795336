"""What differs between a captured work tree and a folder that is there, for a restore that only shows."""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from archiver.git.running import GitError
from archiver.git.view import View, opened
from archiver.model.git_document import GitDocument
from archiver.model.workspace import TreeEntry
from archiver.safetext import one_line
from archiver.workspace import git_changes, git_state
from archiver.workspace.git_changes import Taken
from archiver.workspace.git_places import Places

_TIMEOUT = 60.0
_MAX_FILE = 64 << 20
_CHUNK = 1 << 20


def shows_difference(
    document: GitDocument, entries: Iterable[TreeEntry], folder: Path, *, timeout: float = _TIMEOUT
) -> list[str]:
    """One line for each thing that is otherwise in `folder`; nothing is changed there.

    A folder that is no repository is compared file by file, which is said.
    """
    saved = {os.fsencode(entry.path): entry for entry in entries}
    lines: list[str] = []
    places = Places(folder)
    names: dict[bytes, bool] = {}
    try:
        with tempfile.TemporaryDirectory(prefix="archiver-git-") as private:
            repository = opened(folder, timeout)
            view = View(repository, Path(private), repository.tree())
            places = Places(view.tree)
            lines += _state(document, view)
            names = _names(document, view, places, lines)
    except (GitError, OSError) as error:
        lines.append(f"only the captured files are compared: {one_line(str(error))}")
    for name in sorted(saved.keys() | names.keys()):
        shown = one_line(os.fsdecode(name))
        entry = saved.get(name)
        if entry is not None:
            lines += (f"{shown}: {what}" for what in _differs(entry, name, places))
        elif names[name] or places.look(name) is not None:
            lines.append(f"{shown}: changed here, and not in what was captured")
    return lines


def _state(document: GitDocument, view: View) -> Iterator[str]:
    if view.head != document.head:
        yield f"HEAD: {document.head or 'no commit'} was captured, here it is {view.head or 'no commit'}"
    if view.branch != document.branch:
        then, now = document.branch or "no branch", view.branch or "no branch"
        yield f"branch: {one_line(then)} was captured, here it is {one_line(now)}"
    now_running = git_state.operation(view.repository.git_folder)
    if now_running != document.in_progress:
        then, now = document.in_progress or "nothing", now_running or "nothing"
        yield f"in progress: {then} was captured, here it is {now}"


def _names(document: GitDocument, view: View, places: Places, lines: list[str]) -> dict[bytes, bool]:
    """What differs here from the base that the capture is relative to."""
    names = git_changes.compare(view, places, _MAX_FILE, Taken()).names
    base = document.base
    if base is None:
        return dict.fromkeys(git_changes.tracked(view, ()), False) | names
    if base == view.head:
        return names
    if view.head is None or not view.repository.has_commit(base):
        lines.append(
            f"commit {base} is not here: only the captured files and uncommitted changes are compared"
        )
        return names
    return names | git_changes.between(view, base, view.head)


def _differs(entry: TreeEntry, name: bytes, places: Places) -> Iterator[str]:
    about = places.look(name)
    if about is None or stat.S_ISDIR(about.st_mode):
        if entry.type in ("file", "link"):
            yield "was captured, is not here"
        return
    if entry.type == "gone":
        yield "is here, was not there any more"
    elif entry.type == "link":
        if not stat.S_ISLNK(about.st_mode) or os.readlink(places.at(name)) != entry.target:  # noqa: PTH115
            yield "is not the link that was captured"
    elif not stat.S_ISREG(about.st_mode):
        yield "is no file here"
    else:
        yield from _file_differs(entry, name, about, places)


def _file_differs(entry: TreeEntry, name: bytes, about: os.stat_result, places: Places) -> Iterator[str]:
    if entry.redacted:
        yield "cannot be compared: credentials in it were replaced when it was captured"
    elif about.st_size != entry.size or _digest(places.at(name)) != entry.sha256:
        yield "has another content here"
    if stat.S_IMODE(about.st_mode) & 0o777 != entry.mode:
        yield f"has mode {stat.S_IMODE(about.st_mode) & 0o777:o} here, {entry.mode:o} was captured"


def _digest(file: Path) -> str | None:
    try:
        handle = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    digest = hashlib.sha256()
    try:
        left = os.fstat(handle).st_size
        while left > 0 and (chunk := os.read(handle, min(left, _CHUNK))):
            digest.update(chunk)
            left -= len(chunk)
    except OSError:
        return None
    finally:
        os.close(handle)
    return digest.hexdigest()
