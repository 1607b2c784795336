"""The contract of all dialects, for each of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .contract import DialectContract, scratch
from .samples import anthropic_messages, claude_session
from .samples_codex import codex_flat, codex_session
from .samples_openai_chat import chat_messages
from .samples_responses import hosted_items, response_items

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


class TestOpenAIResponses(DialectContract):
    name = "openai-responses"
    keys = ("encrypted_content", "id", "call_id")

    def conversation(self, seed: int = 0) -> list[Any]:
        return [*response_items(4, seed=seed, images=True), *hosted_items(seed)]

    def kept(self, cut: list[Any]) -> list[Any]:
        """All but reasoning at the end, which the API refuses without what follows it."""
        return cut[:-1] if cut[-1]["type"] == "reasoning" else cut


class TestOpenAIResponsesInAnArray(TestOpenAIResponses):
    def write(self, path: Path, items: list[Any]) -> None:
        path.write_text(json.dumps(items, indent=2))


class TestCodex(DialectContract):
    name = "codex"
    keys = ("encrypted_content", "id", "call_id", "turn_id", "commit_hash")

    def conversation(self, seed: int = 0) -> list[Any]:
        return list(codex_session(4, seed=seed, images=True))

    def kept(self, cut: list[Any]) -> list[Any]:
        """All but reasoning that nothing of the model follows."""
        last = [line for line in cut if line["type"] == "response_item"][-1:]
        lone = last and last[0]["payload"]["type"] == "reasoning"
        return [line for line in cut if line is not last[0]] if lone else cut


class TestCodexCompacted(TestCodex):
    def conversation(self, seed: int = 0) -> list[Any]:
        return list(codex_session(5, seed=seed, images=True, compaction=True, ordinals=True))


class TestCodexFlat(TestCodex):
    def conversation(self, seed: int = 0) -> list[Any]:
        lines = codex_flat(4, seed=seed)
        pictured = response_items(1, seed=seed, images=True)
        return [*lines, *pictured]

    def kept(self, cut: list[Any]) -> list[Any]:
        items = [line for line in cut if "type" in line]
        lone = items and items[-1]["type"] == "reasoning"
        return [line for line in cut if line is not items[-1]] if lone else cut
