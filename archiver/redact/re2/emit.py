"""An expression as Python's `re` reads it (over text), and as a trigger of Vectorscan (over raw bytes)."""

from __future__ import annotations

import re
from typing import Final

from archiver.redact.re2.tree import Alt, Cat, Chars, Edge, Group, Node, Repeat, literal, shortest, telling

# Where a transcript shows text with its escapes or colours written out, they are no part of words and lines.
_WORD: Final = (
    r"(?:\b|(?<=\\[nrtbfav0])|(?<=%[0-9A-Fa-f]{2})|(?<=\[[0-9]m)|(?<=[\[;][0-9][0-9]m)|(?<=;[0-9]m)"
    r"|(?=\\[nrt]))"
)
_EDGES: Final = {
    "begin": r"(?:^|(?<=\\[nr]))",
    "end": r"(?:$|(?=\\[nr]))",
    "word": _WORD,
    "no-word": r"\B",
}
TELLING: Final = 16
"""Bits that a trigger has to say; if what follows its first fixed text says so much, the rest is left out."""
_ANYTHING: Final = 200
"""A set of more characters than this is any byte to the trigger."""
_UNITS: Final = 24
_GROUPS: Final = 8
_RUN: Final = 500
_LETTERS: Final = {10: "n", 13: "r", 9: "t", 8: "b", 12: "f"}
_QUOTED: Final = b'"\\/'
_MAYBE_ESCAPED: Final = b"<>&'"
_UNIT_LIMIT: Final = 1000


def python(node: Node) -> str:
    """The pattern for `re.compile(…, re.ASCII | re.MULTILINE)`; group numbers stay, names are left out."""
    if isinstance(node, Chars):
        return _python_set(node)
    if isinstance(node, Edge):
        return _EDGES[node.kind]
    if isinstance(node, Cat):
        return "".join(
            python(part) if not isinstance(part, Alt) else f"(?:{python(part)})" for part in node.parts
        )
    if isinstance(node, Alt):
        return "|".join(map(python, node.options))
    if isinstance(node, Group):
        return f"({python(node.node)})"
    body = python(node.node)
    body = body if isinstance(node.node, Chars | Group) else f"(?:{body})"
    high = "" if node.high is None else str(node.high)
    return f"{body}{{{node.low},{high}}}{'?' if node.lazy else ''}"


def _python_set(node: Chars) -> str:
    if node.size == 1:
        return re.escape(chr(node.ranges[0][0]))
    return "[" + "".join(_span(low, high) for low, high in node.ranges) + "]"


def _span(low: int, high: int) -> str:
    return _code(low) if low == high else f"{_code(low)}-{_code(high)}"


def _code(code: int) -> str:
    if code < 128 and chr(code).isalnum():
        return chr(code)
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def trigger(node: Node) -> bytes:
    """A pattern that matches a beginning of whatever the expression matches, also in raw JSON text.

    It asks for less than the expression: no boundaries, no optional ends, looser counts. Characters that JSON
    may escape also match escaped, any number of times.
    """
    trimmed = _trimmed(node, head=True, tail=True)
    if isinstance(trimmed, Cat):
        fixed = next((at for at, part in enumerate(trimmed.parts) if literal(part)), 0)
        rest = Cat(trimmed.parts[fixed:])
        if telling(rest) >= TELLING:
            trimmed = rest
    return _trigger(trimmed).encode("ascii")


def _trimmed(node: Node, *, head: bool, tail: bool) -> Node:
    """The expression without what is optional at these ends: it need not be there for it to match."""
    if isinstance(node, Group):
        return _trimmed(node.node, head=head, tail=tail)
    if isinstance(node, Alt):
        return Alt(tuple(_trimmed(option, head=head, tail=tail) for option in node.options))
    if isinstance(node, Repeat):
        inner = _trimmed(node.node, head=head, tail=tail) if node.low == 1 else node.node
        return Repeat(inner, node.low, node.low)
    if not isinstance(node, Cat):
        return node
    parts: list[Node] = [part for part in node.parts if not isinstance(part, Edge)]
    while head and parts and not shortest(parts[0]):
        parts.pop(0)
    while tail and parts and not shortest(parts[-1]):
        parts.pop()
    if len(parts) == 1:
        return _trimmed(parts[0], head=head, tail=tail)
    if parts and head:
        parts[0] = _trimmed(parts[0], head=True, tail=False)
    if parts and tail:
        parts[-1] = _trimmed(parts[-1], head=False, tail=True)
    return Cat(tuple(parts))


def _trigger(node: Node) -> str:
    if isinstance(node, Chars):
        return _unit(node)
    if isinstance(node, Edge):
        return ""
    if isinstance(node, Cat):
        return "".join(_trigger(part) for part in node.parts)
    if isinstance(node, Alt):
        return "(?:" + "|".join(map(_trigger, node.options)) + ")"
    if isinstance(node, Group):
        return f"(?:{_trigger(node.node)})"
    return _repeated(node)


def _repeated(node: Repeat) -> str:
    low, high = node.low, node.high
    if isinstance(node.node, Chars):
        if node.node.size > _ANYTHING:
            top = _UNIT_LIMIT if high is None else min(6 * high, _UNIT_LIMIT)
            return f"[^\\x00]{{{low},{max(top, low)}}}"
        unit = _unit(node.node)
        most = _RUN if unit.startswith("[") else _UNITS
    else:
        unit, most = f"(?:{_trigger(node.node)})", _GROUPS
        if unit == "(?:)":
            return ""
    if low > most:
        low = most
    top_text = "" if high is None or high > most else str(high)
    if low == high:
        return unit if low == 1 else f"{unit}{{{low}}}"
    return f"{unit}{{{low},{top_text}}}"


def _unit(node: Chars) -> str:
    """One character as raw JSON text may show it."""
    if node.size > _ANYTHING:
        return "[^\\x00]"
    plain = [code for code in range(128) if node.holds(code)]
    options = []
    if plain:
        options.append(_ascii(node))
    quoted = "".join(f"\\x{code:02x}" for code in plain if code in _QUOTED)
    quoted += "".join(letter for code, letter in _LETTERS.items() if node.holds(code))
    if quoted:
        options.append(f"\\\\+[{quoted}]")
    if any(code < 32 or code in _MAYBE_ESCAPED or code == 127 for code in plain):
        options.append("\\\\+u00[0-9a-fA-F]{2}")
    if node.ranges[-1][1] > 127:
        options.append("[\\x80-\\xff]{1,4}|(?:\\\\+u[0-9a-fA-F]{4}){1,2}")
    return (
        options[0]
        if len(options) == 1 and options[0].startswith("[\\x") and plain
        else f"(?:{'|'.join(options)})"
    )


def _ascii(node: Chars) -> str:
    """The part of a set that is ASCII, as a class of bytes."""
    spans = [(low, min(high, 127)) for low, high in node.ranges if low < 128]
    return "[" + "".join(f"\\x{a:02x}" if a == b else f"\\x{a:02x}-\\x{b:02x}" for a, b in spans) + "]"
