"""Ways to be invalid that conversations with OpenAI can have, and the forms in which files hold them.

Numbers are those of the list of ways in which a restored session is invalid.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from archiver.transcripts.openai_limits import MOST_PICTURES

from .samples_codex import Rollout
from .samples_responses import ItemWriter

CHAT, RESPONSES, CODEX = "openai-chat", "openai-responses", "codex"
DOT = "data:image/png;base64,iVBORw0KGgo="
HALF = "half \ud83d a pair"
Items_ = list[dict[str, Any]]
Damage = Callable[[Items_], Items_]


class Way(NamedTuple):
    """One way to be invalid: its number, a name, what does it, and the codes that it has to be found by."""

    number: int
    name: str
    damage: Damage
    codes: tuple[str, ...]
    left: tuple[str, ...] = ()
    """Codes of what nothing can mend."""


# Chat Completions: [prompt, question, calls a and b, result of a, result of b, answer, question, answer]


def chat() -> Items_:
    return [
        {"role": "system", "content": "You are careful."},
        {"role": "user", "content": "What is here?"},
        {"role": "assistant", "content": None, "tool_calls": [chat_call("a", "ls"), chat_call("b", "pwd")]},
        {"role": "tool", "tool_call_id": "a", "content": "x.py"},
        {"role": "tool", "tool_call_id": "b", "content": "/w"},
        {"role": "assistant", "content": "One file.", "reasoning_content": "hm"},
        {"role": "user", "content": [{"type": "text", "text": "Thanks."}]},
        {"role": "assistant", "content": "Welcome."},
    ]


def chat_call(own: str, command: str) -> dict[str, Any]:
    called = {"name": "bash", "arguments": json.dumps({"command": command})}
    return {"id": own, "type": "function", "function": called}


def without(*places: int) -> Damage:
    return lambda items: [item for place, item in enumerate(items) if place not in places]


def with_item(place: int, item: Any) -> Damage:
    return lambda items: [*items[:place], item, *items[place:]]


def twice(place: int) -> Damage:
    return lambda items: [*items[: place + 1], *items[place:]]


def moved(place: int, to: int) -> Damage:
    def damage(items: Items_) -> Items_:
        rest = [*items[:place], *items[place + 1 :]]
        return [*rest[:to], *items[place : place + 1], *rest[to:]]

    return damage


def changed(place: int, **fields: Any) -> Damage:
    return lambda items: [{**item, **fields} if here == place else item for here, item in enumerate(items)]


def both(*damages: Damage) -> Damage:
    def damage(items: Items_) -> Items_:
        for one in damages:
            items = one(items)
        return items

    return damage


def chat_pictures(items: Items_) -> Items_:
    shown = [{"type": "image_url", "image_url": {"url": DOT}}] * (MOST_PICTURES + 2)
    return changed(6, content=[{"type": "text", "text": "See."}, *shown])(items)


SIGNED = {"type": "thinking", "thinking": "hm", "signature": "REDACTED"}
TOOL = {"role": "tool", "tool_call_id": "a", "content": "x.py"}
NO_CALL = {"role": "tool", "tool_call_id": "zz", "content": "?"}

CHAT_WAYS = (
    Way(1, "no result", without(3, 4, 5, 6, 7), ("unanswered_call", "unanswered_call")),
    Way(2, "result of no call", with_item(5, NO_CALL), ("orphan_result",)),
    Way(3, "second result", with_item(5, TOOL | {"content": "y"}), ("duplicate_result",)),
    Way(
        4,
        "two calls, one id",
        both(
            changed(2, tool_calls=[chat_call("a", "ls"), chat_call("a", "pwd")]), changed(4, tool_call_id="a")
        ),
        ("duplicate_call",),
    ),
    Way(
        4,
        "one call twice",
        changed(2, tool_calls=[chat_call(own, own) for own in "aab"]),
        ("duplicate_call",),
    ),
    Way(4, "one message twice", twice(2), ("duplicate_call", "duplicate_call")),
    Way(
        4,
        "whose result",
        both(changed(2, tool_calls=[chat_call("a", "ls"), chat_call("a", "pwd")]), without(4)),
        ("duplicate_call",),
        ("duplicate_call",),
    ),
    Way(5, "partly answered", without(4), ("unanswered_call",)),
    Way(6, "late result", moved(4, 6), ("misplaced_result",)),
    Way(6, "early result", moved(3, 2), ("misplaced_result",)),
    Way(7, "empty", changed(7, content=""), ("empty_text",)),
    Way(7, "white space", changed(7, content=" \n"), ("empty_text",)),
    Way(7, "no parts", changed(6, content=[]), ("empty_text",)),
    Way(
        7,
        "empty part",
        changed(6, content=[{"type": "text", "text": "x"}, {"type": "text", "text": " "}]),
        ("empty_text",),
    ),
    Way(7, "null", changed(7, content=None), ("empty_text",)),
    Way(7, "empty result", changed(3, content=[]), ("empty_text",)),
    Way(9, "destroyed signature", changed(5, thinking_blocks=[SIGNED]), ("broken_seal",)),
    Way(
        9,
        "destroyed signature of a call",
        changed(5, provider_specific_fields={"thought_signatures": ["REDACTED"]}),
        ("broken_seal",),
        ("broken_seal",),
    ),
    Way(10, "nothing but reasoning", changed(7, content=None, reasoning_content="hm"), ("empty_text",)),
    Way(11, "half a character", changed(7, content=HALF), ("bad_text",)),
    Way(12, "too many pictures", chat_pictures, ("too_large", "too_large")),
    Way(15, "exit", with_item(8, {"role": "exit", "content": "Submitted"}), ("bad_role",)),
    Way(15, "info", with_item(6, {"role": "info", "content": "saved"}), ("bad_role",)),
    Way(15, "model", changed(7, role="model"), ("bad_role",)),
    Way(
        16,
        "name",
        changed(2, tool_calls=[chat_call("a", "ls"), chat_call("b", "ls") | {"function": {"name": "a.b"}}]),
        ("bad_name",),
    ),
    Way(
        16,
        "NUL in a name",
        changed(
            2, tool_calls=[chat_call("a", "ls"), chat_call("b", "ls") | {"function": {"name": "ba\0sh"}}]
        ),
        ("bad_name",),
    ),
)

# Responses: [prompt, question, reasoning, call, patch, result, result of the patch, reasoning, answer,
# question, answer]

ONE, PATCH = "call_1", "call_2"
WRITE = ItemWriter(7)
BASE = [
    WRITE.developer("You are careful."),
    WRITE.user("What is here?"),
    WRITE.reasoning("hm"),
    WRITE.call("exec_command", {"cmd": "ls"}) | {"call_id": ONE},
    WRITE.patch("/w/x.py") | {"call_id": PATCH},
    {"type": "function_call_output", "call_id": ONE, "output": "x.py"},
    {"type": "custom_tool_call_output", "call_id": PATCH, "output": "ok"},
    WRITE.reasoning(),
    WRITE.say("One file."),
    WRITE.user("Thanks."),
    WRITE.say("Welcome."),
]
RESULT = BASE[5]
OTHER = WRITE.call("exec_command", {"cmd": "pwd"}) | {"call_id": ONE}


def responses() -> Items_:
    return json.loads(json.dumps(BASE))  # type: ignore[no-any-return]  # what was a list is one again


def responses_pictures(items: Items_) -> Items_:
    shown = [{"type": "input_image", "image_url": DOT}] * (MOST_PICTURES + 2)
    return changed(9, content=[{"type": "input_text", "text": "See."}, *shown])(items)


def said(text: Any) -> dict[str, Any]:
    return {"content": [{"type": "output_text", "text": text, "annotations": []}]}


RESPONSES_WAYS = (
    Way(1, "no result", without(5, 6, 7, 8, 9, 10), ("unanswered_call", "unanswered_call")),
    Way(2, "result of no call", without(3), ("orphan_result",)),
    Way(3, "second result", with_item(7, RESULT | {"output": "y"}), ("duplicate_result",)),
    Way(
        4,
        "two calls, one id",
        both(with_item(6, OTHER), with_item(7, RESULT | {"output": "/w"})),
        ("duplicate_call",),
    ),
    Way(
        4,
        "two calls at once, one id",
        both(with_item(4, OTHER), with_item(7, RESULT | {"output": "/w"})),
        ("duplicate_call",),
    ),
    Way(4, "second call without a result", with_item(7, OTHER), ("duplicate_call",)),
    Way(4, "one call twice", twice(3), ("duplicate_call",)),
    Way(4, "whose result", with_item(4, OTHER), ("duplicate_call",), ("duplicate_call",)),
    Way(4, "one answer twice", twice(8), ("duplicate_id",)),
    Way(4, "two answers, one id", with_item(9, BASE[8] | said("Two files.")), ("duplicate_id",)),
    Way(5, "partly answered", without(6), ("unanswered_call",)),
    Way(6, "early result", moved(5, 3), ("misplaced_result",)),
    Way(6, "result of another kind", changed(5, type="custom_tool_call_output"), ("misplaced_result",)),
    Way(7, "empty", changed(10, **said("")), ("empty_text",)),
    Way(7, "white space", changed(9, content=" \n"), ("empty_text",)),
    Way(7, "no parts", changed(9, content=[]), ("empty_text",)),
    Way(
        7,
        "empty part",
        changed(9, content=[{"type": "input_text", "text": "x"}, {"type": "input_text", "text": ""}]),
        ("empty_text",),
    ),
    Way(8, "reasoning twice", twice(7), ("duplicate_id",)),
    Way(9, "destroyed seal", changed(7, encrypted_content="REDACTED"), ("broken_seal", "bound_id")),
    Way(10, "reasoning alone", without(8), ("lone_reasoning",)),
    Way(11, "half a character", changed(10, **said(HALF)), ("bad_text",)),
    Way(12, "too many pictures", responses_pictures, ("too_large", "too_large")),
    Way(
        15,
        "exit",
        with_item(11, {"type": "message", "role": "exit", "content": "Submitted"}),
        ("bad_role",),
    ),
    Way(15, "human", changed(9, role="human"), ("bad_role",)),
    Way(16, "name", changed(3, name="a.b"), ("bad_name",)),
    Way(16, "NUL in a name", changed(3, name="exec\0_command"), ("bad_name",)),
)


def without_id(items: Items_) -> Items_:
    kept = {"id": None, "status": None}
    return [
        {key: value for key, value in item.items() if key not in kept} if place == 8 else item
        for place, item in enumerate(items)
    ]


BY_ID = Way(
    10, "answer without its id", both(changed(7, encrypted_content=None), without_id), ("lone_reasoning",)
)
FOREIGN = Way(
    9,
    "reasoning of another provider",
    changed(7, content=[{"type": "reasoning_text", "text": "hm"}]),
    ("foreign_reasoning",),
)

# Forms: how a file holds the items, and its name.


def as_list(items: Items_) -> bytes:
    return json.dumps(items, indent=1).encode()


def as_lines(items: Items_, end: str = "\n") -> bytes:
    return "".join(json.dumps(item) + end for item in items).encode()


def chat_body(items: Items_) -> bytes:
    return json.dumps({"model": "gpt-sample-1", "messages": items, "temperature": 0.0}).encode()


def chat_log(items: Items_) -> bytes:
    called = {"role": "assistant", "content": None, "tool_calls": [chat_call("z", "date")]}
    response = {"object": "chat.completion", "choices": [{"index": 0, "message": called}]}
    return json.dumps({"messages": items, "response": response}, indent=2).encode()


def chat_nested(items: Items_) -> bytes:
    runs = [{"task": 1, "traj": chat()}, {"task": 2, "traj": items}, {"task": 3, "traj": chat()}]
    return as_lines(runs)


def responses_body(items: Items_) -> bytes:
    return json.dumps({"model": "gpt-sample-5", "input": items, "store": False}).encode()


def responses_nested(items: Items_) -> bytes:
    return as_lines([{"request": {"model": "m", "input": one}} for one in (responses(), items, responses())])


def enveloped(items: Items_, *, ordinals: bool = False, end: str = "\n") -> bytes:
    write = Rollout(3, ordinals=ordinals)
    lines = [write.meta(), write.context()]
    for item in items:
        lines += [write.item(item), write.tokens()]
    return as_lines(lines, end)


def flat(items: Items_) -> bytes:
    write = Rollout(3)
    head = {"id": write.session, "timestamp": write.now(), "instructions": None, "git": None}
    return as_lines([head, *(line for item in items for line in (item, {"record_type": "state"}))], "\r\n")


def kept_by_compaction(items: Items_) -> bytes:
    write = Rollout(3)
    payload = {"message": "", "replacement_history": items}
    return as_lines([write.meta(), write.line("compacted", payload), write.event("context_compacted")])


FORMS: dict[str, tuple[str, str, Callable[[Items_], bytes]]] = {
    "chat list": (CHAT, "a.json", as_list),
    "chat body": (CHAT, "a.json", chat_body),
    "chat lines": (CHAT, "a.jsonl", as_lines),
    "chat log": (CHAT, "a.json", chat_log),
    "chat nested": (CHAT, "a.jsonl", chat_nested),
    "responses list": (RESPONSES, "a.json", as_list),
    "responses body": (RESPONSES, "a.json", responses_body),
    "responses lines": (RESPONSES, "a.jsonl", as_lines),
    "responses nested": (RESPONSES, "a.jsonl", responses_nested),
    "codex": (CODEX, "rollout.jsonl", enveloped),
    "codex numbered": (CODEX, "rollout.jsonl", lambda items: enveloped(items, ordinals=True)),
    "codex CRLF": (CODEX, "rollout.jsonl", lambda items: enveloped(items, end="\r\n")),
    "codex flat": (CODEX, "rollout.jsonl", flat),
}
WAYS = {
    CHAT: CHAT_WAYS,
    RESPONSES: (*RESPONSES_WAYS, BY_ID),
    CODEX: (*RESPONSES_WAYS, FOREIGN),
}
CASES = [
    pytest.param(form, way, id=f"{form}: {way.number} {way.name}")
    for form, (dialect, _, _) in FORMS.items()
    for way in WAYS[dialect]
    if (form, way) != ("codex flat", FOREIGN)  # a flat file does not say whose its reasoning is
]


def made(form: str, items: Items_) -> bytes:
    return FORMS[form][2](items)


def base_of(form: str) -> Items_:
    return chat() if FORMS[form][0] == CHAT else responses()
