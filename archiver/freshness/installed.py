"""Probe `installed`: versions of what is installed in the workspace, read as files; nothing is executed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from archiver import jsonio
from archiver.freshness import digests, files, node_modules
from archiver.freshness.probe import Context
from archiver.freshness.verdict import Finding, Verdict, together
from archiver.model import JsonValue
from archiver.safetext import shorten

Versions = dict[str, str]

MAX_LIST = 8 << 10
"""Bytes of JSON up to which a list is kept; of a longer one a digest and the number."""
_MAX_ENTRIES = 20_000
_MAX_SMALL = 64 << 10
_MOST_NAMED = 8
_REDACTED = "[REDACTED:"
_VENVS = (".venv", "venv")
_DIST = re.compile(
    r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*?)-(?P<version>[0-9A-Za-z.!+_]+)(?:\.dist-info|(?:-py[0-9.]+)?\.egg-info)"
)
_WORDS = {"python": "Python packages", "node": "Node packages"}
_REMEDIES = {
    "python": "install what the lock file says (`uv sync`, `pip install -r requirements.txt`)",
    "node": "install what the lock file says (`npm ci`)",
}
_HERE = "run it in the work tree of the run to compare with that one"


class InstalledProbe:
    """FRESH while the same versions are installed in `.venv` or `venv` and in `node_modules`, else STALE."""

    name = "installed"

    def capture(self, context: Context) -> JsonValue | None:
        """`{path, python, node}`: each null where nothing is installed, else a list or a digest of one."""
        if context.workspace is None:
            return None
        return {
            "path": str(context.workspace),
            "python": _kept(python_packages(context.workspace)),
            "node": _kept(node_packages(context.workspace)),
        }

    def judge(self, captured: JsonValue, context: Context) -> Verdict:
        if not isinstance(captured, dict):
            raise TypeError("the record holds no list of packages")
        if context.workspace is None:
            return Verdict(probe=self.name, state="UNKNOWN", evidence="no workspace is known", remedy=_HERE)
        now = {"python": python_packages(context.workspace), "node": node_packages(context.workspace)}
        if files.elsewhere(captured, context) and not any(now.values()):
            evidence = f"nothing is installed in {context.workspace}, which may be no work tree"
            return Verdict(probe=self.name, state="UNKNOWN", evidence=evidence, remedy=_HERE)
        findings = [
            finding for kind, found in now.items() for finding in _compared(kind, captured.get(kind), found)
        ]
        nothing = f"nothing is installed in {context.workspace}, then and now"
        return together(self.name, findings, nothing=nothing)


def python_packages(workspace: Path) -> Versions | None:
    """Name → version in the nearest virtual environment, of the workspace or around it; None without one.

    From the names of folders, and from where pip says that a package did not come from an index.
    """
    for folder in (workspace, *files.above(workspace)):
        for venv in _VENVS:
            if files.exists(folder / venv / "pyvenv.cfg"):
                return {
                    match["name"].lower().replace("_", "-"): match["version"] + _origin(place / inner)
                    for place in _site_packages(folder / venv)
                    for inner in files.folders(place, _MAX_ENTRIES)
                    if (match := _DIST.fullmatch(inner))
                }
    return None


def _origin(folder: Path) -> str:
    """What tells two installations of one version apart: a commit, an archive, or that it can be edited."""
    if not files.exists(folder / "direct_url.json"):
        return ""
    said = jsonio.loads(files.read(folder / "direct_url.json", _MAX_SMALL))
    if commit := _inner(said, "vcs_info").get("commit_id"):
        return f" at {str(commit)[:12]}"
    if digest := _inner(said, "archive_info").get("hash"):
        return f" of {str(digest)[:24]}"
    return " (editable)" if _inner(said, "dir_info").get("editable") is True else " (from a folder)"


def _inner(value: JsonValue, name: str) -> dict[str, JsonValue]:
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, dict) else {}


def _site_packages(venv: Path) -> Iterator[Path]:
    """`lib/python3.12/site-packages`, and where Windows has it."""
    if files.exists(venv / "lib"):
        for version in files.folders(venv / "lib", 100):
            if version.startswith(("python", "pypy")) and files.exists(
                venv / "lib" / version / "site-packages"
            ):
                yield venv / "lib" / version / "site-packages"
    elif files.exists(venv / "Lib" / "site-packages"):
        yield venv / "Lib" / "site-packages"


def node_packages(workspace: Path) -> Versions | None:
    """Path in `node_modules` → version, of the workspace and of the folders around it; None without any."""
    found: Versions = {}
    any_there = False
    for count, folder in enumerate((workspace, *files.above(workspace))):
        modules = folder / "node_modules"
        if files.exists(modules):
            any_there = True
            found |= {
                f"{'../' * count}{name}": version for name, version in node_modules.versions(modules).items()
            }
    return found if any_there else None


def _kept(versions: Versions | None) -> JsonValue:
    if versions is None:
        return None
    # In two lists: beside a name such as `cookie`, redaction would take a version for a secret.
    kept: JsonValue = {"names": sorted(versions), "versions": [versions[name] for name in sorted(versions)]}
    if len(jsonio.dumps(kept)) <= MAX_LIST:
        return kept
    return {"count": len(versions), "digest": digests.guarded(jsonio.canonical(versions))}


def _compared(kind: str, then: JsonValue, now: Versions | None) -> Iterator[Finding]:
    what, remedy = _WORDS[kind], _REMEDIES[kind]
    if then is None:
        if now is not None:
            yield Finding(
                "STALE", f"{what}: none then, {len(now)} now", "`--accept installed` goes on anyway"
            )
    elif now is None:
        yield Finding("STALE", f"{what}: none are installed any more", remedy)
    elif isinstance(then, dict) and "names" in then:
        yield _listed(what, remedy, _versions(then), now)
    elif digests.matches(jsonio.canonical(now), _digest(then)):
        yield Finding("FRESH", f"{what}: the same {len(now)}")
    else:
        yield Finding("STALE", f"{what}: not the same; {then.get('count')} then, {len(now)} now", remedy)


def _versions(then: dict[str, JsonValue]) -> Versions:
    names, versions = then["names"], then.get("versions")
    if not (isinstance(names, list) and isinstance(versions, list)):
        raise TypeError("the record holds no list of packages")
    return dict(zip(map(str, names), map(str, versions), strict=True))


def _listed(what: str, remedy: str, then: Versions, now: Versions) -> Finding:
    if any(_REDACTED in text for text in (*then, *then.values())):
        return Finding("UNKNOWN", f"{what}: a credential was taken out of the list", "compare them by hand")
    changes = list(_changes(then, now))
    if not changes:
        return Finding("FRESH", f"{what}: the same {len(now)}")
    more = f"; and {len(changes) - _MOST_NAMED} more" if len(changes) > _MOST_NAMED else ""
    return Finding("STALE", f"{what}: {'; '.join(changes[:_MOST_NAMED])}{more}", remedy)


def _digest(then: JsonValue) -> JsonValue:
    return then.get("digest") if isinstance(then, dict) else None


def _changes(then: Versions, now: Versions) -> Iterator[str]:
    for name in sorted(then.keys() | now.keys()):
        before, after = then.get(name), now.get(name)
        if before == after:
            continue
        shown = shorten(name, 80)
        if before is None:
            yield f"{shown} {shorten(str(after), 40)}".strip() + " came"
        elif after is None:
            yield f"{shown} {shorten(before, 40)}".strip() + " went"
        else:
            yield f"{shown} {shorten(str(before), 40)} then, {shorten(after, 40)} now"
