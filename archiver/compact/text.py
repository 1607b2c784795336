"""Cutting and reading tool output: at character boundaries, never inside a redaction placeholder."""

from __future__ import annotations

import re

_PLACEHOLDER = re.compile(r"\[REDACTED:[a-z0-9-]{1,64}:[0-9a-f]{12}\]")
_LONGEST = len("[REDACTED::]") + 64 + 12

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_SURROGATES = re.compile(r"[\ud800-\udfff]")
_REMINDERS = re.compile(r"<([a-z]+-reminder)>.*?</\1>", re.DOTALL)
_MEANING = re.compile(r"\w")

LAST_WINDOW = 1024
"""Bytes at the end of an output in which its last meaningful line is looked for: no more than the tail that
a large output keeps inline, so that the line is the same before and after the output became an artifact."""


def encode(text: str) -> bytes:
    """The bytes whose size and SHA-256 stubs and artifacts state; a lone surrogate keeps its three bytes."""
    return text.encode("utf-8", "surrogatepass")


def byte_length(text: str) -> int:
    """Length in UTF-8, without encoding what is ASCII."""
    return len(text) if text.isascii() else len(encode(text))


def head(text: str, limit: int) -> str:
    """The longest start of `text` of at most `limit` bytes."""
    cut = text[:limit]
    data = encode(cut)
    if len(data) > limit:
        cut = _decode(data[: _boundary(data, limit)])
    if len(cut) == len(text):
        return text
    start = cut.rfind("[", max(0, len(cut) - _LONGEST))
    if start >= 0:
        found = _cut_placeholder(text, start, len(cut))
        return text[:start] if found else cut
    return cut


def tail(text: str, limit: int) -> str:
    """The longest end of `text` of at most `limit` bytes."""
    if limit <= 0:
        return ""
    cut = text[-limit:]
    data = encode(cut)
    if len(data) > limit:
        cut = _decode(data[_boundary(data, len(data) - limit, step=1) :])
    begin = len(text) - len(cut)
    if begin == 0:
        return text
    start = text.rfind("[", max(0, begin - _LONGEST), begin)
    if start >= 0 and (found := _cut_placeholder(text, start, begin)):
        return text[found.end() :]
    return cut


def _cut_placeholder(text: str, start: int, cut: int) -> re.Match[str] | None:
    found = _PLACEHOLDER.match(text, start)
    return found if found and start < cut < found.end() else None


def _boundary(data: bytes, at: int, step: int = -1) -> int:
    while 0 < at < len(data) and data[at] & 0xC0 == 0x80:
        at += step
    return at


def _decode(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")


def one_line(text: str, limit: int) -> str:
    """`text` without escapes, control characters and surrogates, on one line of at most `limit` bytes.

    What is left out is marked by an ellipsis, for which the limit has room.
    """
    rest = head(text, 4 * limit)  # bounds the work; blanks and escapes rarely take more
    line = _SURROGATES.sub("\ufffd", _CONTROLS.sub(" ", _ESCAPES.sub("", rest)))
    line = " ".join(line.split())
    if len(rest) == len(text) and len(encode(line)) <= limit:
        return line
    return head(line, limit - 3).rstrip() + "…"


def last_line(text: str, limit: int) -> str:
    """The last line of an output that says something; reminders that a harness appends are passed over."""
    window = _REMINDERS.sub("", tail(text, LAST_WINDOW))
    for line in reversed(window.splitlines()):
        short = one_line(line, limit)
        if _MEANING.search(short):
            return short
    return ""
