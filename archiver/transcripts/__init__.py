"""Transcript formats: what each means, how to read one from disk, and what it says."""

from archiver.transcripts.anthropic import AnthropicMessages
from archiver.transcripts.claude_code import ClaudeCode
from archiver.transcripts.codex import Codex
from archiver.transcripts.dialect import Dialect
from archiver.transcripts.opaque import Opaque
from archiver.transcripts.openai_chat import OpenAIChat
from archiver.transcripts.openai_responses import OpenAIResponses

_OPAQUE = Opaque()
DIALECTS: dict[str, Dialect] = {
    dialect.name: dialect
    for dialect in (
        AnthropicMessages(),
        ClaudeCode(),
        OpenAIChat(),
        OpenAIResponses(),
        Codex(),
        _OPAQUE,
    )
}


def get_dialect(name: str) -> Dialect:
    """The dialect of that name; `opaque` for a name that this release does not know."""
    return DIALECTS.get(name, _OPAQUE)


__all__ = ["DIALECTS", "Dialect", "get_dialect"]
