"""Make a work tree again from its captured state: a new repository that borrows nothing.

No linked work tree of a repository at hand is made, because that would write into its git folder; objects are
copied from it instead, past its configuration. Nothing that a capture says is run: no hooks, no filters, and
of configuration only remotes, the upstream of the branch and how line ends are converted.
"""

from __future__ import annotations

import shlex
import shutil
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from archiver import jsonio
from archiver.errors import ArchiveFormatError, InputNotFoundError
from archiver.git.addresses import stripped
from archiver.git.making import NewRepository, pieces_of, unbundled
from archiver.git.repository import Repository
from archiver.git.running import GitError
from archiver.git.view import View, opened
from archiver.model.git_document import GitDocument
from archiver.model.workspace import TreeEntry
from archiver.safetext import one_line
from archiver.workspace import git_restoring
from archiver.workspace.git_overlay import Overlay

TIMEOUT = 600.0
"""Seconds for one question to git: a checkout of a large tree is one."""
BESIDE = ".checkpoint-git"
"""Folder for what cannot be put to use without the commits that are missing."""
_ALONE = "the changed files were written, the rest of the tree was not"
_WITHOUT_GIT = "install git, one that knows the object format of the repository, and restore again"
Content = Callable[[str], Path]


@dataclass(frozen=True, slots=True)
class BaseMissing:
    """Commits without which the work tree cannot be made again, and where to get them."""

    commits: tuple[str, ...]
    remotes: tuple[str, ...]
    """Addresses of the remotes that the repository had."""
    gone: tuple[str, ...]
    """Paths that the base has and the work tree had not."""

    @property
    def remedy(self) -> str:
        """What to do next."""
        plain = next((remote for remote in self.remotes if stripped(remote) == remote), None)
        clone = f"`git clone {shlex.quote(plain)}`, then " if plain else "find a clone of it, and "
        return f"{clone}restore again and name that clone: it must have commit {self.commits[0]}"


@dataclass(frozen=True, slots=True)
class GitWritten:
    """What was made: notes for a person; `missing` where commits were, so that only changed files are."""

    notes: tuple[str, ...]
    missing: BaseMissing | None = None


def write_git(
    document: GitDocument,
    entries: Iterable[TreeEntry],
    content: Content,
    commits: Path | None,
    into: Path,
    repository: Path | None = None,
    *,
    timeout: float = TIMEOUT,
) -> GitWritten:
    """Make the work tree in the new or empty folder `into`; `repository` is a clone that has the base.

    `content` gives the file of an object member by its digest. Errors: `InputNotFoundError` where the clone
    cannot be read, `ArchiveFormatError` where the state does not hold.
    """
    into.mkdir(parents=True, exist_ok=True)
    into = into.resolve()
    try:
        return _Writing(document, content, commits, into, timeout).written(list(entries), repository)
    except GitError as error:
        raise ArchiveFormatError(
            f"the git work tree cannot be made again in {into}: {error}",
            remedy="the changed files lie in the bundle: `workspace/tree` names the member of each",
        ) from error


class _Writing:
    def __init__(
        self, document: GitDocument, content: Content, commits: Path | None, into: Path, timeout: float
    ) -> None:
        self._document = document
        self._content = content
        self._commits = commits if document.commits is not None else None
        self._into = into
        self._timeout = timeout

    def written(self, entries: list[TreeEntry], repository: Path | None) -> GitWritten:
        sha256 = self._document.object_format == "sha256"
        try:
            new = NewRepository(self._into, self._timeout, sha256=sha256)
        except GitError as error:
            notes = f"{error}: {_ALONE}", _WITHOUT_GIT
            return GitWritten((*notes, *self._files_alone(entries)[0]))
        if repository is not None:
            self._copy_history(new, repository)
        missing = self._take_bundle(new, sha256=sha256)
        base = self._document.base
        if base is not None and base not in missing and not new.has([base]):
            missing.append(base)
        if missing:
            return self._apart(entries, tuple(missing))
        return GitWritten(tuple(git_restoring.restored(new, self._document, entries, self._content)))

    def _copy_history(self, new: NewRepository, repository: Path) -> None:
        """Objects of what is needed, from a clone at hand, past its configuration."""
        wanted = {*git_restoring.needed(self._document)}
        try:
            with tempfile.TemporaryDirectory(prefix="archiver-git-") as name:
                view = View(_clone(repository, self._timeout), Path(name), None)
                if view.sha256 != (self._document.object_format == "sha256"):
                    return
                git_restoring.copy(view, new, wanted)
        except (GitError, OSError) as error:
            raise InputNotFoundError(
                f"the clone at {repository} cannot be read: {error}",
                remedy="name another clone of the same project, or none",
            ) from error

    def _take_bundle(self, new: NewRepository, *, sha256: bool) -> list[str]:
        """Take the commits that travelled; gives those that they need and that are not here."""
        if self._commits is None:
            return []
        refs, needed, start = unbundled(self._commits, sha256=sha256)
        if refs and new.has(refs.values()) == set(refs.values()):
            return []  # the clone at hand has them all
        missing = sorted(set(needed) - new.has(needed))
        if not missing:
            new.take_pack(pieces_of(self._commits, start))
            if not new.is_connected(refs.values()):
                raise GitError("the commits that travelled are not whole")
        return missing

    def _apart(self, entries: list[TreeEntry], missing: tuple[str, ...]) -> GitWritten:
        """The changed files alone, because commits are missing."""
        notes, gone = self._files_alone(entries)
        said = (
            f"commit {missing[0]} is not here: the changed files were written, the rest of the tree was not"
        )
        remotes = tuple(remote.url for remote in self._document.remotes)
        return GitWritten((said, *notes), BaseMissing(missing, remotes, gone))

    def _files_alone(self, entries: list[TreeEntry]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Write the changed files, and beside them what the rest is made of; notes, and what is gone."""
        if (self._into / ".git").exists():  # without git it was not made
            shutil.rmtree(self._into / ".git")
        names = {entry.path.partition("/")[0] for entry in entries}
        beside = next(name for name in _free_names() if name not in names)
        overlay = Overlay(self._into, self._content)
        gone = tuple(one.path for one in overlay.put(entries))
        self._lay_beside(self._into / beside)
        state = f"the state of git, and commits that no remote has, lie in {beside}"
        return (state, *overlay.notes, *(f"not there any more: {one_line(path)}" for path in gone)), gone

    def _lay_beside(self, folder: Path) -> None:
        folder.mkdir()
        (folder / "git.json").write_bytes(jsonio.canonical(self._document.document()))
        if self._commits is not None:
            shutil.copyfile(self._commits, folder / "commits.bundle")
        digests = {one.sha256 for one in self._document.staged if one.sha256 is not None}
        for digest in sorted(digests):
            (folder / "staged").mkdir(exist_ok=True)
            shutil.copyfile(self._content(digest), folder / "staged" / digest)


def _free_names() -> Iterable[str]:
    yield BESIDE
    count = 0
    while True:
        count += 1
        yield f"{BESIDE}-{count}"


def _clone(folder: Path, timeout: float) -> Repository:
    """A clone with a work tree, or a bare one."""
    try:
        return opened(folder, timeout)
    except GitError:
        return Repository(folder, timeout, exactly=True)
