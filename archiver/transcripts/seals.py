"""The registry of sealed fields: what providers encrypt or sign, wherever a harness keeps it.

It serves formats that are no dialect of ours. A leaf is sealed by its key, by what stands around it and by
its shape together; what a tool was given or gave back is text, whatever it is called there. Sources: the API
references of Anthropic, OpenAI, Google, Amazon Bedrock and OpenRouter, the documentation of the AI SDK and of
LangChain, and session files of the harnesses.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from archiver import jsonio
from archiver.transcripts import shapes
from archiver.transcripts.dialect import Path


@dataclass(frozen=True, slots=True)
class _Where:
    """What has to stand around a key: the `type` of its object, a key beside it, or the key above it."""

    kinds: frozenset[str] = frozenset()
    beside: frozenset[str] = frozenset()
    under: frozenset[str] = frozenset()


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_THOUGHTS: Final = _set(
    "thinking thought reasoning redacted_thinking redacted-reasoning reasoning.text reasoning.summary "
    "reasoning.encrypted reasoning_content thinking_block"
)
_SAID: Final = _set(
    "thinking thought reasoning reasoningText reasoning_text reasoningContent reasoning_content"
)
_PROVIDERS: Final = _set(
    "anthropic openai azure google vertex gemini bedrock amazonBedrock amazon-bedrock openrouter copilot "
    "google-vertex google-vertex-anthropic github-copilot xai"
)
_PART: Final = _set(
    "text thought functionCall function_call inlineData inline_data executableCode codeExecutionResult"
)
_CALL: Final = _set("toolCall tool_call tool-call tool_use tool function_call function text")

_SIGNED: Final = _Where(_THOUGHTS, _SAID, _PROVIDERS | _set("reasoningText reasoning_text"))
_ENCRYPTED: Final = _Where(
    _THOUGHTS | _set("compaction compaction_summary context_compaction"), _SAID, _PROVIDERS
)
_GEMINI: Final = _Where(_THOUGHTS | _CALL, _PART, _PROVIDERS)
_COPILOT: Final = _Where(_THOUGHTS, _SAID | _set("content toolRequests tool_calls messageId"), _PROVIDERS)
_PI: Final = _Where(_THOUGHTS | _CALL, _PART | _SAID)

_SEALS: Final[dict[str, _Where]] = {
    "signature": _SIGNED,
    "data": _Where(_set("redacted_thinking reasoning.encrypted redacted-reasoning")),
    "redactedData": _Where(_THOUGHTS, frozenset(), _PROVIDERS),
    "redactedContent": _Where(_THOUGHTS, _SAID, _PROVIDERS | _set("reasoningContent")),
    "redacted_content": _Where(_THOUGHTS, _SAID, _set("reasoning_content")),
    **dict.fromkeys(("encrypted_content", "encryptedContent", "reasoningEncryptedContent"), _ENCRYPTED),
    **dict.fromkeys(("encrypted_reasoning", "reasoning_signature", "reasoningSignature"), _ENCRYPTED),
    **dict.fromkeys(("thoughtSignature", "thought_signature"), _GEMINI),
    **dict.fromkeys(("reasoningOpaque", "reasoning_opaque"), _COPILOT),
    **dict.fromkeys(("thinkingSignature", "textSignature"), _PI),
}
_SIGNATURES = re.compile(r"(?:.*_)?thought_?signatures_*", re.IGNORECASE)
"""Keys of objects, or lists, that hold one signature a call."""
_IDS: Final = _set(
    "id uuid parentId parent_id parentID parentUuid sessionId session_id sessionID callId call_id callID "
    "toolCallId tool_call_id toolUseId tool_use_id messageId message_id messageID requestId request_id "
    "itemId item_id response_id responseId llm_response_id action_id leafUuid"
)
_OWN_ID: Final = re.compile(r"(?:ses|msg|prt|per|evt)_[0-9A-Za-z]{20,40}|[0-9A-HJKMNP-TV-Z]{26}")
"""Ids of harnesses: opencode's, and ULIDs."""
_MEDIA: Final = _set("data url image_url image base64 bytes file_data")
_MEDIA_BESIDE: Final = _set("mimeType mime_type media_type mediaType mime type")
_JSON_SEALS: Final = _set("thinkingSignature textSignature")
"""Fields in which a harness keeps a provider's whole item as JSON text."""
_TOOL = re.compile(
    r"tool|function|command|(?:^|[_.\-])(?:call|call_output|observation|action)$", re.IGNORECASE
)
_FREE: Final = _set(
    "arguments args input parameters functionResponse function_response toolUseResult tool_result toolResult "
    "tool_output toolOutput observation stdout stderr rawInput rawOutput resultDisplay"
)
"""What tools are given and give back, wherever it stands."""
_METADATA: Final = _set(
    "metadata providerMetadata providerOptions provider_metadata callProviderMetadata extra_content extra "
    "additional_kwargs response_metadata provider_specific_fields"
)
"""Where a call, too, carries what its provider hung on it."""
_KEYS: Final = _SEALS.keys() | _IDS | _MEDIA


def is_sealed(path: Path, item: Any) -> bool:
    """True for a leaf of `item` that no rule may change: a seal, an id, a picture, sound or PDF file."""
    key = path[-1] if path else None
    named = next((step for step in reversed(path) if isinstance(step, str)), "")
    if named not in _KEYS and not _in_signatures(path):
        return False
    steps = list(_steps(path, item))
    if len(steps) != len(path):
        return False
    value, owner = steps[-1][2], steps[-1][0]
    if _is_tools(steps):
        return False
    if isinstance(key, str) and key in _IDS:
        return shapes.is_id(value) or (isinstance(value, str) and _OWN_ID.fullmatch(value) is not None)
    if not isinstance(value, str):
        return False
    above = next((step for step in reversed(path[:-1]) if isinstance(step, str)), "")
    if _in_signatures(path) or (key in _SEALS and _stands(_SEALS[str(key)], owner, above)):
        return shapes.is_blob(value)
    return (
        key in _MEDIA
        and isinstance(owner, dict)
        and not _MEDIA_BESIDE.isdisjoint(owner)
        and (shapes.is_media(value))
    )


def may_hold_items(path: Path) -> bool:
    """True for a text that may be a provider's whole item, so that what is sealed in it is sealed here."""
    return bool(path) and path[-1] in _JSON_SEALS


def _in_signatures(path: Path) -> bool:
    return len(path) > 1 and isinstance(path[-2], str) and _SIGNATURES.fullmatch(path[-2]) is not None


def _stands(where: _Where, owner: Any, above: str) -> bool:
    if not isinstance(owner, dict):
        return False
    kind = owner.get("type")
    return (
        (isinstance(kind, str) and kind in where.kinds)
        or not where.beside.isdisjoint(owner)
        or above in where.under
    )


def _steps(path: Path, item: Any) -> Iterator[tuple[Any, str | int, Any]]:
    """Each step of a path with what it goes from and to; into JSON text where a harness keeps an item so."""
    held = item
    named: str | int = ""
    for step in path:
        if isinstance(held, str) and named in _JSON_SEALS:
            try:
                held = jsonio.loads(held.encode("utf-8", "surrogatepass"))
            except ValueError:
                return
        try:
            found = held[step]
        except (KeyError, IndexError, TypeError):
            return
        yield held, step, found
        held, named = found, step


def _is_tools(steps: list[tuple[Any, str | int, Any]]) -> bool:
    """True inside what a tool was given or gave back."""
    for number, (owner, step, _) in enumerate(steps):
        if not isinstance(owner, dict):
            continue
        is_leaf = number == len(steps) - 1
        if not is_leaf and (step in _FREE or (_is_of_tool(owner) and step not in _METADATA)):
            return True
    return False


def _is_of_tool(owner: dict[str, Any]) -> bool:
    for name in ("type", "role", "kind"):
        word = owner.get(name)
        if isinstance(word, str) and _TOOL.search(word):
            return True
    return "tool_call_id" in owner or "toolCallId" in owner or "tool_use_id" in owner
