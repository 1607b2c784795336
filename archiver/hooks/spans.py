"""JSON text as places: what stands where, so that one part changes and every other byte stays.

Comments (`//` and `/* */`) count as white space, as editors of settings allow them.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field

_SPACE = re.compile(r"(?:[ \t\r\n]+|//[^\r\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"')
_SCALAR = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null")
_WORD = re.compile(r"[-+.\w]*")
_MAX_DEPTH = 100


class NotJsonError(ValueError):
    """The text is no JSON with comments; says line and column (1-based)."""


@dataclass(frozen=True, slots=True)
class Node:
    """A value and where it stands: `text[start:end]`."""

    kind: str
    """`{`, `[`, `"` or `scalar`."""
    start: int
    end: int
    parts: tuple[Part, ...] = ()
    """What an object or array holds, in order."""

    def all(self, name: str) -> list[Part]:
        """The parts of an object under a name; JSON allows one name several times."""
        return [part for part in self.parts if part.name == name]


@dataclass(frozen=True, slots=True)
class Part:
    """One member of an object, or one element of an array; `start` is that of its name, where it has one."""

    start: int
    value: Node
    name: str | None = field(default=None)

    @property
    def end(self) -> int:
        return self.value.end


def parse(text: str) -> Node:
    """The one value of the text; raises `NotJsonError`."""
    at = after_space(text, 1 if text.startswith("\ufeff") else 0)
    node = _value(text, at, 0)
    if (end := after_space(text, node.end)) != len(text):
        raise _wrong(text, end, "nothing should follow here")
    return node


def string(text: str, node: Node) -> str | None:
    """What a string says; None for any other value."""
    if node.kind != '"':
        return None
    said = json.loads(text[node.start : node.end])
    return said if isinstance(said, str) else None


def holds_comment(trivia: str) -> bool:
    """Whether text between two values has a comment."""
    return "/" in trivia


def after_space(text: str, at: int) -> int:
    """The place behind white space and comments."""
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _value(text: str, at: int, depth: int) -> Node:
    if depth > _MAX_DEPTH:
        raise _wrong(text, at, "this is nested too deep for a settings file")
    first = text[at : at + 1]
    if first in ("{", "["):
        return _container(text, at, depth, first)
    if first == '"':
        return Node('"', at, _string_end(text, at))
    match = _SCALAR.match(text, at)
    if match is None or match.end() != _word_end(text, at):
        raise _wrong(text, at, "a value was expected here")
    return Node("scalar", at, match.end())


def _container(text: str, start: int, depth: int, kind: str) -> Node:
    close = "}" if kind == "{" else "]"
    parts: list[Part] = []
    at = after_space(text, start + 1)
    if text[at : at + 1] == close:
        return Node(kind, start, at + 1)
    while True:
        part = _member(text, at, depth) if kind == "{" else Part(at, _value(text, at, depth + 1))
        parts.append(part)
        at = after_space(text, part.end)
        follows = text[at : at + 1]
        if follows == close:
            return Node(kind, start, at + 1, tuple(parts))
        if follows != ",":
            raise _wrong(text, at, f"`,` or `{close}` was expected here")
        at = after_space(text, at + 1)


def _member(text: str, at: int, depth: int) -> Part:
    end = _string_end(text, at)
    colon = after_space(text, end)
    if text[colon : colon + 1] != ":":
        raise _wrong(text, colon, "`:` was expected here")
    value = _value(text, after_space(text, colon + 1), depth + 1)
    return Part(at, value, json.loads(text[at:end]))


def _string_end(text: str, at: int) -> int:
    match = _STRING.match(text, at)
    if match is None:
        raise _wrong(text, at, "a string was expected here, in double quotes and on one line")
    return match.end()


def _word_end(text: str, at: int) -> int:
    match = _WORD.match(text, at)
    return match.end() if match else at


def _wrong(text: str, at: int, what: str) -> NotJsonError:
    line = text.count("\n", 0, at) + 1
    column = at - text.rfind("\n", 0, at)
    return NotJsonError(f"line {line}, column {column}: {what}")
