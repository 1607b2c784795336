"""Secrets that line ends break, and secrets that are split over the deltas of a stream."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from archiver.model import Items, Member, TranscriptPart
from archiver.progress import Silent
from archiver.redact.exact import ExactMatcher
from archiver.redact.finder import Finder
from archiver.redact.ledger import Ledger
from archiver.redact.members import line_blocks
from archiver.redact.parts import PartPass
from archiver.redact.raw import RawPass
from archiver.redact.scrub import Scrubber, never
from archiver.scratch import Scratch
from tests.redact.conftest import KEY
from tests.redact.support import expand, lines

SETTINGS = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


def _scrubber(finder: Finder, *known: bytes) -> Scrubber:
    return Scrubber(finder, ExactMatcher(known), Ledger(KEY))


@SETTINGS
@given(st.integers(20, 90), st.integers(0, 1 << 20), st.sampled_from(["\n", "\r\n"]))
def test_a_token_broken_at_any_width_leaves(finder: Finder, width: int, seed: int, end: str) -> None:
    secret = expand("ghp_{alnum:36}", seed)
    text = f"export the GITHUB_TOKEN={secret} now"
    data = end.join(text[at : at + width] for at in range(0, len(text), width)).encode()
    output = _scrubber(finder).text(data, "here")
    squeezed = output.replace(end.encode(), b"")
    at = text.index(secret)
    if any(at < cut < at + 8 for cut in range(width, len(text), width)) and at % width > width - 4:
        return  # broken in its first characters, it has no beginning that says what it is
    assert all(secret[k : k + 10].encode() not in squeezed for k in range(len(secret) - 10))
    assert output.startswith(data[:12])
    assert _scrubber(finder).text(output, "here") == output


@pytest.mark.parametrize(
    ("before", "end"),
    [
        ("  run --with the_token=", "\\\n"),
        ("mail text with API_TOKEN=3D", "=\n"),
        ("    12\tthe API_TOKEN=", "\n    13\t"),
        ("+the key API_TOKEN=", "\n+"),
        ("# the key API_TOKEN=", "\n# "),
    ],
)
def test_soft_ends_and_gutters(finder: Finder, before: str, end: str) -> None:
    secret = expand("glpat-{alnum:20}", 3)
    data = f"{before}{secret[:14]}{end}{secret[14:]}\nrest\n".encode()
    output = _scrubber(finder).text(data, "here")
    assert secret[:14].encode() not in output
    assert secret[16:].encode() not in output
    assert output.endswith(b"\nrest\n")


def test_whole_lines_that_follow_a_secret_stay(finder: Finder) -> None:
    secret = expand("sk-ant-api03-{alnum:93}AA", 3)
    data = f"ANTHROPIC_API_KEY={secret}\nHOME=/root\nSHELL=/bin/sh\nword\n".encode()
    output = _scrubber(finder).text(data, "here")
    assert output.endswith(b"\nHOME=/root\nSHELL=/bin/sh\nword\n")


def _anthropic(piece: str) -> Any:
    delta = {"type": "input_json_delta", "partial_json": piece}
    return {"type": "content_block_delta", "index": 1, "delta": delta}


def _thinking(piece: str) -> Any:
    delta = {"type": "thinking_delta", "thinking": piece}
    return {"type": "content_block_delta", "index": 0, "delta": delta}


def _chat(piece: str) -> Any:
    choice = {"index": 0, "delta": {"content": piece}, "finish_reason": None}
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [choice]}


def _tool(piece: str) -> Any:
    call = {"index": 0, "function": {"arguments": piece}}
    return {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"tool_calls": [call]}}]}


def _responses(piece: str) -> Any:
    return {"type": "response.output_text.delta", "item_id": "msg_1", "output_index": 0, "delta": piece}


def _gemini(piece: str) -> Any:
    return {"candidates": [{"content": {"parts": [{"text": piece}], "role": "model"}, "index": 0}]}


RECORDS = [_anthropic, _thinking, _chat, _tool, _responses, _gemini]


def _pieces(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


@pytest.mark.parametrize("record", RECORDS)
@pytest.mark.parametrize("shape", ["lines", "array", "indented", "events", "nested"])
@pytest.mark.parametrize("size", [3, 30])
def test_a_secret_split_over_deltas_leaves(finder: Finder, record: Any, shape: str, size: int) -> None:
    secret = expand("ghp_{alnum:36}", 4)
    records = [record(piece) for piece in _pieces(f"first GITHUB_TOKEN={secret} and last", size)]
    rows = [json.dumps(one) for one in records]
    scrubber = _scrubber(finder)
    if shape == "events":
        text = "".join(f"data: {row}\n\n" for row in rows)
        output = scrubber.text(text.encode(), "here").decode()
        held = [json.loads(line[6:]) for line in output.split("\n\n") if line]
    elif shape == "lines":
        held = [json.loads(line) for line in lines(scrubber, "\n".join(rows).encode() + b"\n").splitlines()]
    elif shape == "nested":
        held = json.loads(json.loads(lines(scrubber, json.dumps({"a": json.dumps(records)}).encode()))["a"])
    else:
        held = json.loads(
            scrubber.json(json.dumps(records, indent=shape == "indented" or None).encode(), "x")
        )
    joined = "".join(_carried(one) for one in held)
    assert len(held) == len(records)
    assert joined.startswith("first GITHUB_TOKEN=[REDACTED:github")
    assert joined.endswith("] and last")
    assert len(joined) < 90


def _carried(value: Any) -> str:
    if isinstance(value, dict):
        keys = ("partial_json", "thinking", "content", "arguments", "delta", "text")
        for key in keys:
            if isinstance(value.get(key), str):
                return str(value[key])
        return "".join(_carried(item) for item in value.values() if isinstance(item, dict | list))
    return "".join(map(_carried, value)) if isinstance(value, list) else ""


def test_a_registered_value_split_over_deltas_leaves(finder: Finder) -> None:
    value = "correct horse battery staple"
    rows = [json.dumps(_chat(piece)) for piece in _pieces(f"say {value} twice", 5)]
    output = lines(_scrubber(finder, value.encode()), "\n".join(rows).encode() + b"\n")
    joined = "".join(_carried(json.loads(line)) for line in output.splitlines())
    assert joined.startswith("say [REDACTED:known-value:")
    assert joined.endswith("] twice")


@SETTINGS
@given(st.integers(0, 1 << 20), st.integers(12, 120), st.integers(20, 76))
def test_a_registered_value_broken_anywhere_leaves(finder: Finder, seed: int, size: int, width: int) -> None:
    value = expand(f"{{alnum:{size}}}", seed)
    text = f"and the value is given here as {value}"
    data = "\n".join(_pieces(text, width)).encode()
    output = _scrubber(finder, value.encode()).text(data, "here").replace(b"\n", b"")
    assert output.startswith(b"and the value is given here as [REDACTED:")
    assert output.endswith(b"]")


def test_streams_of_two_blocks_are_not_mixed(finder: Finder) -> None:
    secret = expand("ghp_{alnum:36}", 6)
    one = [{**_anthropic(piece), "index": 1} for piece in _pieces(secret, 8)]
    other = [
        {**_anthropic(piece), "index": 2} for piece in _pieces("plain words of another call, long ones", 8)
    ]
    rows = [json.dumps(row) for pair in zip(one, other, strict=True) for row in pair]
    output = lines(_scrubber(finder), "\n".join(rows).encode() + b"\n").splitlines()
    assert [json.loads(line) for line in output[1::2]] == other
    assert all(secret[at : at + 8].encode() not in b"".join(output) for at in range(28))


def test_streams_over_the_borders_of_blocks(finder: Finder, scratch: Scratch) -> None:
    secret = expand("ghp_{alnum:36}", 7)
    filler = json.dumps({"type": "user", "text": "x " * 1000})
    rows = [filler] * 522 + [
        json.dumps(_chat(piece)) for piece in _pieces("word " * 2000 + secret + " end", 4)
    ]
    block = "\n".join(rows).encode() + b"\n"
    part = TranscriptPart(name="main", items=Items.of_chunks([block]))
    work = PartPass(_scrubber(finder), never, scratch, Silent())
    output = b"".join(work.redact(0, part).items.blocks())
    joined = "".join(_carried(json.loads(line)) for line in output.splitlines())
    assert joined.endswith("] end")
    member = Member("x.jsonl", block, len(block), "", 0o600)
    assert b"".join(line_blocks(member)) == block


def test_streams_in_the_windows_of_a_file(finder: Finder, scratch: Scratch) -> None:
    secret = expand("ghp_{alnum:36}", 8)
    rows = [
        f"data: {json.dumps(_chat(piece))}" for piece in _pieces("word " * 9000 + secret + " end" * 900, 4)
    ]
    data = ("\n\n".join(rows) + "\n").encode()
    work = RawPass(_scrubber(finder), scratch, "file")
    for at in range(0, len(data), 50_000):
        work.feed(data[at : at + 50_000])
    outcome = work.close()
    assert outcome.spooled is not None
    output = outcome.spooled.path.read_text()
    joined = "".join(_carried(json.loads(line[6:])) for line in output.split("\n\n") if line)
    assert "[REDACTED:github" in joined
    assert secret[20:] not in joined
    assert joined.endswith("] end" + " end" * 899)
