"""Probe `git_commit`: whether the work tree still stands at the commit the checkpoint was taken at."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from archiver.freshness import files
from archiver.freshness.probe import Context
from archiver.freshness.verdict import State, Verdict
from archiver.git.repository import OBJECT_ID, GitError, NoRepositoryError, Repository
from archiver.git.worktree import is_dirty
from archiver.model import JsonValue

ELSEWHERE = "run it in a work tree of the repository to compare with that one"
SHARE = 0.8
"""Part of a probe's time that git may use, so that git is ended before the probe is given up."""
_ACCEPT = "`--accept git_commit` goes on anyway"
_PLACES = ("git_commit", "lockfiles", "installed")
"""Probes that remember the folder they looked at."""


def workspace_of(probes: Mapping[str, JsonValue]) -> Path | None:
    """The folder to compare with: the one the run worked in if it can be entered here, else the current one.

    None where the current folder is gone too.
    """
    for name in _PLACES:
        captured = probes.get(name)
        path = captured.get("path") if isinstance(captured, dict) else None
        if isinstance(path, str) and "\0" not in path and Path(path).is_absolute() and _usable(Path(path)):
            return Path(path)
    try:
        here = Path.cwd()
    except OSError:
        return None
    captured = probes.get("git_commit")
    within = captured.get("within") if isinstance(captured, dict) else None
    return _part(here, within) if isinstance(within, str) else here


def _part(here: Path, within: str) -> Path:
    """The same part of the repository at hand that the run worked in, where it has one."""
    try:
        root = [here, *files.above(here)][-1]
        part = (root / within).resolve()
        is_part = files.exists(root / ".git") and part.is_relative_to(root.resolve())
        return root / within if is_part and _usable(part) else here
    except (files.UnreadableError, OSError, ValueError, RuntimeError):
        return here


def _usable(folder: Path) -> bool:
    """Another user's folder, or a name longer than the system allows, is as good as none."""
    try:
        return folder.is_dir() and os.access(folder, os.X_OK)
    except (OSError, ValueError):
        return False


class GitCommitProbe:
    """FRESH at the same commit, STALE at any other, UNKNOWN where the two cannot be compared."""

    name = "git_commit"

    def capture(self, context: Context) -> JsonValue | None:
        """`{path, commit, branch}`; `commit` is null before the first one. None without a repository.

        `within` is there where the folder is a part of its repository: which one.
        """
        if context.workspace is None:
            return None
        try:
            repository = Repository(context.workspace, context.timeout * SHARE)
            commit = repository.head()
            if commit is None and not repository.is_unborn():
                return None
            branch = repository.branch()
        except (GitError, OSError):
            return None
        within = _within(context.workspace)
        found: JsonValue = {"path": str(context.workspace), "commit": commit, "branch": branch}
        return found | {"within": within} if within else found

    def judge(self, captured: JsonValue, context: Context) -> Verdict:
        commit, branch, was_dirty = _remembered(captured)
        if context.workspace is None:
            return self._unknown("no workspace folder is known", ELSEWHERE)
        try:
            repository = Repository(context.workspace, context.timeout * SHARE)
            head = repository.head()
            facts = f" in {context.workspace}{_facts(repository, was_dirty, branch)}"
            if head is None and not repository.is_unborn():
                return self._unknown(f"HEAD leads to no commit{facts}", "mend the repository: `git fsck`")
            if head == commit:
                at = f"still at {commit[:12]}" if commit else "no commit, then and now,"
                return self._answer("FRESH", f"{at}{facts}", None)
            if commit is None:
                return self._answer("STALE", f"there was no commit then; HEAD is {head}{facts}", _ACCEPT)
            if not repository.has_commit(commit):
                return self._unknown(f"there is no commit {commit[:12]}{facts}", _fetch(repository, commit))
            moved = _moved(repository, head, commit)
        except NoRepositoryError as error:
            return self._unknown(str(error), ELSEWHERE)
        except GitError as error:
            return self._unknown(str(error), None)
        except OSError as error:
            evidence = f"{context.workspace} cannot be looked at: {error.strerror}"
            return self._unknown(evidence, ELSEWHERE)
        remedy = f"look at `git log {commit[:12]}...HEAD`, or `git checkout {commit}`; {_ACCEPT}"
        return self._answer("STALE", f"{moved}{facts}", remedy)

    def _answer(self, state: State, evidence: str, remedy: str | None) -> Verdict:
        return Verdict(probe=self.name, state=state, evidence=evidence, remedy=remedy)

    def _unknown(self, evidence: str, remedy: str | None) -> Verdict:
        return self._answer("UNKNOWN", evidence, remedy)


def _within(workspace: Path) -> str | None:
    """The path of a folder in its repository; None for the repository itself."""
    try:
        around = files.above(workspace)
    except files.UnreadableError:
        return None
    return workspace.relative_to(around[-1]).as_posix() if around else None


def _remembered(captured: JsonValue) -> tuple[str | None, str | None, bool | None]:
    if not isinstance(captured, dict):
        raise TypeError("the record holds no commit")
    commit, branch, dirty = captured.get("commit", ""), captured.get("branch"), captured.get("dirty")
    if commit is not None and not (isinstance(commit, str) and OBJECT_ID.fullmatch(commit)):
        raise ValueError("the record holds no commit id")
    return commit, branch if isinstance(branch, str) else None, dirty if isinstance(dirty, bool) else None


def _dirty(repository: Repository) -> bool | None:
    try:
        return is_dirty(repository)
    except (GitError, OSError):  # a large tree may not be looked through in time; the commit still counts
        return None


def _fetch(repository: Repository, commit: str) -> str:
    if repository.is_shallow():
        return f"the history here is cut: `git fetch --unshallow`, or `git fetch origin {commit}`; ask again"
    return f"fetch commit {commit} (`git fetch --all`) and ask again"


def _moved(repository: Repository, head: str | None, commit: str) -> str:
    """How HEAD lies to the checkpoint's commit, in words."""
    if head is None:
        return f"HEAD names a branch without any commit (checkpoint {commit[:12]})"
    places = f"HEAD {head[:12]}, checkpoint {commit[:12]}"
    if repository.is_shallow():
        return (
            f"the repository stands at another commit; how far away its cut history does not say ({places})"
        )
    try:
        distance = repository.distance(head, commit)
    except GitError:
        return f"the repository stands at another commit, how far away is not known ({places})"
    if distance.behind == 0:
        return f"the repository is {_commits(distance.ahead)} ahead of the checkpoint ({places})"
    if distance.ahead == 0:
        return f"the repository is {_commits(distance.behind)} behind the checkpoint ({places})"
    return (
        f"the repository has diverged from the checkpoint: {_commits(distance.ahead)} of its own, "
        f"{_commits(distance.behind)} missing ({places})"
    )


def _facts(repository: Repository, was_dirty: bool | None, was: str | None) -> str:
    """What else is worth knowing: another branch; uncommitted changes, in records that say so here."""
    text = ""
    if was_dirty is not None:
        words = {True: "uncommitted changes", False: "clean", None: "not known"}
        text += f"; work tree then: {words[was_dirty]}, now: {words[_dirty(repository)]}"
    now = repository.branch()
    if was != now:
        text += f"; branch then: {was or 'none'}, now: {now or 'none'}"
    return text


def _commits(count: int) -> str:
    return f"{count} commit{'' if count == 1 else 's'}"
