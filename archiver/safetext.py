"""Text of unknown origin, made harmless for terminals and documents."""

from __future__ import annotations

import unicodedata
from typing import Final

_HARMFUL: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Control, format (bidi overrides, zero width), surrogate, private and unassigned; line separators."""


def one_line(text: str) -> str:
    """The text on one line, every character that could steer a terminal written as its escape."""
    if text.isprintable():
        return text
    return "".join(_shown(character) for character in text)


def _shown(character: str) -> str:
    if character == "\n":
        return "⏎"
    if character == "\t":
        return " "
    if unicodedata.category(character) not in _HARMFUL:
        return character
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def shorten(text: str, limit: int) -> str:
    """White space folded, and cut to `limit` characters, never inside a placeholder of redaction."""
    folded = " ".join(text.split())
    if len(folded) <= limit:
        return folded
    cut = folded[: limit - 1]
    opened = cut.rfind("[REDACTED:")
    if opened >= 0 and "]" not in cut[opened:]:
        cut = cut[:opened]
    return cut + "…"
