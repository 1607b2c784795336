"""The tree of a commit as git checks it out: one name that it refuses would cost the whole work tree."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from archiver.git.making import NewRepository
from archiver.git.worktree import entries as split
from archiver.safetext import one_line

_NAMED: Final = 5


@dataclass(frozen=True, slots=True)
class Usable:
    """What is checked out for a commit: itself, or a tree without what git refuses."""

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
                f"commit {self.commit} has paths that are not written and that git calls deleted, as some "
                f"system takes them for a git folder, or they lead elsewhere ({self.count}): {named}{more}"
            )


def usable(new: NewRepository, commit: str) -> Usable:
    """Find what of a commit can be checked out; the index is of no use afterwards where that is not all."""
    status, _ = new.run("read-tree", "--dry-run", commit)
    if status == 0:
        return Usable(commit, commit)
    tree = _without(new, commit)
    refused: list[str] = []
    count = 0

    def take(name: bytes) -> None:
        nonlocal count
        count += 1
        if count <= _NAMED:
            refused.append(os.fsdecode(name))

    new.ask("diff-tree", "-r", "-z", "--name-only", "--no-renames", commit, tree, "--", sink=split(take))
    return Usable(commit, tree, tuple(refused), count)


def _without(new: NewRepository, commit: str) -> str:
    """A tree of all that the index takes: of a list it passes over single names, of a tree it takes none."""
    names = new.git_folder / "names"
    try:
        with names.open("wb") as file:

            def keep(piece: bytes) -> None:
                file.write(piece)

            new.ask("ls-tree", "-r", "-z", "--full-tree", commit, sink=keep)
        new.ask("read-tree", "--empty")
        new.ask("update-index", "-z", "--index-info", stdin=names)
    finally:
        names.unlink()
    return new.ask("write-tree").decode("ascii").strip()
