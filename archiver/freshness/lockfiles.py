"""Probe `lockfiles`: whether the files that pin dependencies are those of the checkpoint."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
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
MAX_SIZE = 32 << 20
MAX_FOLDERS = 200
_MAX_ENTRIES = 20_000
_NOT_ENTERED = frozenset({"node_modules", "venv", "__pycache__"})
_REMEDY = "look at what changed, or put the lock files back; `--accept lockfiles` goes on anyway"
_HERE = "run it in the work tree of the run to compare with that one"


class LockfilesProbe:
    """FRESH while the lock files of the workspace are the same, STALE when one changed, came or went."""

    name = "lockfiles"

    def capture(self, context: Context) -> JsonValue | None:
        """`{path, files, more}`: of each file a guarded digest, or why it was not read."""
        if context.workspace is None:
            return None
        found = list(islice(_found(context.workspace), MAX_FILES + 1))
        return {
            "path": str(context.workspace),
            "files": {name: _remembered(context.workspace / name) for name in found[:MAX_FILES]},
            "more": len(found) > MAX_FILES,
        }

    def judge(self, captured: JsonValue, context: Context) -> Verdict:
        then = captured.get("files") if isinstance(captured, dict) else None
        if not isinstance(then, dict):
            raise TypeError("the record holds no lock files")
        if context.workspace is None:
            return Verdict(probe=self.name, state="UNKNOWN", evidence="no workspace is known", remedy=_HERE)
        now = list(islice(_found(context.workspace), MAX_FILES + 1))
        if files.elsewhere(captured, context) and not then.keys() & set(now):
            evidence = (
                f"{context.workspace} has none of the lock files that the run had, it may be no work tree"
            )
            return Verdict(probe=self.name, state="UNKNOWN", evidence=evidence, remedy=_HERE)
        findings = list(_compared(context.workspace, then, now[:MAX_FILES]))
        if captured.get("more") or len(now) > MAX_FILES:
            findings.append(Finding("UNKNOWN", f"only {MAX_FILES} lock files are compared, there are more"))
        return together(self.name, findings, nothing=f"no lock files in {context.workspace}, then and now")


def _found(workspace: Path) -> Iterator[str]:
    """Lock files of the workspace and of the folders in it, by their place in it."""
    for name in NAMES:
        if files.exists(workspace / name):
            yield name
    inner = (name for name in files.folders(workspace, _MAX_ENTRIES) if _is_entered(name))
    for folder in islice(inner, MAX_FOLDERS):
        for name in NAMES:
            if files.exists(workspace / folder / name):
                yield f"{folder}/{name}"


def _is_entered(folder: str) -> bool:
    if not folder.isprintable():  # also keeps out what JSON cannot hold
        return False
    return not folder.startswith(".") and folder not in _NOT_ENTERED


def _remembered(path: Path) -> JsonValue:
    try:
        return digests.guarded(files.read(path, MAX_SIZE))
    except files.UnreadableError as error:
        return {"unread": str(error)}


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
