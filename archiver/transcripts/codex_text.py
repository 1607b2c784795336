"""What a person typed, told apart from what Codex writes into user messages (marks as in public runs)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

_WRAPPED = re.compile(
    r"\s*(?:<(?:environment_context|user_instructions|INSTRUCTIONS|permissions instructions"
    r"|collaboration_mode|turn_aborted|user_shell_command|user_action|skill|subagent_notification|personality_spec|model_switch"
    r"|hook_prompt|goal_context|[a-z]{1,20}_instructions)[ >]|# AGENTS\.md instructions\b)"
)
_SUMMARY: Final = "Another language model started to solve this problem"
_EDITOR: Final = "# Context from my IDE setup:"
_REQUEST = re.compile(r"^## My request for Codex:[ \t]*\n", re.MULTILINE)
_FOLDER = re.compile(
    r"<cwd>([^<\n]{1,4096})</cwd>|^Current working directory: ([^\n]{1,4096})$", re.MULTILINE
)
_ENVIRONMENT: Final = "<environment_context>"


def typed(texts: Iterable[str]) -> str:
    """The typed parts of a user message, joined by line ends; empty when the harness wrote all of them."""
    found = (_typed_part(text) for text in texts)
    return "\n".join(part for part in found if part)


def _typed_part(text: str) -> str:
    if _WRAPPED.match(text) or text.lstrip().startswith(_SUMMARY):
        return ""
    if text.lstrip().startswith(_EDITOR):
        asked = _REQUEST.search(text)
        return text[asked.end() :].strip() if asked else ""
    return text.strip()


def folder(content: Any) -> str | None:
    """The working folder that the harness states in a user message."""
    parts = content if isinstance(content, list) else ()
    for part in parts:
        text = part.get("text") if isinstance(part, dict) else None
        if isinstance(text, str) and text.startswith(_ENVIRONMENT):
            found = _FOLDER.search(text[:8192])
            return (found[1] or found[2]) if found else None
    return None
