"""Generated transcripts, always the same for the same seed, for tests of any room and for benchmarks.

from transcripts.samples import claude_session, write_jsonl
"""

from __future__ import annotations

import base64
import json
import random
import uuid
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

_PNG = b"\x89PNG\r\n\x1a\n"
WORDS = [
    *("the", "build", "fails", "because", "a", "fixture", "is", "missing", "so", "read", "file", "first"),
    *("then", "run", "every", "test", "again", "and", "say", "what", "changed", "in", "which", "module"),
    *("while", "server", "still", "answers", "naïve", "requests", "—", "ünïcode", "日本語", "included"),
]
MODEL = "claude-sample-1"
START = datetime(2026, 1, 31, 14, tzinfo=UTC)


class Writer:
    """Makes the lines of one Claude Code session, each linked to the one before."""

    def __init__(self, seed: int, *, session: str | None = None, agent: str | None = None) -> None:
        self.random = random.Random(seed)  # the same sample again is the point
        self.session = session or self.uuid()
        self.agent = agent
        self.parent: str | None = None
        self.clock = START

    def uuid(self) -> str:
        return str(uuid.UUID(int=self.random.getrandbits(128), version=4))

    def token(self, prefix: str) -> str:
        alphabet = "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz123456789"
        return prefix + "01" + "".join(self.random.choices(alphabet, k=22))

    def blob(self, size: int) -> str:
        """Base64 of `size` bytes that begin as a picture does."""
        return base64.b64encode(_PNG + self.random.randbytes(size - len(_PNG))).decode()

    def words(self, count: int) -> str:
        return " ".join(self.random.choices(WORDS, k=count))

    def output(self, size: int) -> str:
        """About `size` characters of numbered lines."""
        text = ""
        while len(text) < size:
            block = [f"{self.random.randrange(9999):5d}\t{self.words(9)}" for _ in range(60)]
            text += "\n".join(block) + "\n"
        return text[:size]

    def line(self, kind: str, message: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
        self.clock += timedelta(seconds=1.25)
        made: dict[str, Any] = {
            "parentUuid": self.parent,
            "isSidechain": self.agent is not None,
            "userType": "external",
            "cwd": "/home/sample/project",
            "sessionId": self.session,
            "version": "2.1.80",
            "gitBranch": "main",
        }
        if self.agent is not None:
            made["agentId"] = self.agent
        made["type"] = kind
        if message is not None:
            made["message"] = message
        made |= more
        made["uuid"] = self.parent = self.uuid()
        made["timestamp"] = self.clock.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        return made

    def user(self, content: Any, **more: Any) -> dict[str, Any]:
        return self.line("user", {"role": "user", "content": content}, **more)

    def response(self, contents: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """One model response, one line a block; the usage of the last line has the full count."""
        message_id, request = self.token("msg_"), self.token("req_")
        for number, block in enumerate(contents, 1):
            last = number == len(contents)
            usage = {
                "input_tokens": 3,
                "cache_creation_input_tokens": 100,
                "cache_read_input_tokens": 1000,
                "output_tokens": 50 if last else 1,
                "service_tier": "standard",
            }
            message = {
                "model": MODEL,
                "id": message_id,
                "type": "message",
                "role": "assistant",
                "content": [block],
                "stop_reason": None,
                "stop_sequence": None,
                "usage": usage,
            }
            yield self.line("assistant", message, requestId=request)

    def thinking(self, size: int = 30) -> dict[str, Any]:
        return {"type": "thinking", "thinking": self.words(size), "signature": self.blob(120)}

    def call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        return {"type": "tool_use", "id": self.token("toolu_"), "name": name, "input": arguments}


def claude_session(
    turns: int,
    *,
    seed: int = 0,
    parallel: int = 2,
    result_bytes: int = 400,
    images: bool = False,
    todos: bool = True,
    compaction: bool = False,
    session: str | None = None,
    agent: str | None = None,
) -> Iterator[dict[str, Any]]:
    """The lines of a session: in each turn a person asks, the model thinks, makes calls and answers.

    Lines outside the tree, structured copies and a plan are mixed in; `compaction` marks one half-way.
    """
    make = Writer(seed, session=session, agent=agent)
    snapshot = make.uuid()
    yield {
        "type": "file-history-snapshot",
        "messageId": snapshot,
        "snapshot": {
            "messageId": snapshot,
            "trackedFileBackups": {},
            "timestamp": "2026-01-31T14:00:00.000Z",
        },
        "isSnapshotUpdate": False,
    }
    for turn in range(turns):
        if compaction and turn and turn == turns // 2:
            yield from _compacted(make)
        yield make.user(f"Instruction {turn}: {make.words(12)}", todos=[])
        calls = [_call(make, turn, number) for number in range(parallel)]
        if todos:
            calls.append(_todos(make, turn, turns))
        said = {"type": "text", "text": make.words(15)}
        asked = list(make.response([make.thinking(), said, *calls]))
        yield from asked
        made_by = {line["message"]["content"][0].get("id"): line["uuid"] for line in asked}
        for call in calls:
            yield _result(make, call, made_by[call["id"]], result_bytes, images=images)
        yield from make.response([make.thinking(), {"type": "text", "text": make.words(20)}])
        yield make.line("system", subtype="turn_duration", durationMs=1500, isMeta=False)
    yield {"type": "last-prompt", "lastPrompt": "done", "leafUuid": make.parent, "sessionId": make.session}


def _call(make: Writer, turn: int, number: int) -> dict[str, Any]:
    file = f"/home/sample/project/src/file{(turn + number) % 7}.py"
    kinds = (
        ("Read", {"file_path": file}),
        ("Bash", {"command": f"make test-{turn % 5}", "description": "Run the tests"}),
        ("Edit", {"file_path": file, "old_string": make.words(5), "new_string": make.words(6)}),
        ("Write", {"file_path": file, "content": make.output(200)}),
    )
    return make.call(*kinds[(turn + number) % len(kinds)])


def _todos(make: Writer, turn: int, turns: int) -> dict[str, Any]:
    entries = [
        {
            "content": f"Step {step}",
            "status": "completed" if step < turn else "in_progress" if step == turn else "pending",
            "activeForm": f"Doing step {step}",
        }
        for step in range(min(turns, 5))
    ]
    return make.call("TodoWrite", {"todos": entries})


def _result(make: Writer, call: dict[str, Any], line: str, size: int, *, images: bool) -> dict[str, Any]:
    failed = call["name"] == "Bash" and make.random.random() < 0.3
    text = ("Exit code 2\n" if failed else "") + make.output(size)
    content: Any = text
    copy: Any = {"stdout": text, "stderr": "", "interrupted": False, "isImage": False}
    if images and call["name"] == "Read":
        data = make.blob(600)
        source = {"type": "base64", "media_type": "image/png", "data": data}
        content = [{"type": "image", "source": source}]
        copy = {"type": "image", "file": {"base64": data, "type": "image/png", "originalSize": 600}}
    block = {"type": "tool_result", "tool_use_id": call["id"], "content": content, "is_error": failed}
    return make.user(
        [block], toolUseResult=f"Error: {text}" if failed else copy, sourceToolAssistantUUID=line
    )


def _compacted(make: Writer) -> Iterator[dict[str, Any]]:
    before, make.parent = make.parent, None
    yield make.line(
        "system",
        subtype="compact_boundary",
        content="Conversation compacted",
        logicalParentUuid=before,
        compactMetadata={"trigger": "auto", "preTokens": 150000},
    )
    summary = "This session is being continued from a previous conversation. " + make.words(40)
    yield make.user(summary, isCompactSummary=True, isVisibleInTranscriptOnly=True)


def inline_sidechains(seed: int = 0) -> list[dict[str, Any]]:
    """A session of version 1.0: two side conversations at once, written between the session's own lines."""
    main = Writer(seed)
    task = [main.call("Task", {"description": "look", "prompt": main.words(6)}) for _ in range(2)]
    lines = [main.user("Look at both."), *main.response(task)]
    sides = [Writer(seed + 1 + number, session=main.session, agent="x") for number in range(2)]
    pending = []
    for side in sides:
        call = side.call("Read", {"file_path": "/tmp/a"})
        lines += [side.user(side.words(5)), *side.response([call])]
        pending.append(call)
    for side, call in zip(sides, pending, strict=True):
        lines += [_result(side, call, str(side.parent), 50, images=False)]
        lines += side.response([{"type": "text", "text": side.words(5)}])
    for line in lines:
        line.pop("agentId", None)
    lines += [_result(main, call, str(main.parent), 50, images=False) for call in task]
    return [*lines, *main.response([{"type": "text", "text": "Both are fine."}])]


def anthropic_messages(
    turns: int, *, seed: int = 0, parallel: int = 2, images: bool = False
) -> list[dict[str, Any]]:
    """The messages of a request: instructions, thinking, parallel calls, their results together."""
    make = Writer(seed)
    messages: list[dict[str, Any]] = []
    for turn in range(turns):
        messages.append({"role": "user", "content": f"Instruction {turn}: {make.words(8)}"})
        calls = [_call(make, turn, number) for number in range(parallel)]
        messages.append({"role": "assistant", "content": [make.thinking(), *calls]})
        results: list[dict[str, Any]] = []
        for call in calls:
            content: Any = make.output(120)
            if images and call["name"] == "Read":
                source = {"type": "base64", "media_type": "image/png", "data": make.blob(300)}
                content = [{"type": "text", "text": "picture"}, {"type": "image", "source": source}]
            results.append({"type": "tool_result", "tool_use_id": call["id"], "content": content})
        messages.append({"role": "user", "content": results})
        messages.append({"role": "assistant", "content": [{"type": "text", "text": make.words(9)}]})
    return messages


def anthropic_request(turns: int, *, seed: int = 0, images: bool = False) -> dict[str, Any]:
    """A request body of the Messages API."""
    return {
        "model": MODEL,
        "max_tokens": 4096,
        "system": [{"type": "text", "text": "You are careful."}, {"type": "text", "text": "Be brief."}],
        "messages": anthropic_messages(turns, seed=seed, images=images),
        "tools": [{"name": "Read", "input_schema": {"type": "object"}}],
    }


def line_of(item: Any) -> bytes:
    """An item as JavaScript writes it: compact, nothing escaped that need not be."""
    return json.dumps(item, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


def write_jsonl(path: Path, items: Iterable[Any]) -> Path:
    """Write one item a line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        for item in items:
            file.write(line_of(item) + b"\n")
    return path


def write_project(folder: Path, *, seed: int = 0, turns: int = 3) -> Path:
    """A session with three sub-agent files: two in its own folder, one beside it as older versions did."""
    session = Writer(seed).session
    path = write_jsonl(folder / f"{session}.jsonl", claude_session(turns, seed=seed, session=session))
    for number, name in enumerate(("a1b2c3d", "acompact-0f0f")):
        agent = claude_session(2, seed=seed + 10 + number, session=session, agent=name)
        write_jsonl(folder / session / "subagents" / f"agent-{name}.jsonl", agent)
    beside = claude_session(1, seed=seed + 20, session=session, agent="beef")
    write_jsonl(folder / "agent-beef.jsonl", beside)
    return path
