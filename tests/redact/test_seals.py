"""Fields that providers seal, as harnesses keep them: none is changed, and none hides a credential.

Every form is made here, from the key, the container and the shape that its writer gives it.
"""

from __future__ import annotations

import base64
import json
import random
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from archiver.model import Items, Transcript, TranscriptPart
from archiver.redact import ExactValue, Redactor
from archiver.redact.finder import Finder
from archiver.scratch import Scratch
from archiver.transcripts.seals import is_sealed
from tests.redact.conftest import KEY
from tests.redact.support import expand

Make = Callable[[str], Any]
RNG = random.Random(7)


def seal(size: int = 300) -> str:
    """Base64 of what has no form, as a signature is."""
    return base64.b64encode(b"\x12" + RNG.randbytes(size)).decode()


def said(part: Any, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": [part], **more}


def gemini(part: Any) -> dict[str, Any]:
    return {"role": "model", "parts": [part]}


FORMS: dict[str, Make] = {
    "anthropic-thinking": lambda s: said({"type": "thinking", "thinking": "", "signature": s}),
    "anthropic-redacted": lambda s: said({"type": "redacted_thinking", "data": s}),
    "openai-reasoning": lambda s: {"output": [{"type": "reasoning", "summary": [], "encrypted_content": s}]},
    "openai-compaction": lambda s: {"type": "compaction", "encrypted_content": s},
    "gemini-call": lambda s: gemini({"functionCall": {"name": "f", "args": {}}, "thoughtSignature": s}),
    "gemini-text": lambda s: gemini({"text": "x", "thoughtSignature": s}),
    "gemini-snake": lambda s: gemini({"function_call": {"name": "f"}, "thought_signature": s}),
    "gemini-through-openai": lambda s: {
        "role": "assistant",
        "tool_calls": [
            {"id": "call_1", "type": "function", "extra_content": {"google": {"thought_signature": s}}}
        ],
    },
    "copilot-event": lambda s: {
        "type": "assistant.message",
        "data": {"content": "", "reasoningText": "x", "reasoningOpaque": s, "encryptedContent": s},
    },
    "copilot-api": lambda s: {"role": "assistant", "content": "x", "reasoning_opaque": s},
    "opencode-anthropic": lambda s: {
        "parts": [{"type": "reasoning", "text": "x", "metadata": {"anthropic": {"signature": s}}}]
    },
    "opencode-openai": lambda s: {
        "parts": [{"type": "reasoning", "metadata": {"openai": {"reasoningEncryptedContent": s}}}]
    },
    "opencode-tool": lambda s: {
        "parts": [{"type": "tool", "tool": "x", "state": {}, "metadata": {"google": {"thoughtSignature": s}}}]
    },
    "pi-thinking": lambda s: said({"type": "thinking", "thinking": "x", "thinkingSignature": s}),
    "pi-text": lambda s: said({"type": "text", "text": "x", "textSignature": s}),
    "pi-call": lambda s: said({"type": "toolCall", "id": "c", "name": "n", "thoughtSignature": s}),
    "bedrock-text": lambda s: said({"reasoningContent": {"reasoningText": {"text": "x", "signature": s}}}),
    "bedrock-redacted": lambda s: said({"reasoningContent": {"redactedContent": s}}),
    "ai-sdk": lambda s: {"type": "reasoning", "providerMetadata": {"bedrock": {"signature": s}}},
    "ai-sdk-redacted": lambda s: {"type": "reasoning", "providerOptions": {"anthropic": {"redactedData": s}}},
    "ai-sdk-call": lambda s: {
        "type": "tool-call",
        "input": {},
        "providerMetadata": {"vertex": {"thoughtSignature": s}},
    },
    "langchain": lambda s: {
        "type": "ai",
        "additional_kwargs": {"__gemini_function_call_thought_signatures__": {str(uuid.UUID(int=7)): s}},
    },
    "langchain-content": lambda s: {"kwargs": {"content": [{"type": "reasoning", "signature": s}]}},
    "openrouter": lambda s: {
        "reasoning_details": [
            {"type": "reasoning.encrypted", "data": s},
            {"type": "reasoning.text", "text": "x", "signature": s},
        ]
    },
    "openhands": lambda s: {"kind": "ActionEvent", "thinking_blocks": [{"thinking": "x", "signature": s}]},
    "letta": lambda s: {"messages": [said({"type": "reasoning", "reasoning": "x", "signature": s})]},
    "cline": lambda s: [said({"type": "thinking", "thinking": "x", "signature": s, "summary": []})],
}


def leaves(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(inner, (*path, key))


def kept(item: Any, finder: Finder, scratch: Scratch, *known: ExactValue) -> Any:
    """The item behind redaction, as a line of an unknown format."""
    part = TranscriptPart(name="main", items=Items.of_lines([json.dumps(item).encode()]))
    redactor = Redactor(finder, KEY, known)
    [made] = redactor.transcript(Transcript(parts=(part,)), scratch).value.parts[0].items
    return made


@pytest.mark.parametrize("make", FORMS.values(), ids=FORMS)
def test_every_sealed_field_is_known_as_one(make: Make) -> None:
    sealed = seal()
    item = make(sealed)
    places = [path for path, text in leaves(item) if text == sealed]
    assert places
    assert all(is_sealed(path, item) for path in places)
    assert not any(is_sealed(path, item) for path, text in leaves(item) if text == "x")


@pytest.mark.parametrize("make", FORMS.values(), ids=FORMS)
def test_a_sealed_field_survives_beside_a_credential(make: Make, finder: Finder, scratch: Scratch) -> None:
    inside = expand("AKIA{upper:16}")  # chance may write a form into a seal
    sealed = (
        base64.b64encode(RNG.randbytes(300)).decode() + inside + base64.b64encode(RNG.randbytes(9)).decode()
    )
    item = {"a": make(sealed), "note": token()}
    made = kept(item, finder, scratch)
    assert made["a"] == item["a"]
    assert "[REDACTED:" in made["note"]


@pytest.mark.parametrize("make", FORMS.values(), ids=FORMS)
def test_no_form_hides_a_credential(make: Make, finder: Finder, scratch: Scratch) -> None:
    secret = token()
    for hidden in (secret, base64.b64encode(f"export GITHUB_TOKEN={secret} # and more".encode()).decode()):
        assert hidden not in json.dumps(kept(make(hidden), finder, scratch))


@pytest.mark.parametrize("make", FORMS.values(), ids=FORMS)
def test_a_registered_value_goes_from_a_seal_too(make: Make, finder: Finder, scratch: Scratch) -> None:
    sealed = seal()
    made = json.dumps(kept(make(sealed), finder, scratch, ExactValue("X", sealed[20:60])))
    assert sealed[20:60] not in made


HOSTILE: dict[str, Make] = {
    "result-of-anthropic": lambda v: {"role": "user", "content": [{"type": "tool_result", "content": [v]}]},
    "result-as-text": lambda v: {"role": "tool", "tool_call_id": "c", "content": json.dumps(v)},
    "input": lambda v: said({"type": "tool_use", "id": "toolu_1", "input": v}),
    "output-of-responses": lambda v: {"type": "function_call_output", "output": [v]},
    "response-of-gemini": lambda v: gemini({"functionResponse": {"response": v}}),
    "state-of-opencode": lambda v: {"parts": [{"type": "tool", "state": {"output": v, "metadata": v}}]},
    "result-of-copilot": lambda v: {"type": "tool.execution_complete", "data": {"result": v}},
    "result-of-pi": lambda v: {"role": "toolResult", "content": [v], "details": v},
    "result-of-bedrock": lambda v: {"content": [{"toolResult": {"content": [{"json": v}]}}]},
    "observation": lambda v: {"kind": "ObservationEvent", "observation": v},
}


@pytest.mark.parametrize("wrap", HOSTILE.values(), ids=HOSTILE)
def test_what_a_tool_says_is_never_a_seal(wrap: Make) -> None:
    for make in FORMS.values():
        sealed = seal()
        item = wrap(make(sealed))
        assert not any(is_sealed(path, item) for path, text in leaves(item) if text == sealed)


def test_a_whole_item_kept_as_text_is_sealed_where_its_writer_sealed_it(
    finder: Finder, scratch: Scratch
) -> None:
    found = expand("glpat-{alnum:20}")  # what is found elsewhere is searched for in texts, not in seals
    sealed = base64.urlsafe_b64encode(RNG.randbytes(300)).decode() + found
    reasoning = {"type": "reasoning", "summary": [{"text": f"see {found}"}], "encrypted_content": sealed}
    item = said({"type": "thinking", "thinking": "x", "thinkingSignature": json.dumps(reasoning)})
    inner = ("content", 0, "thinkingSignature", "encrypted_content")
    assert is_sealed(inner, item)
    assert not is_sealed((*inner[:3], "summary", 0, "text"), item)
    made = json.loads(kept(item, finder, scratch)["content"][0]["thinkingSignature"])
    assert made["encrypted_content"] == sealed
    assert "[REDACTED:" in made["summary"][0]["text"]
    for key in ("text", "output"):
        told = {"role": "tool", key: json.dumps(reasoning)}
        assert not is_sealed((key, "encrypted_content"), told)


@pytest.mark.parametrize(
    "key", ["signature", "data", "encrypted_content", "thoughtSignature", "reasoningOpaque"]
)
def test_a_key_alone_says_nothing(key: str) -> None:
    assert not is_sealed((key,), {key: seal()})
    assert not is_sealed(("a", key), {"a": {key: seal(), "note": "x"}})


def test_ids_and_pictures_of_unknown_formats() -> None:
    png = base64.b64encode(b"\x89PNG\r\n\x1a\n" + RNG.randbytes(60)).decode()
    item = {
        "id": f"msg_{'0a1B' * 6}",
        "parentId": str(uuid.UUID(int=3)),
        "parts": [{"mimeType": "image/png", "data": png}, {"type": "tool", "callID": "toolu_01"}],
        "state": {"id": "correct horse"},
    }
    sealed = {path for path, _ in leaves(item) if is_sealed(path, item)}
    assert sealed == {("id",), ("parentId",), ("parts", 0, "data"), ("parts", 1, "callID")}


def token() -> str:
    return expand("ghp_{alnum:36}", RNG.randrange(10**6))
