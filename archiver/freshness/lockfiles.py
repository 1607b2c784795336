"""Probe `lockfiles`: whether the files that pin dependencies are those of the checkpoint."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

from archiver.freshness import digests, files
from archiver.freshness.probe import Context
from archiver.freshness.verdict import Finding, Verdict, together
from archiver.model import JsonValue

NAMES = (
    "Cargo.lock",
    "Gemfile.lock",
    "Package.resolved",
    "Pipfile.lock",
    "Podfile.lock",
    "bun.lock",
    "bun.lockb",
    "composer.lock",
    "conda-lock.yml",
    "deno.lock",
    "flake.lock",
    "go.sum",
    "gradle.lockfile",
    "mix.lock",
    "npm-shrinkwrap.json",
    "package-lock.json",
    "packages.lock.json",
    "pdm.lock",
    "pixi.lock",
    "pnpm-lock.yaml",
    "poetry.lock",
    "pubspec.lock",
    "pylock.toml",
    "requirements.txt",
    "uv.lock",
    "yarn.lock",
)
MAX_FILES = 16
"""Lock files with a digest each; those beyond have one together."""
MAX_ALL = 500
MAX_SIZE = 32 << 20
MAX_FOLDERS = 1000
_DEPTH = 2
_MAX_ENTRIES = 20_000
_NOT_ENTERED = frozenset({"node_modules", "venv", "__pycache__"})
_REMEDY = "look at what changed, or put the lock files back; `--accept lockfiles` goes on anyway"
_HERE = "run it in the work tree of the run to compare with that one"


class LockfilesProbe:
    """FRESH while the lock files of the workspace are the same, STALE when one changed, came or went.

    Looked at are the workspace, two levels below it, and the folders around it up to that of its repository:
    the lock file of a part often lies beside the whole.
    """

    name = "lockfiles"

    def capture(self, context: Context) -> JsonValue | None:
        """`{path, files, rest, more}`: of each file a guarded digest, or why it was not read.

        `rest` is a digest of those beyond the first ones, null without any; `more` says that there were more
        folders or files than are looked at.
        """
        if context.workspace is None:
            return None
        found, more = _found(context.workspace)
        return {
            "path": str(context.workspace),
            "files": {name: _remembered(context.workspace / name) for name in found[:MAX_FILES]},
            "rest": _rest(context.workspace, found[MAX_FILES:]),
            "more": more,
        }

    def judge(self, captured: JsonValue, context: Context) -> Verdict:
        then = captured.get("files") if isinstance(captured, dict) else None
        if not isinstance(then, dict):
            raise TypeError("the record holds no lock files")
        if context.workspace is None:
            return Verdict(probe=self.name, state="UNKNOWN", evidence="no workspace is known", remedy=_HERE)
        now, more = _found(context.workspace)
        if files.elsewhere(captured, context) and not then.keys() & set(now):
            evidence = (
                f"{context.workspace} has none of the lock files that the run had, it may be no work tree"
            )
            return Verdict(probe=self.name, state="UNKNOWN", evidence=evidence, remedy=_HERE)
        findings = [
            *_compared(context.workspace, then, now[:MAX_FILES]),
            *_compared_rest(context.workspace, captured.get("rest"), now[MAX_FILES:]),
        ]
        if captured.get("more") or more:
            findings.append(Finding("UNKNOWN", "there are more folders or lock files than are looked at"))
        return together(self.name, findings, nothing=f"no lock files in {context.workspace}, then and now")


def _found(workspace: Path) -> tuple[list[str], bool]:
    """Lock files by their place, seen from the workspace; and whether there is more than is looked at."""
    names: list[str] = []
    for count, folder in enumerate(files.above(workspace), start=1):
        names += [f"{'../' * count}{name}" for name in NAMES if files.exists(f"{folder}/{name}")]
    places, more = _places(workspace)
    for place in places:
        names += [f"{place}{name}" for name in NAMES if files.exists(f"{workspace}/{place}{name}")]
    return names[:MAX_ALL], more or len(names) > MAX_ALL


def _places(workspace: Path) -> tuple[list[str], bool]:
    """The workspace and the folders in it that are looked into, the outer ones first; and whether all are."""
    places, level = [""], [""]
    for _ in range(_DEPTH):
        level = [f"{place}{inner}/" for place in level for inner in _inner(workspace, place)]
        places += level
        if len(places) > MAX_FOLDERS:
            return places[:MAX_FOLDERS], True
    return places, False


def _inner(workspace: Path, place: str) -> Iterator[str]:
    """Folders in a folder; of one that holds too many things to be a part of a project, none."""
    try:
        yield from filter(_is_entered, files.folders(workspace / place, _MAX_ENTRIES))
    except files.UnreadableError:
        if not place:
            raise


def _is_entered(folder: str) -> bool:
    if not folder.isprintable():  # also keeps out what JSON cannot hold
        return False
    return not folder.startswith(".") and folder not in _NOT_ENTERED


def _remembered(path: Path) -> JsonValue:
    try:
        return digests.guarded(files.read(path, MAX_SIZE))
    except files.UnreadableError as error:
        return {"unread": str(error)}


def _rest(workspace: Path, names: list[str]) -> JsonValue:
    """Number and digest of many files together; null for none."""
    if not names:
        return None
    try:
        return {"count": len(names), **digests.guarded(_content(workspace, names))}
    except files.UnreadableError as error:
        return {"count": len(names), "unread": str(error)}


def _content(workspace: Path, names: list[str]) -> bytes:
    total = hashlib.sha256()
    for name in names:
        content = hashlib.sha256(files.read(workspace / name, MAX_SIZE)).hexdigest()
        total.update(f"{content} {name}\n".encode())
    return total.digest()


def _compared_rest(workspace: Path, then: JsonValue, now: list[str]) -> Iterator[Finding]:
    if then is None and not now:
        return
    count = 0 if then is None else then.get("count") if isinstance(then, dict) else None
    if not isinstance(count, int):
        raise TypeError("the record does not hold how many other lock files there were")
    what = f"{count} other lock files then, {len(now)} now"
    if count != len(now):
        yield Finding("STALE", what, _REMEDY)
    elif isinstance(then, dict) and "unread" in then:
        yield Finding("UNKNOWN", f"{what}: one was not read when the checkpoint was saved: {then['unread']}")
    else:
        try:
            same = digests.matches(_content(workspace, now), then)
        except files.UnreadableError as error:
            yield Finding("UNKNOWN", f"{what}: one is not read now: {error}")
        else:
            yield Finding(
                *(("FRESH", f"{what}, the same") if same else ("STALE", f"{what}: not the same", _REMEDY))
            )


def _compared(workspace: Path, then: dict[str, JsonValue], now: list[str]) -> Iterator[Finding]:
    for name in sorted(then.keys() | set(now)):
        if name not in then:
            yield Finding("STALE", f"{name} appeared", _REMEDY)
        elif name not in now:
            yield Finding("STALE", f"{name} vanished", _REMEDY)
        else:
            yield _same(workspace, name, then[name])


def _same(workspace: Path, name: str, then: JsonValue) -> Finding:
    if isinstance(then, dict) and "unread" in then:
        return Finding("UNKNOWN", f"{name} was not read when the checkpoint was saved: {then['unread']}")
    try:
        content = files.read(workspace / name, MAX_SIZE)
    except files.UnreadableError as error:
        return Finding("UNKNOWN", f"{name} is not read now: {error}")
    if digests.matches(content, then):
        return Finding("FRESH", f"{name} is the same")
    return Finding("STALE", f"{name} changed", _REMEDY)
