"""Whether what a run made has come into the default branch upstream: asked of the repository on this machine.

A run counts as merged when the commit that its newest checkpoint was taken at was made during the run, with
nothing uncommitted beside it, and is in the history of the default branch as it was fetched last. Nothing is
fetched, and nothing that the repository configures is run. A squash makes another commit, so it is not seen.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from archiver import noting, retention
from archiver.errors import ArchiverError, KeyUnavailableError, UntrustedWriterError
from archiver.git.repository import OBJECT_ID, GitError, Repository
from archiver.model.record import Record
from archiver.tagging.planning import Known

if TYPE_CHECKING:
    from archiver.setup import Setup

REMOTES: Final = ("upstream", "origin")
"""Remotes whose default branch is asked, the first that has one here."""
BRANCHES: Final = ("HEAD", "main", "master")
PATIENCE: Final = 5.0
"""Seconds for all questions about one run."""


@dataclass(frozen=True, slots=True)
class Merge:
    """A commit of a run, and the branch that has it."""

    commit: str
    branch: str


def may_come(known: Known) -> bool:
    """Whether it is worth looking: the run has ended, is not merged yet, and would be kept shorter then."""
    newest = _newest(known)
    if newest is None or not known.whole or known.standing.held or known.standing.merged:
        return False
    if _commit_of(newest) is None or known.run[-1].record.outcome == "running":
        return False
    merged = replace(known.standing, merged=newest.recorded_at)
    return retention.classes(known.run, keep=1) != retention.classes(known.run, keep=1, standing=merged)


def is_here(known: Known) -> bool:
    """Whether the folder it worked in is on this machine: else it is no use to look again and again."""
    newest = _newest(known)
    found = None if newest is None else _commit_of(newest)
    try:
        return found is not None and found[0].is_dir()
    except OSError:
        return False


def look(known: Known) -> Merge | None:
    """Whether the run is merged as far as this machine knows; None also where that cannot be told."""
    newest = _newest(known)
    if newest is None or not may_come(known):
        return None
    found = _commit_of(newest)
    if found is None:
        return None
    folder, commit = found
    try:
        repository = Repository(folder, PATIENCE)
        made = repository.committed_at(commit)
        if made is None or not newest.created_at.replace(microsecond=0) <= made <= newest.recorded_at:
            return None
        branch = _default_branch(repository)
        if branch is None or repository.distance(branch[1], commit).behind:
            return None
    except (GitError, OSError):
        return None
    return Merge(commit, branch[0])


def note(
    setup: Setup, run: str, known: Known, found: Merge, *, dry_run: bool, now: datetime
) -> tuple[Known, tuple[str, ...], bool]:
    """Sign that it is merged, where the own key is an administrator's; what is known then, and warnings."""
    newest = known.run[-1].record
    reason = f"commit {found.commit[:12]} is in {found.branch}"
    try:
        if dry_run:
            noting.demand_administrator(setup, now)
            at = now
        else:
            last = newest.seq
            at = noting.put_note(setup, run, newest.task, "merged", reason=reason, last=last, now=now).at
    except (UntrustedWriterError, KeyUnavailableError) as error:
        return known, (f"run {run} is merged ({reason}), and stays as long as before: {error}",), False
    except ArchiverError as error:
        return known, (f"that run {run} is merged ({reason}) was not written down: {error}",), False
    return replace(known, standing=replace(known.standing, merged=at)), (), True


def _newest(known: Known) -> Record | None:
    """The newest checkpoint."""
    return next((one.record for one in reversed(known.run) if one.record.bundle is not None), None)


def _commit_of(record: Record) -> tuple[Path, str] | None:
    """Where the run worked and the commit it stood at, with nothing uncommitted beside it."""
    at: Any = record.probes.get("git_commit")
    dirty: Any = record.probes.get("git_dirty")
    if not isinstance(at, dict) or not isinstance(dirty, dict):
        return None
    path, commit, count = at.get("path"), at.get("commit"), dirty.get("count")
    if not isinstance(path, str) or "\0" in path or not Path(path).is_absolute():
        return None
    if not isinstance(commit, str) or not OBJECT_ID.fullmatch(commit):
        return None
    is_clean = isinstance(count, int) and not isinstance(count, bool) and count == 0
    return (Path(path), commit) if is_clean else None


def _default_branch(repository: Repository) -> tuple[str, str] | None:
    """Name and tip of the default branch upstream, as it was fetched last."""
    for remote in REMOTES:
        for branch in BRANCHES:
            tip = repository.tip(f"refs/remotes/{remote}/{branch}")
            if tip is not None:
                return f"{remote}/{branch}", tip
    return None
