"""Capture a git work tree: what is nowhere else, relative to a commit that a remote has or that travels.

A folder below the top of a work tree stands for the whole of it: index, HEAD and operations belong to all of
it. The repository is only looked at; what git has to write goes into the scratch folder.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ValidationError

from archiver.errors import InputNotFoundError
from archiver.git import objects
from archiver.git.addresses import stripped
from archiver.git.running import GitError
from archiver.git.view import View, opened
from archiver.git.worktree import MAX_LISTED
from archiver.model.git_document import COMMITS, GitDocument, Remote
from archiver.scratch import Scratch
from archiver.workspace import git_changes, git_commits, git_entries, git_index, git_modules, git_state
from archiver.workspace.defaults import PATTERNS
from archiver.workspace.found import Capture, Found, Skipped
from archiver.workspace.git_changes import Changes, Taken
from archiver.workspace.git_commits import CannotTravelError, Commits
from archiver.workspace.git_index import Staged
from archiver.workspace.git_places import Places
from archiver.workspace.options import CaptureOptions

GIT: str = ".git"
"""The path under which what concerns the repository as a whole is named as left out."""
_AS_FOLDER = "mend it (`git fsck` says what is wrong), or save the folder without its history"


@dataclass(kw_only=True)
class GitCapture(Capture):
    """A captured work tree, and ways to read the rest of its state.

    `git` has no `staged` yet: names of object members are known when contents have been redacted, and
    `finished` puts them in. `commits` writes the bundle of the commits that no remote has, None where there
    are none to carry; whoever calls it has looked at all `objects()` before.
    """

    git: GitDocument
    tree: Path
    staged: tuple[Staged, ...]
    commits: Callable[[Callable[[bytes], None]], None] | None
    _work: _Work = field(repr=False)
    _carried: Commits | None = field(repr=False, default=None)

    def objects(self) -> Iterator[objects.Object]:
        """Every object that the bundle of commits would carry: id, type, bytes, content."""
        if self._carried is not None:
            with _translated(self.tree):
                yield from self._carried.objects()

    def staged_blobs(self) -> Iterator[tuple[str, int, bytes]]:
        """Contents that the index has: object id, bytes, content; each once."""
        with _translated(self.tree):
            yield from git_index.blobs(self._work.view, self.staged)

    def without_commits(self) -> GitCapture:
        """The same state where the commits may not travel: relative to the newest that a remote has."""
        return self if self._carried is None else self._work.captured(None)

    def finished(self, digests: Mapping[str, str]) -> GitDocument:
        """The document with the index: `digests` gives the object member of each staged blob.

        An entry whose content is not carried is left out.
        """
        entries = (one.entry(digests) for one in self.staged)
        return self.git.model_copy(update={"staged": tuple(one for one in entries if one is not None)})


def capture_git(root: Path, options: CaptureOptions, scratch: Scratch, apart: Sequence[Path]) -> GitCapture:
    """Capture the work tree around `root`; `InputNotFoundError` where it is in none or git cannot read it.

    Lives as long as the scratch folder. `apart`: folders that are never captured.
    """
    with _translated(root):
        work = _Work.begun(root, options, scratch, apart)
        return work.captured(work.commits())


@contextmanager
def _translated(root: Path) -> Iterator[None]:
    """What git cannot do, as an error of this package."""
    try:
        yield
    except (GitError, OSError, ValidationError) as error:
        why = (error.strerror if isinstance(error, OSError) else None) or error
        raise InputNotFoundError(
            f"the git work tree at {root} cannot be captured: {why}", remedy=_AS_FOLDER
        ) from error


@dataclass
class _Work:
    """One look at a work tree, from which captures relative to different commits are made."""

    view: View
    places: Places
    options: CaptureOptions
    changes: Changes
    document: GitDocument
    local: git_commits.Local
    skipped: list[Skipped]
    began: int

    @classmethod
    def begun(cls, root: Path, options: CaptureOptions, scratch: Scratch, apart: Sequence[Path]) -> _Work:
        began = time.time_ns()
        repository = opened(root, options.timeout)
        tree = repository.tree()
        private = scratch.new_path("git")
        private.mkdir(mode=0o700)
        view = View(repository, private, tree)
        if options.defaults:
            _add_defaults(private / "info" / "exclude")
        places = Places(tree, apart)
        skipped: list[Skipped] = []
        changes = git_index.compared(
            view, places, options.limits.file, Taken(options.ignore, options.include), skipped
        )
        document = _document(view, places, changes, skipped)
        tips = _tips(view, document)
        seen = git_commits.remote_tips(view, [remote.name for remote in document.remotes])
        try:
            local = git_commits.local(view, tips, seen)
        except GitError as error:
            skipped.append(_stays(error))
            local = git_commits.Local(0, {}, (), None, b"")
        skipped += git_entries.passed_over(view, places, changes)
        return cls(view, places, options, changes, document, local, skipped, began)

    def commits(self) -> Commits | None:
        """The commits that no remote has; None where there are none, or where they cannot travel."""
        limits = self.options.limits
        try:
            return git_commits.commits(self.view, self.local, limits.file, limits.total)
        except GitError as error:
            self.skipped.append(_stays(error))
            return None

    def captured(self, carried: Commits | None) -> GitCapture:
        """The capture with these commits."""
        head = self.view.head
        is_here_alone = head is not None and (head in self.local.tips.values() or not self.local.asked)
        base = head if carried is not None or not is_here_alone else self.local.beginning
        names, base = self._names(base)
        document = self.document.model_copy(update={"base": base})
        if carried is not None:
            document = document.model_copy(
                update={
                    "commits": COMMITS,
                    "commit_refs": dict(carried.refs),
                    "prerequisites": carried.prerequisites,
                }
            )
        skipped = list(self.skipped)
        return GitCapture(
            found=self._found(names, skipped),
            skipped=skipped,
            git=document,
            tree=self.view.tree,
            began=self.began,
            staged=git_index.staged(self.view, self.changes, self.options.limits.file, skipped),
            commits=None if carried is None else self._writer(carried),
            _work=self,
            _carried=carried,
        )

    def _writer(self, carried: Commits) -> Callable[[Callable[[bytes], None]], None]:
        def write(sink: Callable[[bytes], None]) -> None:
            with _translated(self.view.tree):
                carried.stream(sink)

        return write

    def _names(self, base: str | None) -> tuple[dict[bytes, bool], str | None]:
        """What may differ from the base, and whether the base has it; without a base all there is."""
        names = dict(self.changes.names)
        if base is not None and base == self.view.head:
            return names, base
        if base is not None and self.view.head is not None:
            with suppress(GitError):  # trees are missing: everything travels
                return names | git_changes.between(self.view, base, self.view.head), base
        files = git_changes.tracked(self.view, self.changes.modules) | names.keys()
        return dict.fromkeys(files, False), None

    def _found(self, names: dict[bytes, bool], skipped: list[Skipped]) -> Iterator[Found]:
        yield from git_entries.found(names, self.places, self.options.limits, skipped)


def _add_defaults(rules: Path) -> None:
    """The archiver's own patterns, before the repository's: whatever it says itself counts more."""
    own = rules.read_bytes() if rules.exists() else b""
    rules.write_bytes("".join(f"{default.pattern}\n" for default in PATTERNS).encode() + own)


def _stays(error: GitError) -> Skipped:
    what = "commits that no remote has are not carried, their changes are"
    why = str(error) if isinstance(error, CannotTravelError) else f"git cannot read them ({error})"
    return Skipped(GIT, f"{what}: {why}")


def _tips(view: View, document: GitDocument) -> dict[str, str]:
    """What must be in the history that is restored, by the name of a ref."""
    tips: dict[str, str] = {}
    if view.head is not None:
        if document.branch is not None and _is_plain(document.branch):
            tips[f"refs/heads/{document.branch}"] = view.head
        tips["HEAD"] = view.head
    return tips | git_state.tips(view, document.in_progress_files)


def _is_plain(branch: str) -> bool:
    """Whether a branch may stand in a bundle: a line there ends at a line end."""
    return branch.isprintable() and " " not in branch


def _document(view: View, places: Places, changes: Changes, skipped: list[Skipped]) -> GitDocument:
    """All of the state that is neither file, index nor commit."""
    repository = view.repository
    remotes = tuple(_remotes(view, skipped))
    operation = git_state.operation(repository.git_folder)
    upstream, ahead, behind = _upstream(view)
    if changes.absent.count > MAX_LISTED:
        skipped.append(
            Skipped(
                GIT, f"a restore writes the {changes.absent.count} files that a sparse checkout leaves out"
            )
        )
    return GitDocument(
        head=view.head,
        branch=view.branch,
        remotes=remotes,
        upstream=upstream,
        ahead=ahead,
        behind=behind,
        submodules=tuple(git_modules.submodules(view, places, changes.modules)),
        lfs=tuple(os.fsdecode(name) for name in changes.pointers),
        absent=tuple(map(os.fsdecode, changes.absent.first)) if changes.absent.count <= MAX_LISTED else (),
        line_ends={key: value.lower() for key, value in view.line_ends.items()},
        linked_worktree=repository.git_folder != repository.common_folder,
        in_progress=operation,
        in_progress_files=tuple(git_state.state_files(repository.git_folder, operation, skipped)),
        shallow=view.shallow,
        object_format="sha256" if view.sha256 else "sha1",
    )


def _remotes(view: View, skipped: list[Skipped]) -> Iterator[Remote]:
    """The remotes of the repository's own file, the first address of each."""
    known: set[str] = set()
    for key, address in view.repository.settings(r"^remote\..*\.url$", 1 << 20):
        name = key.removeprefix("remote.").removesuffix(".url")
        if name in known:
            continue
        known.add(name)
        url = stripped(address)
        if url is None:
            skipped.append(Skipped(GIT, "a remote is not carried: its address is of an unknown form"))
        else:
            yield Remote(name=name, url=url)


def _upstream(view: View) -> tuple[str | None, int | None, int | None]:
    """The remote-tracking branch that the branch follows, and how many commits lie between the two."""
    branch = view.branch
    if branch is None:
        return None, None, None
    settings = dict(view.repository.settings(r"^branch\..*\.(remote|merge)$", 1 << 20))
    remote, merge = settings.get(f"branch.{branch}.remote"), settings.get(f"branch.{branch}.merge")
    if not remote or not merge or remote == ".":
        return None, None, None
    name = f"{remote}/{merge.removeprefix('refs/heads/')}"
    tip = view.repository.tip(f"refs/remotes/{name}")
    if tip is None or view.head is None or view.shallow:
        return name, None, None
    with suppress(GitError):
        distance = view.repository.distance(view.head, tip)
        return name, distance.ahead, distance.behind
    return name, None, None
