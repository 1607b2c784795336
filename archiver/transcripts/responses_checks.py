"""What is wrong with one Responses item by itself, and the item without it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from archiver.transcripts.checks import sound, without_surrogates
from archiver.transcripts.dialect import Problem
from archiver.transcripts.responses_items import ANSWERS, REASONING, SEALED, TEXT_PARTS, call_id, kind_of
from archiver.transcripts.responses_sealed import is_broken

ROLES: Final = frozenset({"user", "assistant", "system", "developer"})
_OTHER_NAMES: Final = {"model": "assistant", "ai": "assistant", "bot": "assistant", "human": "user"}
"""Roles that mean one of the API's; any other is a line of the harness's own, which no model ever saw."""
_TOOL_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_ONLY_PROVIDER: Final = "it stands for what came before it, and nobody but the provider could write it again"


def item_problems(index: int, item: Any) -> Iterator[Problem]:
    """What is wrong with one Responses item, which stands in the transcript's item `index`."""
    kind = kind_of(item)
    if kind == "message":
        if not _is_known(item.get("role")):
            yield Problem("bad_role", index, "the API does not know this role")
        elif _says_nothing(item.get("content")):
            yield Problem("empty_text", index, "the message has no content")
        elif _has_empty(item["content"]):
            yield Problem("empty_text", index, "a text part is empty or only white space")
    elif kind in ANSWERS:
        name = item.get("name")
        if isinstance(name, str) and not _TOOL_NAME.fullmatch(name):
            detail = "the tool has a name the provider refuses"
            yield Problem("bad_name", index, detail, call_id(item, kind) or None, name=name)
        if not call_id(item, kind) and item.get("execution") != "server":
            yield Problem("unanswerable_call", index, "a call has no id", "")
    elif kind in SEALED and is_broken(item.get("encrypted_content")):
        detail = "what the provider encrypted is destroyed"
        if kind == REASONING:  # what followed it is taken without it, as after a change of the account
            yield Problem("broken_seal", index, detail, loose=True)
        else:
            yield Problem("broken_seal", index, detail, beyond=_ONLY_PROVIDER)


def text_problems(index: int, item: Any) -> Iterator[Problem]:
    """Texts of the transcript's item that have no form in UTF-8."""
    try:
        if not sound(item):
            yield Problem("bad_text", index, "a text holds a lone surrogate")
    except RecursionError:
        yield Problem("bad_text", index, "the item is nested too deeply")


def with_sound_text(one: Any) -> Any | None:
    """The Responses item without empty texts and lone surrogates; None where it says nothing at all."""
    if kind_of(one) == "message" and _is_known(one.get("role")):
        content = one.get("content")
        if _says_nothing(content):
            return None
        if _has_empty(content):
            one = {**one, "content": [part for part in content if not _is_empty(part)]}
    return without_surrogates(one)


def with_sound_role(one: Any) -> Any | None:
    """The message under the API's own name for its role; None for a line that was never sent."""
    if kind_of(one) != "message" or _is_known(one.get("role")):
        return one
    role = one.get("role")
    known = _OTHER_NAMES.get(role.lower()) if isinstance(role, str) else None
    return {**one, "role": known} if known else None


def _is_known(role: Any) -> bool:
    return isinstance(role, str) and role in ROLES


def _has_empty(content: Any) -> bool:
    return isinstance(content, list) and any(map(_is_empty, content))


def _says_nothing(content: Any) -> bool:
    if isinstance(content, list):
        return all(map(_is_empty, content))
    return not isinstance(content, str) or not content.strip()


def _is_empty(part: Any) -> bool:
    """True for a part that is a text with nothing in it."""
    if not isinstance(part, dict) or part.get("type") not in TEXT_PARTS:
        return False
    text = part.get("text")
    return not isinstance(text, str) or not text.strip()
