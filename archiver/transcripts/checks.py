"""Texts that a provider refuses: empty blocks, lone surrogates, tool names that are none."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from archiver.transcripts.dialect import Facts, Problem

_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")


def text_problems(item: int, content: Any, facts: Facts) -> Iterator[Problem]:
    """What is wrong with the texts of one message; an empty thinking text with its signature is fine."""
    if content in ("", []):
        yield Problem("empty_text", item, "the message has no content")
    elif isinstance(content, str) and not content.strip():
        yield Problem("empty_text", item, "the message is only white space")
    elif isinstance(content, list):
        for block in content:
            if isinstance(block, dict) and block.get("type") == "text" and not str(block.get("text")).strip():
                yield Problem("empty_text", item, "a text block is empty or only white space")
    for call in facts.calls:
        if not _TOOL_NAME.fullmatch(call.name):
            yield Problem("bad_text", item, "the tool has a name the provider refuses", call.id)
    if not sound(content):
        yield Problem("bad_text", item, "a text holds a lone surrogate")


def sound(value: Any) -> bool:
    """True when every text inside can be written as UTF-8."""
    if isinstance(value, str):
        if value.isascii():
            return True
        try:
            value.encode()
        except UnicodeEncodeError:
            return False
        return True
    if isinstance(value, dict):
        return all(sound(key) and sound(inner) for key, inner in value.items())
    return all(map(sound, value)) if isinstance(value, list) else True
