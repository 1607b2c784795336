"""The tree of a commit as git takes it: a name that it refuses would cost the whole work tree."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from archiver.errors import ArchiveFormatError
from archiver.git.making import NewRepository
from archiver.git.worktree import entries as split
from archiver.safetext import one_line
from archiver.workspace.git_overlay import check_name

_NAMED: Final = 5
_LINK: Final = b"120000"
_MODULES: Final = re.compile(r"\.gitmodules|gitmod~[0-9]+|gi7e[0-9a-f]*~[0-9]+", re.IGNORECASE)
"""The addresses of submodules, by their short names too: git reads no link there."""


@dataclass(frozen=True, slots=True)
class Usable:
    """What is checked out for a commit: itself, or a tree without what is refused."""

    commit: str
    tree: str
    refused: tuple[str, ...] = ()
    """The first of the paths that are left out."""
    count: int = 0

    def said(self) -> Iterator[str]:
        """What is not there, for a person."""
        if self.count:
            named = ", ".join(map(one_line, self.refused))
            more = ", …" if self.count > len(self.refused) else ""
            yield (
                f"{self.count} paths of commit {self.commit} are not written, and git calls them deleted: "
                f"some system takes them for a git folder, or they lead elsewhere: {named}{more}"
            )


def usable(new: NewRepository, commit: str) -> Usable:
    """Find what of a commit can be checked out; the index is of no use afterwards where that is not all."""
    refused: list[str] = []
    count = 0

    def take(entry: bytes) -> None:
        nonlocal count
        if not _is_refused(entry):
            return
        count += 1
        if count <= _NAMED:
            refused.append(_path(entry))

    _each(new, commit, take)
    if not count:
        return Usable(commit, commit)
    return Usable(commit, _without(new, commit), tuple(refused), count)


def _without(new: NewRepository, commit: str) -> str:
    """A tree of the rest."""
    kept = new.git_folder / "kept"
    with kept.open("wb") as file:

        def keep(entry: bytes) -> None:
            if not _is_refused(entry):
                file.write(entry + b"\0")

        _each(new, commit, keep)
    new.ask("read-tree", "--empty")
    new.ask("update-index", "-z", "--index-info", stdin=kept)
    kept.unlink()
    return new.ask("write-tree").decode("ascii").strip()


def _each(new: NewRepository, commit: str, take: Callable[[bytes], None]) -> None:
    new.ask("ls-tree", "-r", "-z", "--full-tree", commit, sink=split(take))


def _path(entry: bytes) -> str:
    return os.fsdecode(entry.partition(b"\t")[2])


def _is_refused(entry: bytes) -> bool:
    path = _path(entry)
    try:
        check_name(path)
    except ArchiveFormatError:
        return True
    leaf = path.rpartition("/")[2].partition(":")[0].rstrip(" .")
    return entry.startswith(_LINK) and _MODULES.fullmatch(leaf) is not None
