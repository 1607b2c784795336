"""What in a work tree differs from HEAD: asked through a git folder of our own, and with no file passed over.

An index can tell git not to look at files (`assume-unchanged`, `skip-worktree`), so that changes in them are
not seen. Those marks are taken off in a copy of the index; files that are not there because of them (a sparse
checkout) are counted apart.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from archiver.git.private import private_folder
from archiver.git.repository import GitError, NoRepositoryError, Repository

MAX_MODULES = 64
"""Submodules of one repository."""
MAX_LISTED = 10_000
"""Files that the work tree is not meant to have and that are known by name."""
_MAX_INDEX = 512 << 20
_MODULE = b"160000"


class TooManyChangesError(GitError):
    """More names than the caller takes."""


@dataclass(slots=True)
class Absent:
    """Files of the index that the work tree is not meant to have: how many, and a digest of their names."""

    count: int = 0
    names: Any = field(default_factory=hashlib.sha256)
    first: list[bytes] = field(default_factory=list)
    """The first names: at most `MAX_LISTED`."""

    def add(self, name: bytes) -> None:
        """Count one of them."""
        self.count += 1
        self.names.update(name + b"\0")
        if len(self.first) < MAX_LISTED:
            self.first.append(name)


@dataclass(frozen=True, slots=True)
class Changes:
    """What a work tree has that HEAD has not, and the other way round."""

    tree: Path
    files: dict[bytes, bytes]
    """Names of what differs from HEAD or is untracked; with it what the index alone holds, mostly nothing."""
    modules: dict[bytes, bytes]
    """Submodules, and the commit of each that the index names."""
    absent: Absent


def is_dirty(repository: Repository) -> bool | None:
    """Whether files differ from HEAD or are untracked; None where that cannot be found out safely.

    Submodules are not entered, and content filters such as LFS are not run: a file that only a filter can
    compare counts as changed.
    """
    try:
        return bool(changes(repository, 1 << 16).files)
    except NoRepositoryError:
        return None
    except TooManyChangesError:
        return True


def changes(repository: Repository, limit: int) -> Changes:
    """All changes, every untracked file by itself; `GitError` when the list has more than `limit` bytes.

    Submodules are listed and not entered; of an untracked repository only its folder is named.
    """
    head = repository.head()
    if head is None and not repository.is_unborn():
        raise NoRepositoryError("HEAD leads to no commit")
    tree, common = repository.tree(), repository.common_folder
    sha256 = len(head) == 64 if head else repository.is_sha256()
    with tempfile.TemporaryDirectory(prefix="archiver-git-") as name:
        private = Path(name)
        environ = private_folder(
            private,
            head,
            tree,
            repository.git_folder,
            common,
            sha256=sha256,
            line_ends=repository.line_ends(),
        )
        modules, absent = unmarked(repository, private, environ, tree)
        status, out = repository.privately(
            environ, "status", "--porcelain=v2", "-z", "--untracked-files=all", "--ignore-submodules=all",
            "--no-renames", limit=limit,
        )  # fmt: skip
    if status != 0:
        raise GitError("git cannot compare the work tree")
    if len(out) >= limit:
        raise TooManyChangesError("too many files have uncommitted changes")
    return Changes(tree, _files(out), modules, absent)


def _files(out: bytes) -> dict[bytes, bytes]:
    """The entries of `git status --porcelain=v2 -z`: names, and what of them lies in the index alone."""
    found: dict[bytes, bytes] = {}
    untracked: set[bytes] = set()
    for entry in filter(None, out.split(b"\0")):
        kind = entry[:1]
        if kind == b"1":
            _, state, _, _, index, _, _, blob, name = entry.split(b" ", 8)
            found[inside(name)] = index + blob if b"." not in state or state[:1] == b"D" else b""
        elif kind == b"u":
            found[inside(entry.split(b" ", 10)[10])] = b" ".join(entry.split(b" ", 10)[:10])
        elif kind == b"?":
            untracked.add(inside(entry[2:]))
        else:
            raise GitError("git answers in a form that is not known")
    # Taken out of the index alone, as with `git rm --cached`, it lies there still; else it is only gone.
    gone = {name for name, only in found.items() if only.startswith(b"000000") and name not in untracked}
    return dict.fromkeys(gone | untracked, b"") | {n: only for n, only in found.items() if n not in gone}


def inside(name: bytes) -> bytes:
    """The name itself, if it is one of a file in the work tree."""
    parts = name.removesuffix(b"/").split(b"/")
    if b".." in parts or b"." in parts or not all(parts):
        raise GitError("the index names files outside the work tree, or by a path that is none")
    return name


def unmarked(
    repository: Repository, private: Path, environ: dict[str, str], tree: Path
) -> tuple[dict[bytes, bytes], Absent]:
    """Submodules and absent files of the index; `environ` names a copy where files in it are marked."""
    modules: dict[bytes, bytes] = {}
    absent = Absent()
    marked = {flag: private / flag for flag in ("no-assume-unchanged", "no-skip-worktree")}
    with (
        marked["no-assume-unchanged"].open("wb") as assumed,
        marked["no-skip-worktree"].open("wb") as skipped,
    ):

        def take(entry: bytes) -> None:
            about, _, name = entry.partition(b"\t")
            tag, mode, commit, _ = about.split(b" ", 3)
            if mode == _MODULE:
                modules[inside(name)] = commit
                if len(modules) > MAX_MODULES:
                    raise GitError(f"the repository has more than {MAX_MODULES} submodules")
            elif tag.upper() == b"S":
                _skipped(inside(name), tree, skipped, absent)
            if tag.islower():
                assumed.write(name + b"\0")

        status, _ = repository.privately(environ, "ls-files", "-s", "-v", "-z", sink=entries(take))
    if status != 0:
        raise GitError("git cannot read the index")
    names = {flag: path for flag, path in marked.items() if path.stat().st_size}
    if names:
        environ["GIT_INDEX_FILE"] = str(copied(Path(environ["GIT_INDEX_FILE"]), private / "index"))
    for flag, path in names.items():
        status, _ = repository.privately(environ, "update-index", f"--{flag}", "-z", "--stdin", stdin=path)
        if status != 0:
            raise GitError("git cannot look at the files that its index passes over")
    return modules, absent


def _skipped(name: bytes, tree: Path, skipped: IO[bytes], absent: Absent) -> None:
    """A file that git was told to pass over: one that lies there is looked at all the same."""
    if os.path.lexists(os.path.join(os.fsencode(tree), name)):  # noqa: PTH118 - names are bytes here
        skipped.write(name + b"\0")
    else:
        absent.add(name)


def copied(index: Path, place: Path) -> Path:
    """A copy of the index with its times: git tells by them which files may have changed since.

    One that is a copy already stays.
    """
    if index == place:
        return place
    if index.stat().st_size > _MAX_INDEX:
        raise GitError(f"the index has more than {_MAX_INDEX >> 20} MiB")
    shutil.copy2(index, place)
    return place


def entries(take: Callable[[bytes], None]) -> Callable[[bytes], None]:
    """Gives each entry that ends in NUL to `take`, from pieces of any length."""
    rest = b""

    def sink(piece: bytes) -> None:
        nonlocal rest
        *whole, rest = (rest + piece).split(b"\0")
        for entry in whole:
            take(entry)

    return sink
