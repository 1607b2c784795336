"""Texts that a provider refuses: empty blocks, lone surrogates, tool names that are none."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from archiver.transcripts.dialect import Facts, Problem

_SURROGATE = re.compile(r"[\ud800-\udfff]")
_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")


def text_problems(item: int, content: Any, facts: Facts) -> Iterator[Problem]:
    """What is wrong with the texts of one message; an empty thinking text with its signature is fine."""
    if content in ("", []):
        yield Problem("empty_text", item, "the message has no content")
    elif isinstance(content, str) and not content.strip():
        yield Problem("empty_text", item, "the message is only white space")
    elif isinstance(content, list):
        for block in content:
            if is_empty_text(block):
                yield Problem("empty_text", item, "a text block is empty or only white space")
    yield from form_problems(item, content, facts)


def form_problems(item: int, value: Any, facts: Facts) -> Iterator[Problem]:
    """Tool names that are none, and texts inside `value` that cannot be sent."""
    for call in facts.calls:
        if not _TOOL_NAME.fullmatch(call.name):
            yield Problem(
                "bad_name", item, "the tool has a name the provider refuses", call.id, name=call.name
            )
    try:
        if not sound(value):
            yield Problem("bad_text", item, "a text holds a lone surrogate")
    except RecursionError:
        yield Problem("bad_text", item, "the message is nested too deeply")


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


def with_sound_text(content: Any) -> Any:
    """The content without empty texts, lone surrogates replaced; the same object if all is sound.

    An empty text as the whole content gives an empty list.
    """
    if isinstance(content, str):
        return without_surrogates(content) if content.strip() else []
    if not isinstance(content, list):
        return content
    kept = [without_surrogates(block) for block in content if not is_empty_text(block)]
    same = len(kept) == len(content) and all(new is old for new, old in zip(kept, content, strict=True))
    return content if same else kept


def is_empty_text(block: Any) -> bool:
    """True for a text block without a text or with nothing but white space."""
    return isinstance(block, dict) and block.get("type") == "text" and not str(block.get("text")).strip()


def without_surrogates(value: Any) -> Any:
    """The value with U+FFFD for lone surrogates; the same object if there are none."""
    made = value
    if isinstance(value, str) and not value.isascii():
        made = _SURROGATE.sub("\ufffd", value)
    elif isinstance(value, dict):
        made = {without_surrogates(key): without_surrogates(inner) for key, inner in value.items()}
    elif isinstance(value, list):
        made = [without_surrogates(inner) for inner in value]
    return value if made == value else made
