"""A repository as it stood at one moment, through a git folder of our own: its configuration is not read."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Generator
from contextlib import suppress
from pathlib import Path

from archiver.git import regular
from archiver.git.private import private_folder
from archiver.git.repository import NoRepositoryError, Repository
from archiver.git.running import MAX_OUTPUT, GitError, Input
from archiver.git.worktree import copied

_MAX_SMALL = 1 << 20
"""Bytes of a file that is copied beside the index."""
_MAX_SHARED = 4


def opened(folder: Path, timeout: float) -> Repository:
    """The repository around a folder; `GitError`, also where git would wait on what is no file."""
    entrance = regular.entrance(folder.absolute())
    if entrance is not None and entrance.is_dir():
        regular.demand(entrance, entrance)
    repository = Repository(folder, timeout)
    regular.demand(repository.git_folder, repository.common_folder)
    return repository


class View:
    """HEAD and index of a repository as they were when the view was made, and its objects.

    `tree`: the work tree to compare with; None where only objects are asked for. `private`: an empty folder
    that lives as long as the view.
    """

    def __init__(self, repository: Repository, private: Path, tree: Path | None) -> None:
        self.repository = repository
        self.private = private
        self.tree = tree or private
        self.head = repository.head()
        self.branch = repository.branch()
        if tree is not None and self.head is None and not repository.is_unborn():
            raise NoRepositoryError("HEAD leads to no commit")
        common = repository.common_folder
        self.sha256 = len(self.head) == 64 if self.head else repository.is_sha256()
        self.line_ends = repository.line_ends()
        self.environ = private_folder(
            private,
            self.head,
            self.tree,
            repository.git_folder,
            common,
            sha256=self.sha256,
            line_ends=self.line_ends,
        )
        self.shallow = self._copy(common / "shallow", "shallow")
        self._copy(common / "info" / "attributes", "info/attributes")
        self.environ["GIT_INDEX_FILE"] = str(private / "index")
        if tree is not None:
            self._copy_index(repository.git_folder)

    def _copy(self, file: Path, name: str) -> bool:
        if not file.is_file() or file.stat().st_size > _MAX_SMALL:
            return False
        shutil.copyfile(file, self.private / name)
        return True

    def _copy_index(self, git_folder: Path) -> None:
        """The index, and the files that hold the most of it where it is split."""
        for shared in sorted(git_folder.glob("sharedindex.*"))[:_MAX_SHARED]:
            copied(shared, self.private / shared.name)
        with suppress(FileNotFoundError):  # before the first `git add`
            copied(git_folder / "index", self.private / "index")

    def run(
        self,
        *arguments: str,
        limit: int = MAX_OUTPUT,
        sink: Callable[[bytes], None] | None = None,
        stdin: Input = None,
    ) -> tuple[int, bytes]:
        """Exit status and output of one question."""
        return self.repository.privately(self.environ, *arguments, limit=limit, sink=sink, stdin=stdin)

    def ask(
        self,
        *arguments: str,
        limit: int = MAX_OUTPUT,
        sink: Callable[[bytes], None] | None = None,
        stdin: Input = None,
    ) -> bytes:
        """The output of a question that must have an answer; `GitError` where it has none, or is too long."""
        status, out = self.run(*arguments, limit=limit, sink=sink, stdin=stdin)
        if status != 0:
            command = next((word for word in arguments if word.isidentifier() or "-" in word[1:]), "")
            raise GitError(f"git {command} failed")
        if sink is None and len(out) >= limit:
            raise GitError("git has more to say than fits")
        return out

    def pieces(self, *arguments: str, stdin: Input = None) -> Generator[bytes, None, None]:
        """A large output, piece by piece; `GitError` if git fails."""
        return self.repository.streamed(self.environ, *arguments, stdin=stdin)
