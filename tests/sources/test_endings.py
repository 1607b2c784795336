"""Whether a run is complete, and how it ended."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from archiver.errors import RefusedError
from archiver.sources import Ending, Found, OpenFiles, of_session
from archiver.sources.ending import ending
from archiver.sources.found import FileStamp
from sources.samples import (
    LONG_AGO,
    NOW,
    Claude,
    codex_asks,
    codex_calls,
    codex_result,
    codex_says,
    event,
    head,
    item,
    messages,
    touch,
    write,
)

C = Claude()
EXEC: dict[str, Any] = {"source": "exec", "originator": "codex_exec"}


def look(path: Path, now: datetime = NOW, opened: OpenFiles | None = None) -> Ending:
    return ending(of_session(path), now, opened or OpenFiles())


def outcome(path: Path) -> str | None:
    found = look(path)
    assert found.complete
    assert found.why.startswith("quiet for 24 hours; ")
    return found.outcome


API_ERROR = C.says("API Error: 529 overloaded", isApiErrorMessage=True)
SYNTHETIC = C.says("No response requested.", message={"model": "<synthetic>"})
BOUNDARY = C.line("system", subtype="compact_boundary", compactMetadata={"trigger": "auto"})
BY_HAND = C.line("system", subtype="compact_boundary", compactMetadata={"trigger": "manual"})
INTERRUPTED = C.asks("[Request interrupted by user for tool use]")
SIDE = Claude(side="a1")
PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([*C.whole()], "succeeded"),
        ([*C.whole(), C.line("progress"), C.line("system", subtype="turn_duration")], "succeeded"),
        ([*C.whole(), C.asks("<local-command-stdout>Bye!</local-command-stdout>")], "succeeded"),
        ([C.asks(), C.calls()], "crashed"),
        ([C.asks(), C.calls("a"), C.calls("b"), C.result("b"), C.says()], "crashed"),
        ([C.asks(), C.calls(), C.result()], "crashed"),
        ([C.asks(), C.thinks()], "crashed"),
        ([*C.whole(), C.asks("and now?")], "crashed"),
        ([*C.whole(), C.asks("and now?"), SYNTHETIC], "crashed"),
        ([*C.whole(), BOUNDARY], "crashed"),
        ([*C.whole(), C.line("user", [PICTURE])], "crashed"),
        ([*C.whole(), C.line("user", [PICTURE], isMeta=True)], "succeeded"),
        ([*C.whole(), BY_HAND], "succeeded"),
        ([C.asks(), C.calls(), BY_HAND, C.says()], "succeeded"),
        ([C.asks(), C.calls("lost"), C.asks("go on"), C.says()], "succeeded"),
        ([C.asks(), C.calls(), INTERRUPTED], "cancelled"),
        ([C.asks(), C.calls(), INTERRUPTED, C.asks("go on"), C.says()], "succeeded"),
        ([C.asks(), API_ERROR], "failed"),
        ([C.asks(), API_ERROR, C.asks("again"), C.says()], "succeeded"),
        ([C.asks(), C.says("cut o", message={"stop_reason": "max_tokens"})], "failed"),
        ([C.asks(), C.says("I will", message={"stop_reason": "tool_use"})], "crashed"),
        ([*C.whole(), SIDE.asks(), SIDE.calls("x")], "succeeded"),
        ([C.asks(), C.calls(), SIDE.asks(), SIDE.says()], "crashed"),
        ([C.line("file-history-snapshot", snapshot={})], "cancelled"),
    ],
)
def test_a_session_of_claude_code_ended_as_its_last_words_say(
    tmp_path: Path, lines: list[Any], expected: str
) -> None:
    assert outcome(write(tmp_path / "s.jsonl", lines)) == expected


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([codex_asks(), codex_calls(), codex_result(), codex_says()], "succeeded"),
        ([codex_asks(), codex_says(), event("task_complete"), event("token_count")], "succeeded"),
        ([codex_asks(), codex_says("I look"), codex_calls()], "crashed"),
        ([codex_asks(), codex_calls(), codex_result()], "crashed"),
        ([codex_asks(), item("reasoning", summary=[], encrypted_content="YQ==")], "crashed"),
        ([codex_asks(), codex_calls(), event("turn_aborted", reason="interrupted")], "cancelled"),
        ([codex_asks(), codex_calls(), codex_asks("<turn_aborted>\nstopped</turn_aborted>")], "cancelled"),
        ([codex_asks(), event("turn_aborted"), codex_asks("on"), codex_says()], "succeeded"),
        ([codex_asks(), event("error", message="usage limit")], "failed"),
        ([codex_asks(), event("error", message="usage limit"), event("task_complete")], "failed"),
        ([codex_asks(), event("stream_error", message="again"), codex_says()], "succeeded"),
    ],
)
def test_a_session_of_codex_ended_as_its_last_words_say(
    tmp_path: Path, lines: list[Any], expected: str
) -> None:
    assert outcome(write(tmp_path / "rollout-s.jsonl", [head("s"), *lines])) == expected


@pytest.mark.parametrize(
    ("lines", "expected", "why"),
    [
        ([*C.whole(), C.ended()], "succeeded", "success"),
        ([*C.whole(), C.ended(is_error=True)], "failed", "an error"),
        ([C.asks(), C.ended("error_max_turns", is_error=True)], "failed", "error_max_turns"),
        ([*C.whole(), C.ended(), C.line("system", subtype="hook")], "succeeded", "success"),
        (
            [head("s", **EXEC), codex_asks(), codex_says(), event("task_complete")],
            "succeeded",
            "task_complete",
        ),
        (
            [head("s", **EXEC), codex_asks(), codex_calls(), event("turn_aborted")],
            "cancelled",
            "turn_aborted",
        ),
        ([head("s", **EXEC), event("error"), event("task_complete")], "failed", "task_complete"),
    ],
)
def test_a_final_marker_counts_at_once_and_though_the_file_is_open(
    tmp_path: Path, lines: list[Any], expected: str, why: str
) -> None:
    path = write(tmp_path / "s.jsonl", lines, at=NOW)
    seen = path.stat()
    opened = OpenFiles({(seen.st_dev, seen.st_ino): 4711})
    found = look(path, NOW, opened)
    assert (found.complete, found.outcome) == (True, expected)
    assert found.why.startswith("final marker: ")
    assert why in found.why


@pytest.mark.parametrize(
    "lines",
    [
        [*C.whole(), C.ended(), C.asks("more")],
        [head("s"), codex_asks(), codex_says(), event("task_complete")],
        [head("s", **EXEC), codex_says(), event("task_complete"), event("task_started")],
        [head("s", **EXEC), codex_says(), event("task_complete"), codex_asks()],
        [head("s", **EXEC | {"source": {"subagent": "review"}}), codex_says(), event("task_complete")],
    ],
)
def test_what_may_go_on_has_no_final_marker(tmp_path: Path, lines: list[Any]) -> None:
    found = look(write(tmp_path / "s.jsonl", lines, at=NOW))
    assert (found.complete, found.outcome, found.why) == (
        False,
        None,
        "written 0 seconds ago; complete in 30 minutes unless it goes on",
    )


def test_quiet_is_measured_from_the_newest_file(tmp_path: Path) -> None:
    path = write(tmp_path / "s.jsonl", Claude("s").whole(), at=NOW - timedelta(minutes=31))
    assert look(path) == Ending(True, "succeeded", "quiet for 31 minutes; its last answer ended the turn")
    assert not look(path, NOW - timedelta(minutes=2)).complete
    side = Claude("s", side="a")
    write(tmp_path / "s" / "subagents" / "agent-a.jsonl", side.whole(), at=NOW - timedelta(minutes=2))
    assert look(path) == Ending(
        False, None, "written 2 minutes ago; complete in 28 minutes unless it goes on"
    )
    found = of_session(path)
    fresh = write(tmp_path / "fresh.jsonl", [{}], at=NOW)
    found.files[1].path.unlink()
    found.files[1].path.symlink_to(fresh)  # a link says nothing of the session
    assert ending(found, NOW, OpenFiles()).complete


def test_a_file_that_a_process_can_write_to_is_not_complete(tmp_path: Path) -> None:
    path = write(tmp_path / "s.jsonl", C.whole())
    program = "import sys; f = open(sys.argv[1], 'a'); print('open', flush=True); sys.stdin.read()"
    arguments = [sys.executable, "-c", program, str(path)]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        assert look(path, opened=OpenFiles.look()).why == f"open in process {writer.pid}"
        writer.communicate()
    with path.open("rb"):  # to read it is not to write it
        assert look(path, opened=OpenFiles.look()).complete


def test_another_system_has_no_list_of_open_files(tmp_path: Path) -> None:
    stamp = FileStamp(tmp_path, 0, 0, 1, 1)
    assert OpenFiles.look(tmp_path / "none").writer([stamp]) is None


def test_a_torn_last_line_is_a_crash(tmp_path: Path) -> None:
    for end in ('{"type":"assist', "\0" * 300, json.dumps(C.says()) + "\0" * 9):
        assert outcome(write(tmp_path / "s.jsonl", C.whole(), end=end)) == "crashed"
    whole = json.dumps(C.says())
    assert outcome(write(tmp_path / "s.jsonl", [C.asks()], end=whole)) == "succeeded"  # only its end is lost
    both = json.dumps(C.result()) + json.dumps(C.says())
    assert outcome(write(tmp_path / "s.jsonl", [C.asks(), C.calls()], end=both)) == "succeeded"


def test_as_much_of_the_end_is_read_as_it_takes(tmp_path: Path) -> None:
    noise = [C.line("progress", data="x" * 1000) for _ in range(3000)]
    assert outcome(write(tmp_path / "s.jsonl", [*C.whole(), *noise])) == "succeeded"
    long = C.result() | {"toolUseResult": "x" * 3_000_000}
    assert outcome(write(tmp_path / "s.jsonl", [C.asks(), C.calls(), long])) == "crashed"
    result = C.ended() | {"result": "x" * 1_000_000}
    assert look(write(tmp_path / "s.jsonl", [*C.whole(), result])).why.startswith("final marker")


def test_only_the_end_of_a_long_session_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "s.jsonl", [C.says("x" * 1000) for _ in range(8000)])
    found = of_session(path)
    read = 0
    real = os.pread

    def counted(handle: int, count: int, start: int) -> bytes:
        nonlocal read
        data = real(handle, count, start)
        read += len(data)
        return data

    monkeypatch.setattr(os, "pread", counted)
    assert ending(found, NOW, OpenFiles()).outcome == "succeeded"
    assert 0 < read < 1 << 20 < path.stat().st_size


def test_a_time_ahead_of_the_clock_counts_as_now(tmp_path: Path) -> None:
    path = write(tmp_path / "s.jsonl", C.whole())
    now = datetime.now(UTC) + timedelta(seconds=5)
    touch(path, now + timedelta(days=400))
    found = look(path, now)
    assert (found.complete, found.outcome) == (False, None)
    assert found.why.startswith("written ")
    assert " ago, as its time lies ahead of the clock; complete in 29 minutes" in found.why
    later = look(path, now + timedelta(hours=2))  # it was touched two hours before, whatever it says
    assert (later.complete, later.outcome) == (True, "succeeded")
    said = "written 0 seconds ago, as its time lies ahead of the clock; complete in"
    assert look(path, LONG_AGO).why.startswith(said)


def test_files_may_vanish_or_be_another_users(tmp_path: Path) -> None:
    path = write(tmp_path / "s.jsonl", C.whole())
    found = of_session(path)
    path.unlink()
    assert ending(found, NOW, OpenFiles()) == Ending(False, None, "gone since it was found")
    os.mkfifo(path)  # nobody writes to it: to open it would wait for ever
    assert ending(found, NOW, OpenFiles()).why == "gone since it was found"


def test_a_session_that_may_not_be_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "s.jsonl", C.whole())
    found = of_session(path)
    real = os.open

    def closed(name: Any, *more: Any, **options: Any) -> int:
        if name == path:
            raise PermissionError(13, "Permission denied")
        return real(name, *more, **options)

    monkeypatch.setattr(os, "open", closed)
    with pytest.raises(RefusedError, match=r"cannot be looked at: .*Permission denied"):
        ending(found, NOW, OpenFiles())


RESPONSE = {"choices": [{"message": {"role": "assistant", "content": "hello"}}], "object": "chat.completion"}
CALL = {"id": "c", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
FINISH = {"id": "c", "type": "function", "function": {"name": "finish", "arguments": "{}"}}
TOOL = {"role": "tool", "tool_call_id": "c", "content": "ok"}


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (messages(), "succeeded"),
        ([*messages()[:1], {"role": "assistant", "content": None, "tool_calls": [CALL]}], "crashed"),
        ([*messages()[:1], {"role": "assistant", "content": None, "tool_calls": [CALL]}, TOOL], "crashed"),
        (
            [*messages()[:1], {"role": "assistant", "content": None, "tool_calls": [FINISH]}, TOOL],
            "succeeded",
        ),
        ({"messages": messages()[:1], "model": "gpt-4o", "response": RESPONSE}, "succeeded"),
        ({"messages": messages()[:1], "model": "gpt-4o"}, "crashed"),
        ({"something": "else"}, "crashed"),
    ],
)
def test_messages_end_as_their_last_one_says(tmp_path: Path, document: Any, expected: str) -> None:
    path = tmp_path / "chat.json"
    path.write_text(json.dumps(document, indent=1))
    touch(path, LONG_AGO)
    assert outcome(path) == expected


def manifested(path: Path, said: str) -> Found:
    found = of_session(path)
    return Found("folder", found.key, found.paths, found.files, found.written, outcome=said)  # type: ignore[arg-type]


def test_the_word_of_a_manifest_counts(tmp_path: Path) -> None:
    path = write(tmp_path / "s.jsonl", C.whole(), at=NOW)
    assert ending(manifested(path, "failed"), NOW, OpenFiles()) == Ending(
        True, "failed", "archiver-run.json says failed"
    )
    assert not ending(manifested(path, "running"), NOW, OpenFiles()).complete
    touch(path, LONG_AGO)
    assert ending(manifested(path, "running"), NOW, OpenFiles()) == Ending(
        True, "crashed", "quiet for 24 hours; archiver-run.json says running"
    )
