"""JSON documents split at an array: same items, same header, whatever the layout and the block borders."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archiver.errors import InvalidDocumentError, MalformedTranscriptError, RefusedError
from archiver.model import Items, TranscriptPart
from archiver.transcripts import document, elements, reader
from archiver.transcripts.native import write_native
from archiver.transcripts.reader import Reading, pairs, read
from transcripts.samples import anthropic_messages, anthropic_request, claude_session

LAYOUTS: list[dict[str, Any]] = [
    {"separators": (",", ":"), "ensure_ascii": False},
    {"indent": 2, "ensure_ascii": False},
    {"indent": "\t"},
    {},
]


def written(path: Path, value: Any, **layout: Any) -> Reading:
    path.write_text(json.dumps(value, **layout), encoding="utf-8", newline="")
    return read([path])


def native(part: TranscriptPart) -> bytes:
    pieces: list[bytes] = []
    write_native(part, pieces.append)
    return b"".join(pieces)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_request_body(tmp_path: Path, layout: dict[str, Any]) -> None:
    body = anthropic_request(5, seed=3, images=True)
    reading = written(tmp_path / "body", body, **layout)
    [part] = reading.transcript.parts
    assert reading.transcript.dialect == "anthropic-messages"
    assert (part.media, part.items_at) == ("json", ("messages",))
    assert part.header == body | {"messages": []}
    assert list(part.header) == list(body)
    found = list(pairs(part.items))
    assert [value for _, value in found] == body["messages"]
    assert json.loads(native(part)) == body
    for line, value in found:
        assert b"\n" not in line
        assert json.loads(line) == value


def test_an_element_is_copied_but_for_blanks_between_tokens(tmp_path: Path) -> None:
    path = tmp_path / "list"
    block = (
        r'{ "type" : "text" , "text" : "x  \u00e4\/\"" , "a" : [ 1.0 , 1E5,-0 ] , "n":12345678901234567890 }'
    )
    odd = f'{{ "role" : "user" ,\n"content" : [ {block} ] }}'
    messages = [json.dumps(message) for message in anthropic_messages(1, seed=1)]
    path.write_text(f"[ {' , '.join([*messages, odd])} ]")
    [part] = read([path]).transcript.parts
    *_, (line, _) = pairs(part.items)
    assert line.decode() == (
        r'{"role":"user","content":[{"type":"text","text":"x  \u00e4\/\"","a":[1.0,1E5,-0],'
        r'"n":12345678901234567890}]}'
    )


def test_the_top_level_list(tmp_path: Path) -> None:
    messages = anthropic_messages(3, seed=1)
    reading = written(tmp_path / "list", messages)
    [part] = reading.transcript.parts
    assert reading.transcript.dialect == "anthropic-messages"
    assert (part.header, part.items_at) == ([], ())
    assert json.loads(native(part)) == messages


def test_the_last_request_of_a_recording(tmp_path: Path) -> None:
    requests = [anthropic_request(turns, seed=1) for turns in (1, 2, 3)]
    recording = {
        "interactions": [{"request": request, "response": {"content": []}} for request in requests],
        "version": 1,
    }
    [part] = written(tmp_path / "tape", recording, indent=1).transcript.parts
    assert part.items_at == ("interactions", 2, "request", "messages")
    assert [value for _, value in pairs(part.items)] == requests[2]["messages"]
    assert json.loads(native(part)) == recording


@pytest.mark.parametrize(
    "value",
    [
        [{"role": "user", "content": "Hello"}],
        {"model": "claude-sample", "messages": []},
        [*anthropic_messages(1), {"role": "tool", "tool_call_id": "call_1", "content": "42"}],
        [message | {"ts": 1700000000000} for message in anthropic_messages(1)],
        {"messages": {"role": "user"}},
        {"a": {"b": 1}},
        [],
        {},
        [1, 2, 3],
        "text",
        17,
        None,
        {"steps": [{"x": 1}, {"x": [2]}], "small": [[1]]},
        [{"x": 1}, 5],
    ],
)
def test_what_is_not_shown_to_be_of_a_dialect_is_opaque_and_whole(tmp_path: Path, value: Any) -> None:
    for layout in LAYOUTS:
        reading = written(tmp_path / "file", value, **layout)
        [part] = reading.transcript.parts
        assert reading.transcript.dialect == "opaque"
        assert json.loads(native(part)) == value


def test_text_only_messages_mean_the_same_to_everybody(tmp_path: Path) -> None:
    messages = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}]
    assert written(tmp_path / "a", messages).transcript.dialect == "anthropic-messages"
    assert written(tmp_path / "d", messages[:1]).transcript.dialect == "opaque"
    foreign = {"model": "gpt-5", "max_tokens": 5, "messages": messages}
    assert written(tmp_path / "c", foreign).transcript.dialect == "openai-chat"
    body = {"model": "claude-sample", "max_tokens": 5, "messages": messages}
    assert written(tmp_path / "b", body).transcript.dialect == "anthropic-messages"


@pytest.mark.parametrize(
    "text",
    [
        '{"messages":[{"role":"user","content":"cut',
        "{'role': 'user', 'content': 'python'}",
        '[{"role":"user"}',
        '[{"a":1}]]',
        '[{"a":1} {"b":2}]',
        '[{"a":NaN}]',
        '{"a":[{"b":1},]}',
        '{"a" [1]}',
        "{1:[]}",
        '[{"a":1]}',
        "[2026-01-31] a log line\n[2026-01-31] another",
        "# Heading\n\n[link](x)\n",
        "\ufeff{}",
        '"unclosed',
        "{",
        "[",
        "tru",
        # JSON, but of no known dialect
        '{"a":[{"b":1}],"a":[{"c":2,"c":3}]}',
        '{\n\t"novel": [ 1.0, {"x": "\\u00e4"} ]\n}\n',
        '{"type":"x"}\r\n{"type":"y"}\r\n',
        '{"type":"x"}\n{"type":"y"}',
        '[{"id": 1}, {"id": 2}]',
        '{\n "a": 1\n}\n{\n "b": 2\n}',
    ],
)
def test_what_is_of_no_known_dialect_is_kept_byte_for_byte(tmp_path: Path, text: str) -> None:
    path = tmp_path / "file.json"
    path.write_bytes(text.encode())
    reading = read([path])
    [part] = reading.transcript.parts
    assert (reading.transcript.dialect, part.media) == ("opaque", "raw")
    assert native(part) == text.encode()


def test_padding_behind_a_document_is_dropped_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "body.json"
    path.write_bytes(json.dumps(anthropic_request(1), indent=1).encode() + b"\n" + b"\0" * 100)
    reading = read([path])
    assert reading.transcript.dialect == "anthropic-messages"
    assert [(one.place, one.bytes) for one in reading.dropped] == [("tail", 100)]
    assert reading.dropped[0].line == path.read_bytes().count(b"\n")


def test_damage_inside_a_known_document_names_line_and_column(tmp_path: Path, small_blocks: None) -> None:
    text = json.dumps(anthropic_request(6), indent=1)
    place = text.index('"Instruction 3')
    path = tmp_path / "body.json"
    path.write_text(text[:place] + "?" + text[place:])
    items = read([path]).transcript.parts[0].items
    with pytest.raises(MalformedTranscriptError) as caught:
        list(pairs(items))
    assert caught.value.line == text[:place].count("\n") + 1
    assert caught.value.column == place - text[:place].rindex("\n")


def test_a_document_that_is_rewritten_meanwhile_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "body.json"
    path.write_text(json.dumps(anthropic_request(1)))
    items = read([path]).transcript.parts[0].items
    path.write_text(json.dumps(anthropic_request(2)))
    with pytest.raises(RefusedError, match="rewritten"):
        list(pairs(items))


def test_values_over_several_lines_are_items(tmp_path: Path) -> None:
    path = tmp_path / "full.jsonl"
    values = [*claude_session(1, seed=1), {"type": "mode", "n": [1, {"a": "b  ä"}]}]
    path.write_text("\n".join(json.dumps(value, indent=2) for value in values))
    [part] = read([path]).transcript.parts
    assert part.media == "jsonl"
    assert list(part.items.lines()) == [json.dumps(value, separators=(",", ":")).encode() for value in values]


def test_the_limit_of_an_item_keeps_a_large_element_whole_as_text(tmp_path: Path) -> None:
    path = tmp_path / "body.json"
    body = anthropic_request(1)
    body["messages"].append({"role": "user", "content": "x" * 5000})
    path.write_text(json.dumps(body))
    assert read([path]).transcript.dialect == "anthropic-messages"
    [part] = read([path], max_item=4000).transcript.parts
    assert part.media == "raw"
    assert native(part) == path.read_bytes()


def test_a_part_whose_items_have_no_place_is_refused() -> None:
    for header in ({"messages": 3}, {"messages": [1]}, {}):
        part = TranscriptPart(
            name="x", media="json", header=header, items_at=("messages",), items=Items.of([{}])
        )
        with pytest.raises(InvalidDocumentError):
            native(part)


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks and reads of some bytes, so that their borders fall everywhere."""
    for module in (document, elements, reader):
        monkeypatch.setattr(module, "CHUNK", 50)


KEYS = st.text(max_size=4)
SCALARS = st.none() | st.integers() | st.text(max_size=12) | st.sampled_from(['"', "]", "},{", "\\"])
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.lists(st.dictionaries(KEYS, VALUES, max_size=3), max_size=6)
AROUND = st.dictionaries(KEYS, VALUES, max_size=3)


@given(OBJECTS, AROUND, st.sampled_from(LAYOUTS), st.sampled_from([3, 17, 64, 4096]))
@settings(max_examples=100, deadline=None)
def test_any_document_comes_back_equal(
    tmp_path_factory: Any, items: list[Any], around: dict[str, Any], layout: dict[str, Any], chunk: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "document"
    blocks = [{"type": "text", "text": "x", "more": one} for one in items]
    messages = [*anthropic_messages(1, seed=1), *({"role": "user", "content": [one]} for one in blocks)]
    text = json.dumps(around | {"system": "s", "messages": messages}, **layout)
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.MonkeyPatch.context() as patch:
        for module in (document, elements, reader):
            patch.setattr(module, "CHUNK", chunk)
        [part] = read([path]).transcript.parts
        made = native(part)
    assert part.media == "json"
    assert json.loads(made) == json.loads(path.read_bytes())
