"""Files of Chat Completions: by what they are known, how they are split, and that they come back."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archiver import jsonio
from archiver.errors import InvalidDocumentError, MalformedTranscriptError
from archiver.model import Items, TranscriptPart
from archiver.transcripts import detect, get_dialect, nested
from archiver.transcripts.native import write_native
from archiver.transcripts.reader import Reading, read
from archiver.transcripts.survey import survey

from .samples import anthropic_messages, anthropic_request
from .samples_openai_chat import (
    chat_log,
    chat_messages,
    chat_request,
    chat_trajectories,
    legacy_messages,
)

CHAT = "openai-chat"
LAYOUTS: list[dict[str, Any]] = [
    {"separators": (",", ":"), "ensure_ascii": False},
    {"indent": 2, "ensure_ascii": False},
    {"indent": "\t"},
    {},
]
PLAIN = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}]
ASK = PLAIN[:1]
CALL = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}


def native(reading: Reading) -> bytes:
    pieces: list[bytes] = []
    write_native(reading.transcript.parts[0], pieces.append)
    return b"".join(pieces)


def written(path: Path, value: Any, **layout: Any) -> Reading:
    path.write_text(json.dumps(value, **layout), encoding="utf-8", newline="")
    return read([path])


def lines(path: Path, values: list[Any], **layout: Any) -> Reading:
    path.write_text("".join(json.dumps(value, **layout) + "\n" for value in values), encoding="utf-8")
    return read([path])


def problems(reading: Reading) -> list[str]:
    items = reading.transcript.parts[0].items
    return [one.code for one in get_dialect(CHAT).problems(iter(items))]


def assistant(**more: Any) -> list[dict[str, Any]]:
    return [*ASK, {"role": "assistant", "content": None, **more}]


@pytest.mark.parametrize(
    "messages",
    [
        chat_messages(1),
        legacy_messages(),
        [{"role": "system", "content": "Be brief."}, *ASK],
        [{"role": "developer", "content": "Be brief."}, *PLAIN],
        assistant(tool_calls=[CALL]),
        assistant(tool_calls=[{"id": "call_1", "type": "custom", "custom": {"name": "f", "input": "x"}}]),
        assistant(function_call={"name": "f", "arguments": "{}"}),
        assistant(refusal="no"),
        assistant(content="x", reasoning_content="hm"),
        assistant(content="x", tool_calls=None, function_call=None),
        assistant(audio={"id": "audio_1"}),
        [{"role": "tool", "tool_call_id": "call_1", "content": "42"}],
        [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}],
        [{"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "aGk="}}]}],
        [{"role": "user", "content": [{"type": "file", "file": {"file_id": "file-1"}}]}],
        [*chat_messages(1), {"role": "session_meta"}],
    ],
)
def test_messages_with_marks_of_their_own(messages: list[Any]) -> None:
    assert detect.of_messages(messages, None) == CHAT
    assert detect.of_lines(messages) == CHAT
    assert detect.of_messages(messages, {"model": "anthropic/claude-sample"}) == CHAT


@pytest.mark.parametrize(
    "container",
    [
        {"model": "gpt-5"},
        {"model": "openai/gpt-5", "temperature": 0.5, "tools": []},
        {"model": "claude-sample", "tools": [{"type": "function", "function": {"name": "f"}}]},
        {"model": "claude-sample", "max_completion_tokens": 5},
        {"model": "claude-sample", "response": {"object": "chat.completion", "choices": []}},
        {"response_format": {"type": "text"}},
    ],
)
def test_a_container_may_show_whose_plain_messages_are(container: dict[str, Any]) -> None:
    for messages in (PLAIN, ASK):
        assert detect.of_messages(messages, container) == CHAT


@pytest.mark.parametrize(
    "container",
    [
        {"model": "claude-sample"},
        {"model": "glm-5", "system": "Be brief."},
        {"anthropic_version": "bedrock-2023-05-31"},
    ],
)
def test_plain_messages_of_an_anthropic_request_stay_what_they_were(container: dict[str, Any]) -> None:
    assert detect.of_messages(PLAIN, container) == "anthropic-messages"
    assert detect.of_messages(PLAIN, None) == "anthropic-messages"


@pytest.mark.parametrize(
    "messages",
    [
        ASK,
        [{"role": "user", "content": "x", "ts": 1}, {"role": "tool", "tool_call_id": "a", "content": "x"}],
        [*chat_messages(1), {"role": "exit", "content": "Submitted", "extra": {}}],  # mini-swe-agent
        [*ASK, {"role": "exit", "content": "x"}, {"role": "system", "content": "x"}, {"role": "info"}],
        [*chat_messages(1), {"role": "user", "content": "x", "extra": {"cost": 1}}],
        [*ASK, {"role": "tool", "tool_call_ids": ["a"], "content": "x"}],  # SWE-agent
        [*ASK, {"role": "tool", "tool_call_id": "a", "tool_returns": [], "content": "x"}],  # Letta
        assistant(tool_calls=[{"id": "a", "function": "f", "arguments": {}}]),  # Inspect
        assistant(tool_calls=[{"function": {"name": "f", "arguments": {}}}]),  # Ollama
        [{"role": "system", "content": "x"}, {"role": "model", "parts": []}],  # Gemini
        [{"role": "system", "content": "x"}, {"type": "function_call", "call_id": "a"}],  # Responses
        [{"role": "system", "content": [{"type": "input_text", "text": "x"}]}],
        [{"role": "system", "content": [{"text": "x"}]}],
        [{"role": "system", "content": [{"type": ["text"]}]}],
        [{"role": "system", "content": {"text": "x"}}],
        [{"role": "system", "content": None}],
        [{"role": "tool", "content": "x"}],
        [{"role": ["tool"], "content": "x"}],
        [None],
    ],
)
def test_what_is_not_plainly_chat_is_not_taken_for_it(messages: list[Any]) -> None:
    assert CHAT not in (detect.of_messages(messages, None), detect.of_lines(messages))


def test_anthropic_tools_around_plain_messages_are_no_mark_of_chat() -> None:
    body = {"model": "glm-5", "tools": [{"name": "f", "input_schema": {}}]}
    assert detect.of_messages(PLAIN, body) == "opaque"
    assert detect.of_messages(anthropic_messages(2), {"model": "gpt-5"}) == "anthropic-messages"


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("value", [chat_messages(3, images=True), chat_request(3, images=True), chat_log(2)])
def test_a_document_is_split_and_comes_back(tmp_path: Path, value: Any, layout: dict[str, Any]) -> None:
    reading = written(tmp_path / "file", value, **layout)
    (part,) = reading.transcript.parts
    messages = value["messages"] if isinstance(value, dict) else value
    assert (reading.transcript.dialect, part.media, part.nested_at) == (CHAT, "json", ())
    assert list(part.items) == messages
    assert json.loads(native(reading)) == value
    assert problems(reading) == []  # in a log the response holds the last call, which nobody answered yet


def test_lines_of_messages(tmp_path: Path) -> None:
    reading = lines(tmp_path / "file", chat_messages(3))
    assert reading.transcript.dialect == CHAT
    assert native(reading) == (tmp_path / "file").read_bytes()


def test_what_a_log_took_is_counted(tmp_path: Path) -> None:
    (part,) = written(tmp_path / "file", chat_log(2)).transcript.parts
    facts = survey(part.items, get_dialect(CHAT), part.header).facts
    assert (facts.tokens_in, facts.tokens_cached, facts.tokens_out, facts.cost) == (400, 600, 50, 0.25)
    assert facts.model == chat_log(2)["response"]["model"]
    (part,) = lines(tmp_path / "lines", [chat_log(1), chat_log(2)]).transcript.parts
    facts = survey(part.items, get_dialect(CHAT), part.header).facts
    assert (facts.tokens_in, facts.tokens_cached, facts.cost) == (800, 1200, 0.5)
    assert facts.turns == 6
    assert facts.system_prompt == "You are careful."


NESTED: dict[str, tuple[tuple[str, ...], Callable[[int], dict[str, Any]]]] = {
    "bodies": (("messages",), lambda turns: chat_request(turns, images=True)),
    "logs": (("messages",), chat_log),
    "tuning": (("messages",), lambda turns: {"messages": chat_messages(turns)}),
    "exchanges": (("request", "messages"), lambda turns: {"request": chat_request(turns), "response": {}}),
    "batch": (("body", "messages"), lambda turns: {"custom_id": "x", "body": chat_request(turns)}),
    "trajectories": (("traj",), lambda turns: chat_trajectories(1, turns=turns)[0]),
}


@pytest.mark.parametrize("kind", NESTED)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_conversations_in_one_file_are_items_one_after_the_other(
    tmp_path: Path, kind: str, layout: dict[str, Any]
) -> None:
    path, make = NESTED[kind]
    values = [make(turns) for turns in (1, 2, 3)]
    for name, reading in (
        ("jsonl", lines(tmp_path / "lines", values, **layout)),
        ("json", written(tmp_path / "array", values, **layout)),
    ):
        (part,) = reading.transcript.parts
        assert (reading.transcript.dialect, part.media, part.nested_at) == (CHAT, name, path)
        items = list(part.items)
        shells = [item[0] for item in items if isinstance(item, list)]
        assert len(shells) == 3
        assert len(items) == 3 + sum(len(messages(value, path)) for value in values)
        assert problems(reading) == []
        text = native(reading)
        if name == "json":
            assert json.loads(text) == values
        else:
            assert [json.loads(line) for line in text.splitlines()] == values
            assert text.endswith(b"\n")


def messages(value: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


def test_lines_that_hold_something_else_stay_as_they_are(tmp_path: Path) -> None:
    values: list[Any] = [
        *chat_trajectories(2),
        {"error": "timeout"},
        {"traj": None},
        {"traj": []},
        {"traj": [], "more": [], "role": "user"},
        *chat_trajectories(4, seed=9),
    ]
    reading = lines(tmp_path / "file", values)
    assert reading.transcript.parts[0].nested_at == ("traj",)
    assert [json.loads(line) for line in native(reading).splitlines()] == values
    for odd in ({"traj": ["text"]}, {"traj": [{"no": "role"}]}, {"traj": [{"traj": []}, [1]]}):
        assert lines(tmp_path / "odd", [*values, odd]).transcript.dialect == "opaque"


@pytest.mark.parametrize(
    "text",
    [
        '{"traj":[MESSAGES],"n":1.50,"e":1E5,"big":12345678901234567890123}',
        '{"traj":[MESSAGES],"other":{"traj":[]}}',
        '{"copy":[MESSAGES],"tr\\u0061j":[{"role":"us\\u0065r","content":"x","n":1.0}]}',
        '{"copy":[MESSAGES],"traj":[MESSAGES]}',
        '{"tr\\u0061j":[MESSAGES],"other":{"traj":[]}}',
        '{"traj":[1],"traj":[MESSAGES]}',
        '{"s":"\\"traj\\":[]","traj":[MESSAGES]}',
        '{"traj":[1,MESSAGES]}',
        '{"traj":[{"traj":[]},MESSAGES]}',
        '[{"traj":[MESSAGES]}]',
        "[]",
        "7",
        '{ "traj" : [ MESSAGES ] , "s" : "a  b" }',
    ],
)
def test_odd_texts_keep_their_values(text: str) -> None:
    line = text.replace("MESSAGES", json.dumps(chat_messages(1)[:2])[1:-1]).encode()
    value = json.loads(line)
    items = list(nested.split([(line, value)], ("traj",)))
    assert [json.loads(part) for part, _ in items] == [value for _, value in items]
    (back,) = nested.joined((part for part, _ in items), ("traj",))
    assert json.loads(back) == value
    for number in (b"1.50", b"1E5", b"12345678901234567890123"):
        assert (number in line) == (number in back)


@pytest.mark.parametrize("depth", [10, 300, 1000, 1015, 5000])
def test_what_is_nested_deeply_stays_somewhere(depth: int) -> None:
    deep = "[" * depth + "]" * depth
    line = f'{{"traj":[{{"role":"user","content":{deep}}}]}}'.encode()
    items = [part for part, _ in nested.split([(line, jsonio.loads(line))], ("traj",))]
    assert list(nested.joined(items, ("traj",))) == [line]


def test_a_message_without_its_element_is_refused() -> None:
    for lines_of in ([b'{"role":"user"}'], [b'[{"traj":3}]', b'{"role":"user"}'], [b"[7]", b"{}"]):
        part = TranscriptPart(name="x", nested_at=("traj",), items=Items.of_lines(lines_of))
        with pytest.raises(InvalidDocumentError):
            write_native(part, lambda _: None)


def test_a_first_line_longer_than_the_look_at_it(tmp_path: Path) -> None:
    values = [chat_request(2, images=True), chat_request(1)]
    values[0]["messages"][1]["content"] = "x" * (2 << 20)
    reading = lines(tmp_path / "file", values)
    assert (reading.transcript.dialect, reading.transcript.parts[0].nested_at) == (CHAT, ("messages",))
    assert [json.loads(line) for line in native(reading).splitlines()] == values


@pytest.mark.parametrize("end", ["", '{"role":"us', "\0" * 5000])
def test_calls_far_behind_plain_lines_are_seen(tmp_path: Path, end: str) -> None:
    plain = [message | {"content": "x" * 1000} for message in PLAIN] * 1200
    path = tmp_path / "file"
    lines(path, plain)
    assert read([path]).transcript.dialect == "anthropic-messages"
    lines(path, [*plain, *chat_messages(2)[1:]])
    with path.open("a") as file:
        file.write(end)
    assert read([path]).transcript.dialect == CHAT


def test_bodies_of_requests_to_others_are_no_conversations_of_chat(tmp_path: Path) -> None:
    for values in ([anthropic_request(1)] * 2, [{"messages": PLAIN}] * 2, [{"text": "x"}] * 3):
        reading = lines(tmp_path / "file", values)
        assert reading.transcript.dialect == "opaque"
        assert native(reading) == (tmp_path / "file").read_bytes()


def test_damage_inside_a_file_of_conversations_is_told(tmp_path: Path) -> None:
    path = tmp_path / "file"
    lines(path, chat_trajectories(3))
    text = path.read_bytes().split(b"\n")
    text[1] = text[1][:-20]
    path.write_bytes(b"\n".join(text))
    with pytest.raises(MalformedTranscriptError):
        list(read([path]).transcript.parts[0].items)
    reading = read([path], salvage=True)
    assert sum(isinstance(item, list) for item in reading.transcript.parts[0].items) == 2
    assert [one.line for one in reading.dropped] == [2]


KEYS = st.text(max_size=3) | st.just("traj")
VALUES = st.recursive(
    st.none() | st.integers() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
)


@given(st.lists(st.dictionaries(KEYS, VALUES, max_size=3), max_size=5), st.sampled_from(LAYOUTS))
@settings(max_examples=150, deadline=None)
def test_any_elements_come_back_equal(values: list[Any], layout: dict[str, Any]) -> None:
    texts = [json.dumps(value, **layout).encode("utf-8", "surrogatepass") for value in values]
    items = list(nested.split([(text, json.loads(text)) for text in texts], ("traj",)))
    assert [json.loads(part) for part, _ in items] == [value for _, value in items]
    assert [json.loads(text) for text in nested.joined((part for part, _ in items), ("traj",))] == values
