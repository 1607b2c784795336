"""Probes of what carries the run on: `harness`, `model`, `prompt` and `tools`, against what is stated now."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from archiver import jsonio
from archiver.freshness import digests, files
from archiver.freshness.probe import Context
from archiver.freshness.verdict import Verdict
from archiver.model import JsonValue
from archiver.safetext import shorten

_MAX_NAME = 200
_MAX_FILE = 16 << 20
_MAX_NAMES = 4 << 10
"""Bytes of JSON up to which the names of tools are kept."""
_MOST_NAMED = 8
_PLACEHOLDER = re.compile(r"\[REDACTED:([a-z0-9-]+):[0-9a-f]{12}\]")


class _Named(ABC):
    """A name that the run states, compared with the name that the restorer states."""

    name = ""

    @abstractmethod
    def stated(self, context: Context) -> str | None:
        """What the run says."""

    @abstractmethod
    def given(self, context: Context) -> str | None:
        """What it is going to go on with."""

    def capture(self, context: Context) -> JsonValue | None:
        """`{name}`; None where the run does not state it."""
        stated = self.stated(context)
        return {"name": shorten(stated, _MAX_NAME)} if stated else None

    def judge(self, captured: JsonValue, context: Context) -> Verdict:
        then = captured.get("name") if isinstance(captured, dict) else None
        if not isinstance(then, str):
            raise TypeError(f"the record holds no {self.name}")
        given = self.given(context)
        if given is None:
            return _nothing_said(self.name, f"{then} then", f"freshness.{self.name}")
        now = shorten(given, _MAX_NAME)
        if now == then:
            return Verdict(probe=self.name, state="FRESH", evidence=f"{then}, then and now")
        return Verdict(
            probe=self.name,
            state="STALE",
            evidence=f"{then} then, {now} now",
            remedy=f"go on with {then}; `--accept {self.name}` goes on with {now}",
        )


class HarnessProbe(_Named):
    """The program that runs the agent, with its version."""

    name = "harness"

    def stated(self, context: Context) -> str | None:
        return context.environment.harness

    def given(self, context: Context) -> str | None:
        return context.current.harness


class ModelProbe(_Named):
    """The model that answered last."""

    name = "model"

    def stated(self, context: Context) -> str | None:
        return context.environment.model

    def given(self, context: Context) -> str | None:
        return context.current.model


class PromptProbe:
    """FRESH with the same system prompt, by a digest of its redacted text."""

    name = "prompt"

    def capture(self, context: Context) -> JsonValue | None:
        """`{size, digest}`; None where the transcript shows no prompt."""
        shown = context.shown.prompt
        if not isinstance(shown, str) or not shown.strip():
            return None
        text = _normal(shown)
        return {"size": len(text), "digest": digests.guarded(_bytes(text))}

    def judge(self, captured: JsonValue, context: Context) -> Verdict:
        if not isinstance(captured, dict):
            raise TypeError("the record holds no prompt")
        size = captured.get("size")
        given = context.current.prompt
        if given is None:
            return _nothing_said(self.name, f"{size} characters then", "freshness.prompt_file")
        if isinstance(given, Path):
            given = _read(given).decode("utf-8", "replace")
        now = _normal(context.redact(given))
        if digests.matches(_bytes(now), captured.get("digest")):
            return Verdict(probe=self.name, state="FRESH", evidence=f"the same {size} characters")
        return Verdict(
            probe=self.name,
            state="STALE",
            evidence=f"another system prompt: {size} characters then, {len(now)} now",
            remedy="go on with the prompt of the run; `--accept prompt` goes on with the other one",
        )


class ToolsProbe:
    """FRESH with the same tool schemas, by a digest of their redacted JSON; the order does not count."""

    name = "tools"

    def capture(self, context: Context) -> JsonValue | None:
        """`{count, names, digest}`; `names` is null where they are too many. None without any schemas."""
        tools = _listed(context.shown.tools)
        if tools is None:
            return None
        names = sorted(map(_tool_name, tools))
        return {
            "count": len(tools),
            "names": names if len(jsonio.dumps(names)) <= _MAX_NAMES else None,
            "digest": digests.guarded(_schemas(tools)),
        }

    def judge(self, captured: JsonValue, context: Context) -> Verdict:
        if not isinstance(captured, dict):
            raise TypeError("the record holds no tools")
        given = context.current.tools
        if given is None:
            return _nothing_said(self.name, f"{captured.get('count')} then", "freshness.tools_file")
        if isinstance(given, Path):
            given = jsonio.loads(_read(given))
        tools = _listed(_redacted(given, context))
        if tools is None:
            raise ValueError("what was given as tools is no list of tool schemas")
        if digests.matches(_schemas(tools), captured.get("digest")):
            return Verdict(probe=self.name, state="FRESH", evidence=f"the same {len(tools)} tool schemas")
        return Verdict(
            probe=self.name,
            state="STALE",
            evidence="; ".join(_differences(captured, tools)),
            remedy="go on with the tools of the run; `--accept tools` goes on with the others",
        )


def _nothing_said(probe: str, then: str, key: str) -> Verdict:
    return Verdict(
        probe=probe,
        state="UNKNOWN",
        evidence=f"{then}; what the run is going to go on with was not said",
        remedy=f"set {key}, or give `current` to the library",
    )


def _read(path: Path) -> bytes:
    try:
        return files.read(path.resolve(), _MAX_FILE)
    except files.UnreadableError as error:
        raise ValueError(f"{path}: {error}") from None


def _normal(text: str) -> str:
    """The text without what differs each time: fingerprints in placeholders, line ends, space around."""
    return _PLACEHOLDER.sub(r"[REDACTED:\1]", text.replace("\r\n", "\n")).strip()


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _listed(value: JsonValue) -> list[Any] | None:
    """The list of schemas, also of a whole request body."""
    if isinstance(value, dict):
        value = value.get("tools")
    return value if isinstance(value, list) and value else None


def _redacted(value: Any, context: Context) -> Any:
    if isinstance(value, str):
        return context.redact(value)
    if isinstance(value, list):
        return [_redacted(element, context) for element in value]
    if isinstance(value, dict):
        return {key: _redacted(element, context) for key, element in value.items()}
    return value


def _schemas(tools: list[Any]) -> bytes:
    return b"\n".join(sorted(_bytes(_normal(jsonio.canonical(tool).decode("utf-8"))) for tool in tools))


def _tool_name(tool: Any) -> str:
    """The name of a tool in the forms of all providers, else its type."""
    if isinstance(tool, str):
        return shorten(tool, _MAX_NAME)
    inner = tool.get("function") if isinstance(tool, dict) else None
    for holder in (tool, inner):
        for key in ("name", "type"):
            name = holder.get(key) if isinstance(holder, dict) else None
            if isinstance(name, str) and not (key == "type" and name == "function"):
                return shorten(name, _MAX_NAME)
    return "?"


def _differences(captured: dict[str, Any], tools: list[Any]) -> Iterator[str]:
    before, after = captured.get("names"), {_tool_name(tool) for tool in tools}
    yield f"other tools: {captured.get('count')} then, {len(tools)} now"
    if isinstance(before, list):
        came, went = sorted(after - set(before)), sorted(set(before) - after)
        if came:
            yield f"came: {', '.join(came[:_MOST_NAMED])}"
        if went:
            yield f"went: {', '.join(went[:_MOST_NAMED])}"
        if not came and not went:
            yield "the same names, but a schema changed"
