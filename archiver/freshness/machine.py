"""Probes of what a run runs on: `runtime`, the versions of Python and Node, and `platform`."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from archiver.freshness import files
from archiver.freshness.probe import Context
from archiver.freshness.verdict import Finding, Verdict, together
from archiver.model import JsonValue
from archiver.safetext import shorten

_SMALL = 64 << 10
_MAX_TEXT = 200
_VERSION = re.compile(r"(?m)^version(?:_info)?\s*=\s*([0-9][0-9A-Za-z.+]*)")
_NODE = re.compile(r"#define NODE_(MAJOR|MINOR|PATCH)_VERSION (\d{1,6})\b")
_IMAGE = re.compile(r"(?:sha256:)?([0-9a-f]{64})")
_IMAGE_VARIABLES = ("IMAGE_DIGEST", "CONTAINER_IMAGE_DIGEST")
_CONTAINER = Path("/run/.containerenv")
_RELEASES = (Path("/etc/os-release"), Path("/usr/lib/os-release"))


class RuntimeProbe:
    """FRESH with the same versions of Python and Node, STALE with others.

    Python is that of the workspace's virtual environment, else the one that the run states, else that of this
    process; Node is the one in `PATH`. Both are read from files; neither is started.
    """

    name = "runtime"

    def capture(self, context: Context) -> JsonValue:
        """`{python: {of, version}, node}`; `node` is null where none is found."""
        own = _workspace_python(context.workspace)
        stated = context.environment.python
        version = own or (shorten(stated, _MAX_TEXT) if stated else platform.python_version())
        python = {"of": "workspace" if own else "process", "version": version}
        return {"python": python, "node": _node(context.environ)}

    def judge(self, captured: JsonValue, context: Context) -> Verdict:
        python = captured.get("python") if isinstance(captured, dict) else None
        if not isinstance(python, dict) or not isinstance(python.get("version"), str):
            raise TypeError("the record holds no version of Python")
        of_workspace = python.get("of") == "workspace"
        now = _workspace_python(context.workspace) if of_workspace else platform.python_version()
        where = " of the workspace" if of_workspace else ""
        findings = [_same(f"Python{where}", python["version"], now)]
        if captured.get("node") is not None:
            findings.append(_same("Node", str(captured["node"]), _node(context.environ)))
        return together(self.name, findings)


class PlatformProbe:
    """FRESH on the same system, machine, libc and container image, STALE on others."""

    name = "platform"

    def capture(self, context: Context) -> JsonValue:
        """`{system, machine, libc, image}`; `{stated}` where the run states another platform."""
        stated = context.environment.platform
        if stated is not None and stated != platform.platform():
            return {"stated": shorten(stated, _MAX_TEXT)}
        return _platform(context.environ)

    def judge(self, captured: JsonValue, context: Context) -> Verdict:
        if not isinstance(captured, dict) or not captured:
            raise TypeError("the record holds no platform")
        here = _platform(context.environ)
        if "stated" in captured:
            return self._stated(str(captured["stated"]))
        if not {"system", "machine"} <= captured.keys():
            raise TypeError("the record holds no whole platform")
        findings = [
            _same(name, str(then), here.get(name))
            for name, then in captured.items()
            if then is not None or here.get(name) is not None
        ]
        return together(self.name, findings)

    def _stated(self, then: str) -> Verdict:
        here = platform.platform()
        if then == here:
            return Verdict(probe=self.name, state="FRESH", evidence=f"{here}, then and now")
        system = os.uname().sysname
        known = re.match(r"(?i)linux|darwin|macos|windows|freebsd|openbsd|netbsd", then)
        aliases = {"macos": "darwin"}
        if known and aliases.get(known[0].lower(), known[0].lower()) != system.lower():
            return Verdict(
                probe=self.name,
                state="STALE",
                evidence=f"{then} then, {here} now",
                remedy="go on where the run ran; `--accept platform` goes on anyway",
            )
        return Verdict(
            probe=self.name,
            state="UNKNOWN",
            evidence=f"the run states {then}; this is {here}",
            remedy="compare the two",
        )


def _same(what: str, then: str, now: str | None) -> Finding:
    if then == now:
        return Finding("FRESH", f"{what}: {then}, then and now")
    return Finding("STALE", f"{what}: {then} then, {now or 'none'} now", f"use the same {what} again")


def _workspace_python(workspace: Path | None) -> str | None:
    """As the nearest virtual environment states it, of the workspace or around it."""
    if workspace is None:
        return None
    try:
        around = (workspace, *files.above(workspace))
    except files.UnreadableError:
        return None
    for folder in around:
        for venv in (".venv", "venv"):
            text = _text(folder / venv / "pyvenv.cfg")
            if text is not None and (match := _VERSION.search(text)):
                return match[1].removesuffix(".final.0")  # as `virtualenv` writes it
    return None


def _node(environ: Mapping[str, str]) -> str | None:
    """The version of the first `node` in PATH, as the header file beside it states it."""
    for entry in environ.get("PATH", "").split(os.pathsep)[:100]:
        program = Path(entry) / "node"
        if not entry.startswith("/") or not program.is_file():
            continue
        text = _text(program.resolve().parent.parent / "include" / "node" / "node_version.h")
        numbers = dict(_NODE.findall(text or ""))
        return ".".join(numbers[part] for part in ("MAJOR", "MINOR", "PATCH")) if len(numbers) == 3 else None
    return None


def _platform(environ: Mapping[str, str]) -> dict[str, JsonValue]:
    system = os.uname()
    return {
        "system": " ".join((system.sysname, *_release())),
        "machine": system.machine,
        "libc": _libc(),
        "image": _image(environ),
    }


def _release() -> Iterator[str]:
    """Name and version of the distribution."""
    for path in _RELEASES:
        text = _text(path.resolve())
        if text is not None:
            for key in ("ID", "VERSION_ID"):
                if match := re.search(rf"(?m)^{key}=[\"']?([^\"'\n]{{1,60}})", text):
                    yield match[1]
            return


def _libc() -> str | None:
    try:
        return os.confstr("CS_GNU_LIBC_VERSION")
    except (ValueError, OSError):
        return " ".join(filter(None, platform.libc_ver())) or None


def _image(environ: Mapping[str, str]) -> str | None:
    """The digest of the container's image, where the container states one."""
    for variable in _IMAGE_VARIABLES:
        if match := _IMAGE.fullmatch(environ.get(variable, "").rpartition("@")[2]):
            return f"sha256:{match[1]}"
    text = _text(_CONTAINER)
    match = re.search(r'(?m)^imageid="?(?:sha256:)?([0-9a-f]{64})"?$', text or "")
    return f"sha256:{match[1]}" if match else None


def _text(path: Path) -> str | None:
    """A small file as text; None where it cannot be read."""
    try:
        return files.read(path, _SMALL).decode("utf-8", "replace")
    except files.UnreadableError:
        return None
