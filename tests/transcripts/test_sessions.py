"""Which files make a transcript, what dialect they are, and names nobody can play tricks with."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archiver.errors import InputNotFoundError, UsageError
from archiver.transcripts import names
from archiver.transcripts.native import write_native
from archiver.transcripts.reader import read
from transcripts.samples import (
    anthropic_messages,
    anthropic_request,
    claude_session,
    line_of,
    write_jsonl,
    write_project,
)


def part_names(*paths: Path) -> list[str]:
    return [part.name for part in read(list(paths)).transcript.parts]


def test_a_session_takes_its_sub_agents_along(tmp_path: Path) -> None:
    session = write_project(tmp_path, seed=4)
    other = write_jsonl(tmp_path / "agent-other.jsonl", claude_session(1, seed=99, agent="other"))
    stem = session.stem
    expected = [
        f"{stem}.jsonl",
        f"{stem}/subagents/agent-a1b2c3d.jsonl",
        f"{stem}/subagents/agent-acompact-0f0f.jsonl",
        "agent-beef.jsonl",
    ]
    assert part_names(session) == expected
    assert part_names(tmp_path) == expected
    reading = read([session])
    assert reading.transcript.dialect == "claude-code"
    sizes = [path.stat().st_size for path in tmp_path.rglob("*.jsonl") if path != other]
    assert reading.total_bytes == sum(sizes)
    for part in reading.transcript.parts:
        pieces: list[bytes] = []
        write_native(part, pieces.append)
        assert b"".join(pieces) == (tmp_path / part.name).read_bytes()


def test_a_renamed_session_is_known_by_the_id_inside(tmp_path: Path) -> None:
    session = write_project(tmp_path, seed=4)
    stem = session.stem
    renamed = session.rename(tmp_path / "copy.jsonl")
    assert part_names(renamed)[1:3] == [
        f"{stem}/subagents/agent-a1b2c3d.jsonl",
        f"{stem}/subagents/agent-acompact-0f0f.jsonl",
    ]


def test_a_sub_agent_alone_is_a_transcript_of_its_own(tmp_path: Path) -> None:
    write_project(tmp_path, seed=4)
    assert part_names(tmp_path / "agent-beef.jsonl") == ["agent-beef.jsonl"]


def test_a_folder_of_several_sessions_lists_them(tmp_path: Path) -> None:
    for seed in (1, 2):
        write_jsonl(tmp_path / f"session{seed}.jsonl", claude_session(1, seed=seed))
    with pytest.raises(UsageError, match=r"2 sessions: session1\.jsonl, session2\.jsonl"):
        read([tmp_path])


def test_a_folder_without_a_session(tmp_path: Path) -> None:
    (tmp_path / "notes.jsonl").write_text('{"a":1}\n')
    (tmp_path / "readme.md").write_text("hello")
    with pytest.raises(UsageError, match="no Claude Code session"):
        read([tmp_path])


def test_several_files_of_one_dialect_and_of_two(tmp_path: Path) -> None:
    session = write_jsonl(tmp_path / "a" / "x.jsonl", claude_session(1, seed=1))
    second = write_jsonl(tmp_path / "b" / "x.jsonl", claude_session(1, seed=2))
    notes = tmp_path / "notes.md"
    notes.write_text("remember")
    reading = read([session, second, notes])
    assert reading.transcript.dialect == "claude-code"
    assert [(part.name, part.media) for part in reading.transcript.parts] == [
        ("x.jsonl", "jsonl"),
        ("2/x.jsonl", "jsonl"),
        ("notes.md", "raw"),
    ]
    body = tmp_path / "body.json"
    body.write_text(json.dumps(anthropic_request(1)))
    with pytest.raises(UsageError, match=r"body\.json is anthropic-messages"):
        read([session, body])
    with pytest.raises(UsageError, match="no transcript was named"):
        read([])


@pytest.mark.parametrize("kind", ["missing", "fifo", "socket", "folder", "device", "nul", "long"])
def test_what_is_no_regular_file_is_an_error_and_never_hangs(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "thing"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "socket":
        server = socket.socket(socket.AF_UNIX)
        server.bind(os.fspath(path))
        server.close()
    elif kind == "folder":
        path.mkdir()
    elif kind == "device":
        path = Path("/dev/null")
    elif kind == "nul":
        path = tmp_path / "a\0b"
    elif kind == "long":
        path = tmp_path / ("x" * 5000)
    with pytest.raises((InputNotFoundError, UsageError)) as caught:
        read([path])
    assert caught.value.remedy
    assert "\0" not in str(caught.value)


def test_traps_beside_a_session_are_errors_or_passed_over(tmp_path: Path) -> None:
    session = write_project(tmp_path, seed=4)
    outside = write_jsonl(tmp_path / "else" / "agent-x.jsonl", claude_session(1, seed=1))
    trap = session.with_suffix("") / "subagents" / "agent-trap.jsonl"
    trap.symlink_to(outside)
    with pytest.raises(InputNotFoundError, match=r"agent-trap\.jsonl"):
        read([session])
    trap.unlink()
    os.mkfifo(trap)
    with pytest.raises(InputNotFoundError, match="named pipe"):
        read([session])
    trap.unlink()
    os.mkfifo(tmp_path / "pipe.jsonl")
    (tmp_path / "folder.jsonl").mkdir()
    (tmp_path / "link.jsonl").symlink_to(outside)
    assert part_names(tmp_path)[0] == session.name


def test_a_link_named_by_the_caller_is_followed(tmp_path: Path) -> None:
    session = write_jsonl(tmp_path / "a.jsonl", claude_session(1))
    link = tmp_path / "link.jsonl"
    link.symlink_to(session)
    assert part_names(link) == ["link.jsonl"]


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        (b"plain name-\xc3\xa4.jsonl", "plain name-ä.jsonl"),
        (b"line\nbreak\x1b[31m", "line%0Abreak%1B[31m"),
        (b"bad\xff\xfe", "bad%FF%FE"),
        (b"100%", "100%25"),
        (b"back\\slash", "back%5Cslash"),
        ("rtl\u202etxt\u200b".encode(), "rtl%E2%80%AEtxt%E2%80%8B"),
    ],
)
def test_hostile_file_names_are_escaped(tmp_path: Path, name: bytes, safe: str) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name))
    path.write_text("text")
    assert part_names(path) == [safe]
    path.unlink()
    with pytest.raises(InputNotFoundError) as caught:
        read([path])
    assert str(caught.value).isprintable()


CHARACTERS = st.characters(exclude_characters="\0/") | st.characters(categories=["Cs", "Cc", "Cf"])


@given(st.lists(st.text(CHARACTERS, min_size=1), unique=True))
@settings(max_examples=50)
def test_safe_names_are_safe_and_differ(found: list[str]) -> None:
    made = [names.safe_name(name) for name in found]
    assert len(set(made)) == len(made)
    for name in made:
        assert name.isprintable()
        assert name not in (".", "..")
        name.encode()


def test_an_empty_file_is_opaque(tmp_path: Path) -> None:
    for text in (b"", b"\n", b" \n\t"):
        path = tmp_path / "empty"
        path.write_bytes(text)
        reading = read([path])
        [part] = reading.transcript.parts
        assert (reading.transcript.dialect, part.media) == ("opaque", "raw")
        assert b"".join(part.items.lines()) == text


SESSION = list(claude_session(2, seed=1))
QWEN = {"type": "user", "sessionId": "s", "uuid": "u", "message": {"role": "user", "parts": [{"text": "x"}]}}
COPILOT: dict[str, Any] = {"type": "user.message", "data": {}, "id": "1", "timestamp": "x", "parentId": None}
SNAPSHOTS = [{"type": "summary", "summary": "x", "leafUuid": "l"}, SESSION[0]]
STREAM = [
    {"type": "system", "subtype": "init", "session_id": "s", "uuid": "u"},
    {"type": "assistant", "message": {"role": "assistant", "content": []}, "session_id": "s"},
    {"type": "result", "session_id": "s", "total_cost_usd": 0.1},
]


@pytest.mark.parametrize(
    ("lines", "dialect"),
    [
        (SESSION, "claude-code"),
        (SESSION[2:3], "claude-code"),
        (SNAPSHOTS, "claude-code"),
        (STREAM, "claude-code"),
        ([*STREAM[:1], {"novel": "line"}], "claude-code"),
        (anthropic_messages(2), "anthropic-messages"),
        ([QWEN, QWEN | {"type": "system"}], "opaque"),
        ([*SESSION[:1], QWEN], "opaque"),
        ([COPILOT, COPILOT], "opaque"),
        ([{"role": "user", "message": {"content": []}}] * 3, "opaque"),
        ([{"timestamp": "x", "type": "session_meta", "payload": {}}] * 2, "codex"),
        ([{"timestamp": "x", "type": "novelty", "payload": {}}] * 2, "opaque"),
        ([{"role": "user", "content": "only text"}] * 2, "opaque"),
        ([[1, 2], {"type": 3}], "opaque"),
    ],
)
def test_the_dialect_of_lines(tmp_path: Path, lines: list[Any], dialect: str) -> None:
    path = write_jsonl(tmp_path / "misleading.md", lines)
    reading = read([path])
    assert reading.transcript.dialect == dialect
    [part] = reading.transcript.parts
    if dialect == "opaque":
        assert part.media == "raw"
        assert b"".join(part.items.blocks()) == path.read_bytes()
    else:
        assert part.media in ("jsonl", "json")
        assert list(part.items.lines()) == [line_of(line) for line in lines]


def test_a_session_that_starts_torn_or_with_a_huge_line(tmp_path: Path) -> None:
    lines = [line_of(item) for item in SESSION]
    path = tmp_path / "s.jsonl"
    path.write_bytes(b"\n".join([lines[0][10:], *lines[1:]]))
    assert read([path]).transcript.dialect == "claude-code"
    huge = line_of(SESSION[1] | {"toolUseResult": "x" * (1 << 21)})
    path.write_bytes(b"\n".join([huge, *lines]))
    reading = read([path])
    assert reading.transcript.dialect == "claude-code"
    assert list(reading.transcript.parts[0].items.lines()) == [huge, *lines]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-8-sig"])
def test_other_encodings_are_kept_as_they_are(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes("\n".join(line_of(item).decode() for item in SESSION).encode(encoding))
    reading = read([path])
    [part] = reading.transcript.parts
    assert (reading.transcript.dialect, part.media) == ("opaque", "raw")
    assert b"".join(part.items.lines()) == path.read_bytes()


def test_opaque_lines_that_are_damaged_are_kept_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "log"
    for tail in (b'{"a":', b"plain text\n{}\n", b"\0\0\0"):
        path.write_bytes(b'{"a":1}\n' * 5 + tail)
        [part] = read([path]).transcript.parts
        assert part.media == "raw"
        assert b"".join(part.items.lines()) == path.read_bytes()


def test_chunks_of_text_end_at_line_ends(tmp_path: Path) -> None:
    path = tmp_path / "big.txt"
    path.write_bytes(b"".join(b"line %d with some text\n" % number for number in range(100_000)))
    [part] = read([path]).transcript.parts
    chunks = list(part.items.lines())
    assert len(chunks) > 2
    assert all(chunk.endswith(b"\n") for chunk in chunks)
    assert b"".join(chunks) == path.read_bytes()
    path.write_bytes(b"x" * 3_000_000)
    [part] = read([path]).transcript.parts
    assert b"".join(part.items.lines()) == path.read_bytes()


def test_a_session_id_that_no_file_system_takes_names_no_folder(tmp_path: Path) -> None:
    line = {"type": "user", "sessionId": "\ud800", "uuid": "u", "message": {"role": "user", "content": "go"}}
    path = tmp_path / "session.jsonl"
    path.write_bytes(json.dumps(line).encode() + b"\n")
    assert part_names(path) == ["session.jsonl"]
