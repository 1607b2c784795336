"""From the end of a trigger to the exact span of a secret, in decoded text.

Each confirmer takes the buffer and the end of a trigger, looks at a bounded window and returns spans. Offsets
are bytes. A NUL ends every window: it separates the leaves of a joined buffer.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from archiver.redact import values
from archiver.redact.assigned import Assigned
from archiver.redact.forms import compiled
from archiver.redact.names import Names, Says
from archiver.redact.negatives import is_filler

Spans = tuple[tuple[int, int, int], ...]
"""Start and end of each secret, and the index of its rule."""
Confirm = Callable[[bytes, int], Spans]
"""(buffer, end of the trigger) -> spans of secrets."""

NOTHING: Final[Spans] = ()
_AHEAD = 8192
LEAD: Final = re.IGNORECASE | re.DOTALL
"""How the trigger of a context is read in Python, as the engine reads it."""

# What may stand right before a token although it ends in a letter or digit: an escape that was written out
# (`\n`, `%3D`) or the end of a colour sequence.
_ESCAPED = (
    rb"(?<=\\[nrtbfav0])|(?<=%[0-9A-Fa-f]{2})|(?<=\[[0-9]m)|(?<=[\[;][0-9][0-9]m)|(?<=;[0-9]m)|(?<=\\x1b\[m)"
)
BEFORE: Final = {
    "word": rb"(?:(?<![A-Za-z0-9])|" + _ESCAPED + rb")",
    "strict": rb"(?:(?<![A-Za-z0-9+/_\-])|(?<=//)|(?<=\n[+\-])|(?<=\A[+\-])|" + _ESCAPED + rb")",
    "open": rb"",
}
AFTER: Final = {"word": rb"(?![A-Za-z0-9])", "strict": rb"(?![A-Za-z0-9+/_=\-])", "open": rb""}


def form(
    rule: int,
    pattern: bytes,
    boundary: str,
    widths: tuple[int, ...],
    proof: Callable[[bytes], bool] | None,
) -> Confirm:
    """Confirms a form, which begins one of `widths` bytes before the end of its trigger.

    A checksum (`proof`) that is right makes up for a boundary that is not there.
    """
    bounded = BEFORE[boundary] + b"(?:" + pattern + b")" + AFTER[boundary]

    def confirm(data: bytes, end: int) -> Spans:
        find = compiled(bounded)
        for width in widths:
            start = end - width
            if start < 0:
                continue
            match = find.match(data, start)
            if match is None and proof is not None:
                match = compiled(pattern).match(data, start)
                match = match if match and proof(match[0]) else None
            if match is not None and match.end() >= end:
                return NOTHING if is_filler(match[0]) else ((*match.span(), rule),)
        return NOTHING

    return confirm


def context(
    rule: int, trigger: bytes, pattern: bytes, reach: int, accept: Callable[[bytes], bool]
) -> Confirm:
    """Confirms text around a trigger: `pattern` begins where it does, and its group `secret` is the value.

    A trigger begins at most `reach` bytes before its end.
    """

    def confirm(data: bytes, end: int) -> Spans:
        lead, find = compiled(trigger, LEAD), compiled(pattern)
        candidate = None
        for candidate in lead.finditer(data, max(0, end - reach), end):  # noqa: B007 - the last one is wanted
            pass
        match = find.match(data, candidate.start(), end + _AHEAD) if candidate is not None else None
        if match is None or match.end() < end:
            return NOTHING
        group = "secret" if match["secret"] is not None else "bare"
        return ((*match.span(group), rule),) if accept(match[group]) else NOTHING

    return confirm


def shaped(rule: int, find: Callable[[bytes, int], tuple[tuple[int, int], ...]]) -> Confirm:
    """Confirms what a function of `shapes` finds."""

    def confirm(data: bytes, end: int) -> Spans:
        return tuple((start, stop, rule) for start, stop in find(data, end))

    return confirm


_NAME_BYTES = bytes(c if (chr(c).isalnum() and c < 128) or c in b"_-." else 32 for c in range(256))
_SECOND_WORDS = frozenset({"key", "token", "secret"})
_TYPES = frozenset(
    {"string", "String", "str", "byte", "bytes", "char", "wstring", "NSString", "text", "varchar", "value"}
)
"""What may stand between a name and its sign: a type, as in Go, or the attribute `value` of XML."""
_VERDICTS: Final = frozenset({"PASS", "nPASS"})
"""What test frameworks write before the name of a test that went well (DejaGnu, Automake, Go); `\\nPASS`."""
_NAME_REACH = 96
_COMMA, _CLOSE, _COLON = b",>:"
_QUOTES: Final = b"\"'`"


def assignment(assigned: Assigned) -> Confirm:
    """Confirms `NAME=value`, `("name", "value")`, `<name>value</name>` where the name says secret."""

    def confirm(data: bytes, end: int) -> Spans:
        sign = data[end - 1]
        said = _named(assigned.names, data, end) if sign in b":=,>" else None
        if said is None:
            return NOTHING
        name, says = said
        value = _value(data, end, sign, len(name))
        if value is None:
            return NOTHING
        text = data[value.start : value.end]
        rule = assigned.rule(name, says, text, literal=value.literal)
        if rule is None and (place := values.place_of(data, end, value, name)) is not None:
            rule = assigned.made_up(name, says, text, place)
        return NOTHING if rule is None else ((value.start, value.end, rule),)

    return confirm


def _named(names: Names, data: bytes, end: int) -> tuple[str, Says] | None:
    """The name before the sign, and what it says."""
    words = data[max(0, end - _NAME_REACH) : end - 1].translate(_NAME_BYTES).rsplit(None, 3)
    while words and not words[-1].strip(b"._-"):
        words.pop()
    if not words:
        return None
    name = words.pop().decode()
    if name in _VERDICTS and data[end - 2] not in _QUOTES and data[end - 1] == _COLON:
        return None
    if words and (name in _TYPES or name.isdigit()):
        name = words.pop().decode()
    says = names.says(name)
    if says is None and words and name.lower() in _SECOND_WORDS:
        says = names.says(words[-1].decode() + "_" + name)
    return None if says is None else (name, says)


def _value(data: bytes, end: int, sign: int, name: int) -> values.Value | None:
    if sign == _COMMA:
        return values.next_argument(data, end) if _after_quote(data, end) else None
    if sign == _CLOSE:
        opened = data[end - 2 - name : end - 1 - name] in (b"<", b":")
        return values.in_element(data, end) if opened else None
    return values.after_sign(data, end, name)


def _after_quote(data: bytes, end: int) -> bool:
    return data[max(0, end - 8) : end - 1].rstrip()[-1:] in (b'"', b"'", b"`")
