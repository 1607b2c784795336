"""Tree lines of a git work tree: what lies under each path that may differ from the commit."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping

from archiver.git.running import GitError
from archiver.git.view import View
from archiver.git.worktree import entries
from archiver.model.workspace import MAX_TREE_PATH, TreeEntry
from archiver.workspace.found import Found, Skipped, Skips, Stamp, stamp_of
from archiver.workspace.git_changes import Changes
from archiver.workspace.git_places import Places, is_in_git_folder, oddities
from archiver.workspace.options import WorkspaceLimits

_GONE = Stamp(0, 0, 0, 0, 0)
_MAX_ODD = 1000


def found(
    names: Mapping[bytes, bool], places: Places, limits: WorkspaceLimits, skipped: list[Skipped]
) -> Iterator[Found]:
    """What lies under the names, in the order of their bytes; what the commit has and nothing is, as gone."""
    skips = Skips(skipped)
    count, total = 0, 0
    for name in sorted(names):
        if places.is_apart(name):
            continue
        path = os.fsdecode(name)
        if path.count("/") >= limits.depth or len(name) > MAX_TREE_PATH:
            skips.add(path, f"it lies deeper than {limits.depth} folders, or its path is too long")
            continue
        if is_in_git_folder(path):
            skips.add(path, "its name is that of a git folder on some systems")
            continue
        about = places.look(name)
        if about is None or stat.S_ISDIR(about.st_mode):
            if names[name]:
                yield Found(TreeEntry(path, "gone", 0, 0), None, _GONE)
            continue
        if reason := _unfit(about, limits):
            skips.add(path, reason)
            continue
        if count >= limits.files or total + about.st_size > limits.total:
            skips.add(path, "the limits of a workspace are met")
            continue
        if one := _entry(name, path, about, places):
            count, total = count + 1, total + one.entry.size
            yield one
    skips.close()


def _unfit(about: os.stat_result, limits: WorkspaceLimits) -> str | None:
    if stat.S_ISLNK(about.st_mode):
        return None
    if not stat.S_ISREG(about.st_mode):
        return "no file, link or folder"
    if about.st_size > limits.file:
        return f"it has {about.st_size} bytes, the limit of a file is {limits.file}"
    return None


def _entry(name: bytes, path: str, about: os.stat_result, places: Places) -> Found | None:
    stamp, source = stamp_of(about), os.fspath(places.at(name))
    mode, modified = stat.S_IMODE(about.st_mode) & 0o777, stamp.mtime_ns
    if stat.S_ISREG(about.st_mode):
        return Found(TreeEntry(path, "file", mode, modified, about.st_size), source, stamp)
    try:
        target = os.readlink(source)  # noqa: PTH115 - a text as it is
    except OSError:
        return None  # it was taken away meanwhile
    return Found(TreeEntry(path, "link", mode, modified, target=target), None, stamp)


def passed_over(view: View, places: Places, changes: Changes) -> Iterator[Skipped]:
    """What git says nothing of: repositories of their own, special files, folders that cannot be read."""
    for name in changes.repositories:
        if not places.is_apart(name):
            yield Skipped(os.fsdecode(name), "a repository of its own")
    odd = dict(oddities(places, [*changes.modules, *changes.repositories], _MAX_ODD))
    for name in _ignored(view, odd):
        odd.pop(name, None)
    for name, reason in sorted(odd.items()):
        if name not in changes.names:
            yield Skipped(os.fsdecode(name) or ".", reason)


def _ignored(view: View, names: Mapping[bytes, str]) -> list[bytes]:
    """Those that the rules of the repository leave out anyway."""
    asked = b"".join(name + b"\0" for name in names if name)
    hit: list[bytes] = []
    if asked:
        status, _ = view.run("check-ignore", "-z", "--stdin", sink=entries(hit.append), stdin=asked)
        if status not in (0, 1):
            raise GitError("git cannot read the rules of what it ignores")
    return hit
