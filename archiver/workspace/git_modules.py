"""Submodules of a work tree: what the index names, what is checked out. Their content is not carried."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from time import monotonic

from archiver.git.addresses import stripped
from archiver.git.repository import GitError, Repository
from archiver.git.view import View
from archiver.git.worktree import is_dirty
from archiver.model.git_document import Submodule
from archiver.workspace.git_places import Places

_MAX_FILE = 1 << 20


def submodules(view: View, places: Places, modules: dict[bytes, bytes]) -> Iterator[Submodule]:
    """Each submodule of the index, in the order of their paths."""
    urls = _urls(view, places) if modules else {}
    for name, commit in sorted(modules.items()):
        checked_out, dirty = (
            _inside(places.at(name), view.repository.deadline) if places.is_folder(name) else (None, None)
        )
        yield Submodule(
            path=os.fsdecode(name),
            commit=commit.decode("ascii"),
            url=urls.get(name),
            checked_out=checked_out,
            dirty=dirty,
        )


def _inside(folder: Path, deadline: float) -> tuple[str | None, bool | None]:
    if not os.path.lexists(folder / ".git"):
        return None, None
    try:
        repository = Repository(folder, deadline - monotonic())
        if repository.tree().resolve() != folder.resolve():
            return None, None
        return repository.head(), is_dirty(repository)
    except (GitError, OSError):
        return None, None


def _urls(view: View, places: Places) -> dict[bytes, str]:
    """Addresses by path, as `.gitmodules` in the work tree gives them, without credentials."""
    about = places.look(b".gitmodules")
    if about is None or not stat.S_ISREG(about.st_mode) or about.st_size > _MAX_FILE:
        return {}
    status, out = view.run(
        "config", "--file", str(places.at(b".gitmodules")), "--no-includes", "-z",
        "--get-regexp", r"^submodule\..*\.(path|url)$", limit=_MAX_FILE,
    )  # fmt: skip
    if status != 0:
        return {}
    paths: dict[bytes, bytes] = {}
    urls: dict[bytes, bytes] = {}
    for entry in filter(None, out.split(b"\0")):
        key, _, value = entry.partition(b"\n")
        name, _, field = key.rpartition(b".")
        (paths if field == b"path" else urls)[name] = value
    found = ((path, stripped(urls.get(name, b"").decode("utf-8", "replace"))) for name, path in paths.items())
    return {path: url for path, url in found if url is not None}
