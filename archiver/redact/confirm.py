"""From the end of a trigger to the exact span of a secret, in decoded text.

Each confirmer takes the buffer and the end of a trigger, looks at a bounded window and returns spans. Offsets
are bytes. A NUL ends every window: it separates the leaves of a joined buffer.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from archiver.redact.assigned import Assigned
from archiver.redact.negatives import is_filler

Spans = tuple[tuple[int, int, int], ...]
"""Start and end of each secret, and the index of its rule."""
Confirm = Callable[[bytes, int], Spans]
"""(buffer, end of the trigger) -> spans of secrets."""

NOTHING: Final[Spans] = ()
_AHEAD = 8192

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
    find = re.compile(BEFORE[boundary] + b"(?:" + pattern + b")" + AFTER[boundary])
    loose = re.compile(pattern)

    def confirm(data: bytes, end: int) -> Spans:
        for width in widths:
            start = end - width
            if start < 0:
                continue
            match = find.match(data, start)
            if match is None and proof is not None:
                match = loose.match(data, start)
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
    lead = re.compile(trigger, re.IGNORECASE | re.DOTALL)
    find = re.compile(pattern)

    def confirm(data: bytes, end: int) -> Spans:
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
_QUOTED = re.compile(
    rb"[=>~]?[ \t]*(?:[A-Za-z_][\w.\[\]|, ]{0,40}=[ \t]*)?(?:[rbuf]{1,2}|@)?(?P<q>\\{0,7}[\"'`])"
    rb"(?P<secret>[^\n\x00]{1,1024}?)(?<!\\)(?P=q)"
)
_BARE = re.compile(rb"[=>~]?[ \t]*(?P<secret>[^\s\"'`<>\\\x00;&,(){}\[\]|]{4,512})(?P<next>[(\[{<]?)")
_WHOLE = re.compile(rb"(?P<secret>[^\s\"'`\\\x00]{4,512})")
_STARTS_ALONE = re.compile(rb"(?:^|[\s:\x00>+|]|\\n|\xe2\x86\x92|m)\Z")


def assignment(assigned: Assigned) -> Confirm:
    """Confirms `NAME=value`, `name: value`, `"name": "value"` where the name says secret."""
    names = assigned.names

    def confirm(data: bytes, end: int) -> Spans:
        if data[end - 1] not in b":=":
            return NOTHING
        window = data[max(0, end - 96) : end - 1].translate(_NAME_BYTES)
        words = window.rsplit(None, 2)
        if not words:
            return NOTHING
        name = words[-1].decode()
        says = names.says(name)
        if says is None and len(words) > 1 and name.lower() in _SECOND_WORDS:
            says = names.says(words[-2].decode() + "_" + name)
        place = _value(data, end, len(name)) if says is not None else None
        if says is None or place is None:
            return NOTHING
        rule = assigned.rule(name, says, data[place[0] : place[1]])
        return NOTHING if rule is None else ((*place, rule),)

    return confirm


def _value(data: bytes, end: int, name: int) -> tuple[int, int] | None:
    match = _QUOTED.match(data, end)
    if match is not None:
        return match.span("secret")
    if data[end - 1 : end] == b"=" and _STARTS_ALONE.search(data, max(0, end - name - 4), end - 1 - name):
        match = _WHOLE.match(data, end)
        if match is not None:
            return _trim(data, *match.span("secret"))
    match = _BARE.match(data, end)
    if match is None or match["next"]:
        return None
    return _trim(data, *match.span("secret"))


def _trim(data: bytes, start: int, end: int) -> tuple[int, int]:
    while end > start and data[end - 1] in b",;.)]}":
        end -= 1
    return start, end
