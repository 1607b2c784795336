"""The contract of all dialects, for those of Anthropic and for Chat Completions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .contract import DialectContract, scratch
from .samples import anthropic_messages, claude_session
from .samples_openai_chat import chat_messages

__all__ = ["scratch"]


class TestClaudeCode(DialectContract):
    name = "claude-code"
    keys = ("signature", "uuid", "parentUuid", "sessionId")

    def conversation(self, seed: int = 0) -> list[Any]:
        return list(claude_session(4, seed=seed, images=True))


class TestAnthropicMessages(DialectContract):
    name = "anthropic-messages"
    keys = ("signature", "tool_use_id")

    def conversation(self, seed: int = 0) -> list[Any]:
        return anthropic_messages(4, seed=seed, images=True)


class TestOpenAIChat(DialectContract):
    name = "openai-chat"
    keys = ("signature", "tool_call_id")

    def conversation(self, seed: int = 0) -> list[Any]:
        return chat_messages(4, seed=seed, images=True)


class TestOpenAIChatInAnArray(TestOpenAIChat):
    def write(self, path: Path, items: list[Any]) -> None:
        path.write_text(json.dumps(items, indent=2))
