"""Whether git would wait on something that is no file: a pipe in the place of a ref or of an index."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from archiver.git.running import GitError

_OWN = ("HEAD", "index", "config.worktree", "commondir", "gitdir", "MERGE_HEAD", "refs")
_COMMON = (
    "config", "packed-refs", "shallow", "info/exclude", "info/attributes", "info/grafts", "refs",
    "objects/info/alternates", "objects/info/commit-graph", "objects/info/packs", "objects/pack",
)  # fmt: skip
_MAX_ENTRIES = 200_000


def entrance(folder: Path) -> Path | None:
    """The `.git` folder or file that is nearest above a folder, as far as that can be seen."""
    for place in (folder, *folder.parents):
        if os.path.lexists(place / ".git"):
            return place / ".git"
    return None


def demand(git_folder: Path, common: Path) -> None:
    """`GitError` that names what of a git folder is neither file nor folder."""
    for folder, names in ((git_folder, _OWN), (common, _COMMON)):
        for name in names:
            _demand(folder, name)


def _demand(folder: Path, name: str) -> None:
    waiting, seen = [name], 0
    while waiting:
        name = waiting.pop()
        seen += 1
        try:
            kind = (folder / name).stat().st_mode
            below = os.listdir(folder / name) if stat.S_ISDIR(kind) else []  # noqa: PTH208 - names alone
        except OSError:
            continue  # it is not there, or git will say what is wrong
        if not stat.S_ISDIR(kind) and not stat.S_ISREG(kind):
            raise GitError(f"{name} in its git folder is no file")
        waiting += [f"{name}/{entry}" for entry in below]
        if seen > _MAX_ENTRIES:
            raise GitError("its git folder has too many entries")
