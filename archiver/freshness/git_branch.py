"""Probe `git_branch`: whether the work tree is still on the branch that the run worked on."""

from __future__ import annotations

import shlex

from archiver.freshness.git_commit import ELSEWHERE, SHARE
from archiver.freshness.probe import Context
from archiver.freshness.verdict import State, Verdict
from archiver.git.repository import GitError, Repository
from archiver.model import JsonValue

_ACCEPT = "`--accept git_branch` goes on anyway"


class GitBranchProbe:
    """FRESH on the same branch, STALE on another one also at the same commit: the next commit goes there."""

    name = "git_branch"

    def capture(self, context: Context) -> JsonValue | None:
        """`{branch}`, null where HEAD is at no branch; None without a repository."""
        if context.workspace is None:
            return None
        try:
            return {"branch": Repository(context.workspace, context.timeout * SHARE).branch()}
        except (GitError, OSError):
            return None

    def judge(self, captured: JsonValue, context: Context) -> Verdict:
        then = captured.get("branch", 0) if isinstance(captured, dict) else 0
        if not isinstance(then, str | None):
            raise TypeError("the record holds no branch")
        if context.workspace is None:
            return self._answer("UNKNOWN", "no workspace folder is known", ELSEWHERE)
        try:
            repository = Repository(context.workspace, context.timeout * SHARE)
            now = repository.branch()
            there = then is None or repository.has_branch(then)
        except GitError as error:
            return self._answer("UNKNOWN", str(error), ELSEWHERE)
        except OSError as error:
            evidence = f"{context.workspace} cannot be looked at: {error.strerror}"
            return self._answer("UNKNOWN", evidence, ELSEWHERE)
        if then == now:
            return self._answer("FRESH", f"on {then}, then and now" if then else "on no branch, then and now")
        evidence = f"on {then or 'no branch'} then, on {now or 'no branch'} now"
        if then is None:
            return self._answer("STALE", evidence, f"`git switch --detach`; {_ACCEPT}")
        if not there:
            return self._answer("STALE", f"{evidence}; there is no branch {then} any more", _ACCEPT)
        return self._answer("STALE", evidence, f"`git switch {shlex.quote(then)}`; {_ACCEPT}")

    def _answer(self, state: State, evidence: str, remedy: str | None = None) -> Verdict:
        return Verdict(probe=self.name, state=state, evidence=evidence, remedy=remedy)
