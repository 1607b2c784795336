"""Probe `remote_head`: whether the branch that the workspace follows has moved where it comes from."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from archiver.freshness import git_remote
from archiver.freshness.hosts import AddressError
from archiver.freshness.network import SHARE, Network, not_asked
from archiver.freshness.probe import Context
from archiver.freshness.resources import REDACTED, GoneError
from archiver.freshness.unasked import Unasked
from archiver.freshness.verdict import State, Verdict
from archiver.git.repository import OBJECT_ID, GitError, Repository
from archiver.model import JsonValue

_FETCH = "fetch and look at what is new there; `--accept remote_head` goes on anyway"


class RemoteHeadProbe:
    """FRESH where the branch stands as at the save, STALE where it moved or is gone, UNKNOWN if not asked."""

    name = "remote_head"

    def capture(self, context: Context) -> JsonValue | None:
        """`{remote, ref, head}` or `{remote, ref, not_seen}`; None without a branch that follows another."""
        if context.workspace is None:
            return None
        network = Network.of(context)
        try:
            found = Repository(context.workspace, context.timeout * SHARE / 2).upstream()
        except (GitError, OSError):
            return None
        if found is None:
            return None
        remote, ref = _address(found[0], context.workspace), found[1]
        try:
            return {"remote": remote, "ref": ref, "head": _ask(remote, ref, network)}
        except Unasked as reason:
            return {"remote": remote, "ref": ref, "not_seen": reason.evidence}
        except GoneError as gone:
            return {"remote": remote, "ref": ref, "not_seen": str(gone)}

    def judge(self, captured: JsonValue, context: Context) -> Verdict:
        remote, ref, then, why = _remembered(captured)
        what = f"{ref.removeprefix('refs/heads/')} at {remote}"
        if REDACTED in f"{remote} {ref}":
            return self._answer("UNKNOWN", f"{what}: a credential was taken out of it", "look at it by hand")
        if then is None:
            return self._answer("UNKNOWN", f"{what}: not seen at the save ({why})", "look at it by hand")
        try:
            now = _ask(remote, ref, Network.of(context))
        except Unasked as reason:
            return self._answer("UNKNOWN", f"{what}: {reason.evidence}", reason.remedy)
        except GoneError as gone:
            return self._answer("STALE", f"{what}: {gone}", _FETCH)
        if now == then:
            return self._answer("FRESH", f"{what} stands at {now[:12]} as then", None)
        return self._answer("STALE", f"{what} stood at {then[:12]} and now at {now[:12]}", _FETCH)

    def _answer(self, state: State, evidence: str, remedy: str | None) -> Verdict:
        return Verdict(probe=self.name, state=state, evidence=evidence, remedy=remedy)


def _address(written: str, workspace: Path) -> str:
    """The remote as it is stored: without user and password; a path as a `file:` address.

    `https://me:secret@host/repo` → `https://host/repo`, `git@host:repo` → `ssh://host/repo`
    """
    if "://" in written:
        try:
            parts = urlsplit(written)
        except ValueError:
            return f"{written.partition('://')[0][:20]}://…"
        return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
    host, colon, path = written.partition(":")
    if colon and "/" not in host:
        return f"ssh://{host.rpartition('@')[2]}/{path.removeprefix('/')}"
    try:
        return (workspace / written).absolute().as_uri()
    except ValueError:
        return "file:///…"


def _ask(remote: str, ref: str, network: Network) -> str:
    if not remote.startswith(("https://", "http://", "file:///")):
        raise not_asked(AddressError("only http, https and folders are asked, so that no program is started"))
    if not ref.startswith("refs/"):
        raise not_asked(AddressError("it follows what is no whole name of a branch"))
    return git_remote.tip(remote, git_remote.ref_of(ref), network)


def _remembered(captured: JsonValue) -> tuple[str, str, str | None, str]:
    if not isinstance(captured, dict):
        raise TypeError("the record holds no remote")
    remote, ref, head = captured.get("remote"), captured.get("ref"), captured.get("head")
    if not isinstance(remote, str) or not isinstance(ref, str):
        raise TypeError("the record holds no remote")
    if head is not None and not (isinstance(head, str) and OBJECT_ID.fullmatch(head)):
        raise ValueError("the record holds no commit id")
    why = captured.get("not_seen")
    return remote, ref, head, why[:300] if isinstance(why, str) else "no reason is recorded"
