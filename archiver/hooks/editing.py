"""Our hooks in the text of a settings file: put in, found again, taken out; every other byte stays.

"hooks": { "Stop": [ { "hooks": [ { "type": "command", "command": "… hook claude-code run", … } ] } ] }
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from archiver.errors import RefusedError
from archiver.hooks.command import is_ours
from archiver.hooks.spans import Node, NotJsonError, Part, after_space, holds_comment, parse, string

EVENTS: Final = ("Stop", "PreCompact", "SubagentStop", "SessionEnd")
TIMEOUT: Final = 10
"""Seconds after which the harness gives a hook up. It takes a fraction of one."""
_Path = tuple[tuple[Node, Part], ...]
"""From the root to an entry: each container with the part of it that leads there."""


def installed(text: str, command: str) -> str:
    """The text with one entry for each event, and none of ours that has another command."""
    for event in EVENTS:
        while len(found := list(_entries(text, event))) > 1:
            text = _without(text, found[-1])
        if not found:
            text = _added(text, event, command)
        elif _command_of(text, found[0]) != command:
            text = _with_command(text, found[0], command)
    return text


def removed(text: str) -> str:
    """The text without entries of ours, under whatever event, and without the containers that they leave."""
    while (path := next(_entries(text), None)) is not None:
        text = _without(text, path)
    return text


def commands(text: str) -> dict[str, str]:
    """The command of ours by event."""
    found: dict[str, str] = {}
    for path in _entries(text):
        found.setdefault(path[1][1].name or "", _command_of(text, path) or "")
    return found


def all_off(text: str) -> bool:
    """Whether the file says that no hooks run at all."""
    return any(text[part.value.start : part.end] == "true" for part in _root(text).all("disableAllHooks"))


def snippet(command: str) -> str:
    """What a file without hooks would get, to be put in by hand."""
    return json.dumps({"hooks": {event: [_group(command)] for event in EVENTS}}, indent=2, ensure_ascii=False)


def _group(command: str) -> dict[str, Any]:
    return {"hooks": [{"type": "command", "command": command, "timeout": TIMEOUT}]}


# --- finding ------------------------------------------------------------------------------------------------


def _root(text: str) -> Node:
    try:
        root = parse(text)
    except NotJsonError as error:
        raise RefusedError(f"it is not JSON: {error}") from error
    if root.kind != "{":
        raise RefusedError("it is JSON, but no object")
    return root


def _entries(text: str, event: str | None = None) -> Iterator[_Path]:
    """Every entry whose command is ours; what does not have the form of hooks is somebody else's."""
    root = _root(text)
    hooks = _only(root, "hooks", "{")
    for member in hooks.value.parts if hooks else ():
        if hooks is None or member.value.kind != "[" or event not in (None, member.name):
            continue
        for group in member.value.parts:
            for inner in group.value.all("hooks"):
                for entry in inner.value.parts if inner.value.kind == "[" else ():
                    path = (
                        (root, hooks),
                        (hooks.value, member),
                        (member.value, group),
                        (group.value, inner),
                        (inner.value, entry),
                    )
                    if is_ours(_command_of(text, path) or ""):
                        yield path


def _only(node: Node, name: str, kind: str) -> Part | None:
    """The part under a name, which must be there once and of that kind if at all."""
    parts = node.all(name)
    if len(parts) > 1:
        raise RefusedError(f"it has {name!r} {len(parts)} times in one object, and only the last one counts")
    if parts and parts[0].value.kind != kind:
        raise RefusedError(f"its {name!r} is not {'an object' if kind == '{' else 'a list'}")
    return parts[0] if parts else None


def _command_of(text: str, path: _Path) -> str | None:
    found = path[-1][1].value.all("command")
    return string(text, found[-1].value) if found else None


# --- changing -----------------------------------------------------------------------------------------------


def _added(text: str, event: str, command: str) -> str:
    root = _root(text)
    hooks = _only(root, "hooks", "{")
    if hooks is None:
        return _inserted(text, root, "hooks", {event: [_group(command)]})
    groups = _only(hooks.value, event, "[")
    if groups is None:
        return _inserted(text, hooks.value, event, [_group(command)])
    return _inserted(text, groups.value, None, _group(command))


def _with_command(text: str, path: _Path, command: str) -> str:
    value = path[-1][1].value.all("command")[-1].value
    return text[: value.start] + json.dumps(command, ensure_ascii=False) + text[value.end :]


def _inserted(text: str, node: Node, name: str | None, value: Any) -> str:
    """A new last part of a container, in the form of the parts that are there."""
    unit, newline = _style(text)
    if not node.parts:
        inner = text[node.start + 1 : node.end - 1]
        keep = inner.rstrip() if holds_comment(inner) else ""
        outer = _indent_of(text, node.start)
        if unit is None and not keep:
            return text[: node.start + 1] + _shown(name, value, None, "") + text[node.end - 1 :]
        lead = f"{newline}{outer}{unit or '  '}"
        made = f"{keep}{lead}{_shown(name, value, unit or '  ', lead)}{newline}{outer}"
        return text[: node.start + 1] + made + text[node.end - 1 :]
    first, last = node.parts[0], node.parts[-1]
    before = text[node.start + 1 : first.start]
    lead = f"{newline}{_indent_of(text, first.start)}" if holds_comment(before) else before
    if "\n" not in lead:
        unit, lead = None, " " if ", " in text else ""
    tail = text[last.end : node.end - 1]
    kept = tail.rstrip() if holds_comment(tail) else ""
    if kept and "\n" not in lead:
        lead = newline
    at = last.end + len(kept)
    return text[: last.end] + "," + kept + lead + _shown(name, value, unit, lead) + text[at:]


def _shown(name: str | None, value: Any, unit: str | None, lead: str) -> str:
    made = json.dumps(value, indent=unit, ensure_ascii=False)
    label = f"{json.dumps(name)}: " if name is not None else ""
    return label + made.replace("\n", lead)


def _style(text: str) -> tuple[str | None, str]:
    """One step of indentation, None for a file on one line; and the line end."""
    newline = "\r\n" if "\r\n" in text else "\n"
    body = text.strip("\ufeff \t\r\n")
    if body == "{}":
        return "  ", newline
    if "\n" not in body:
        return None, newline
    match = re.search(r"\n([ \t]+)\S", text)
    return (match.group(1) if match else "  "), newline


def _indent_of(text: str, at: int) -> str:
    """White space at the beginning of the line."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _without(text: str, path: _Path) -> str:
    """The text without the last part of the path, or the outermost container that would be left empty."""
    level = len(path) - 1
    while level > 0 and _holds_only(path[level][0], path[level][1]):
        level -= 1
    node, part = path[level]
    at = node.parts.index(part)
    first, last = at == 0, at == len(node.parts) - 1
    if first and last:
        before, behind = text[node.start + 1 : part.start], text[part.end : node.end - 1]
        if not (holds_comment(before) or holds_comment(behind)):
            behind = ""
        return text[: node.start + 1] + _ended(before, behind + text[node.end - 1 :])
    if last:
        end = node.parts[at - 1].end
        comma = after_space(text, end)
        return text[:end] + _ended(text[end:comma] + text[comma + 1 : part.start], text[part.end :])
    comma = after_space(text, part.end)
    return text[: part.start] + (text[part.end : comma] + text[comma + 1 :]).lstrip(" \t\r\n")


def _ended(gap: str, rest: str) -> str:
    """What follows behind a gap of which only comments stay; one to the end of its line needs that end."""
    kept = gap.rstrip() if holds_comment(gap) else ""
    line_end = "\n" if "//" in kept and not rest.startswith(("\r", "\n")) else ""
    return kept + line_end + rest


def _holds_only(node: Node, part: Part) -> bool:
    """Whether a container has nothing but this part; a group is nothing without its hooks."""
    others = [one for one in node.parts if one is not part]
    return not [one for one in others if not (part.name == "hooks" and one.name == "matcher")]
