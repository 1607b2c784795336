"""Probe `installed`: versions of what is installed in the workspace, read as files; nothing is executed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from archiver import jsonio
from archiver.freshness import digests, files
from archiver.freshness.probe import Context
from archiver.freshness.verdict import Finding, Verdict, together
from archiver.model import JsonValue
from archiver.safetext import shorten

Versions = dict[str, str]

MAX_LIST = 8 << 10
"""Bytes of JSON up to which a list is kept; of a longer one a digest and the number."""
_MAX_ENTRIES = 20_000
_MAX_NODE = 32 << 20
_MOST_NAMED = 8
_REDACTED = "[REDACTED:"
_VENVS = (".venv", "venv")
_DIST = re.compile(r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*?)-(?P<version>[0-9A-Za-z.!+_]+)\.dist-info")
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
    """Name → version from the names of the `dist-info` folders of a virtual environment; None without one."""
    for venv in _VENVS:
        if files.exists(workspace / venv / "pyvenv.cfg"):
            return {
                match["name"].lower().replace("_", "-"): match["version"]
                for place in _site_packages(workspace / venv)
                for folder in files.folders(place, _MAX_ENTRIES)
                if (match := _DIST.fullmatch(folder))
            }
    return None


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
    """Path in `node_modules` → version, from the list that npm keeps there; None without it."""
    listing = workspace / "node_modules" / ".package-lock.json"
    if not files.exists(listing):
        return None
    document = jsonio.loads(files.read(listing, _MAX_NODE))
    packages = document.get("packages") if isinstance(document, dict) else None
    if not isinstance(packages, dict):
        raise files.UnreadableError(f"{listing.name} is no list of npm")
    return {
        name.removeprefix("node_modules/"): str(entry.get("version", ""))
        for name, entry in packages.items()
        if isinstance(entry, dict)
    }


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
            yield f"{shown} {shorten(str(after), 40)} came"
        elif after is None:
            yield f"{shown} {shorten(str(before), 40)} went"
        else:
            yield f"{shown} {shorten(str(before), 40)} then, {shorten(after, 40)} now"
