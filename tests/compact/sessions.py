"""Small sessions told once and written down in each dialect, so that one test covers them all."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from hypothesis import strategies as st

from archiver import jsonio
from archiver.model import Approval, Checkpoint, Items, Plan, Receipt, Transcript, TranscriptPart
from archiver.redacted import Redacted, vouch
from archiver.transcripts.outcome import failed

NOW = datetime(2026, 1, 31, 14, tzinfo=UTC)


@dataclass(frozen=True)
class Use:
    """One call with its result; `image` adds that many bytes of picture to the result."""

    tool: str
    arguments: Any
    output: str = "done"
    failed: bool = False
    image: int = 0
    answered: bool = True


@dataclass(frozen=True)
class Turn:
    """One model response, what a person said before it, and the results of its calls."""

    ask: str = ""
    thinking: str = ""
    say: str = ""
    uses: tuple[Use, ...] = ()
    meta: bool = False
    """The harness writes lines of its own behind it."""


@dataclass
class Written:
    """The items of a session, each with the number of its turn (from 1; 0: said before any response)."""

    dialect: str
    items: list[Any] = field(default_factory=list)
    turns: list[int] = field(default_factory=list)

    @property
    def lines(self) -> list[bytes]:
        return [json.dumps(item, ensure_ascii=False, separators=(",", ":")).encode() for item in self.items]

    def add(self, turn: int, item: Any) -> None:
        self.items.append(item)
        self.turns.append(turn)


def write(session: list[Turn], dialect: str) -> Written:
    return _WRITERS[dialect](session)


def output_of(use: Use, dialect: str) -> str:
    """What the result of a call says: where a format has no flag for an error, the text has to tell."""
    told = dialect in BLOCKS or not use.failed or failed(use.output)
    return use.output if told else f"Error: {use.output}"


def checkpoint(dialect: str, lines: list[bytes], **fields: Any) -> Checkpoint:
    part = TranscriptPart(name="main", items=Items.of_lines(lines))
    values = {"run_id": "run", "task_id": "task", "created_at": NOW, "checkpoint_at": NOW, **fields}
    return Checkpoint(transcript=Transcript(dialect=dialect, parts=(part,)), **values)


def redacted(value: Checkpoint) -> Redacted[Checkpoint]:
    """What redaction would give: these sessions hold no secrets."""
    return vouch(value, Receipt())


def waiting_for(call_id: str) -> Plan:
    return Plan(pending_approvals=(Approval(id="1", question="may I?", call_id=call_id),))


def items_of(value: Checkpoint) -> list[Any]:
    return [jsonio.loads(line) for line in lines_of(value)]


def lines_of(value: Checkpoint) -> list[bytes]:
    return list(value.transcript.parts[0].items.lines())


def call_id(turn: int, number: int) -> str:
    return f"toolu_{turn:04d}_{number:02d}"


def picture(size: int) -> str:
    return base64.b64encode(hashlib.sha512(b"picture").digest() * (size // 64 + 1)).decode()


def _blocks(turn: Turn, number: int) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    if turn.thinking:
        signature = base64.b64encode(turn.thinking.encode()).decode()
        blocks.append({"type": "thinking", "thinking": turn.thinking, "signature": signature})
    if turn.say or not turn.uses:
        blocks.append({"type": "text", "text": turn.say or "I see."})
    blocks += [
        {"type": "tool_use", "id": call_id(number, place), "name": use.tool, "input": use.arguments}
        for place, use in enumerate(turn.uses)
    ]
    return blocks


def _results(turn: Turn, number: int) -> list[dict[str, Any]]:
    results = []
    for place, use in enumerate(turn.uses):
        if not use.answered:
            continue
        content: Any = use.output
        if use.image:
            source = {"type": "base64", "media_type": "image/png", "data": picture(use.image)}
            content = [{"type": "text", "text": use.output}, {"type": "image", "source": source}]
        results.append({"type": "tool_result", "tool_use_id": call_id(number, place), "content": content})
        if use.failed:
            results[-1]["is_error"] = True
    return results


def _anthropic(session: list[Turn]) -> Written:
    written = Written("anthropic-messages")
    due: list[dict[str, Any]] = []
    for number, turn in enumerate(session, 1):
        said = [{"type": "text", "text": turn.ask}] if turn.ask or not due else []
        if said and not turn.ask:
            said[0]["text"] = "go on"
        written.add(number - 1, {"role": "user", "content": [*due, *said]})
        written.add(number, {"role": "assistant", "content": _blocks(turn, number)})
        due = _results(turn, number)
    if due:
        written.add(len(session), {"role": "user", "content": due})
    return written


class _Chain:
    """Gives lines their ids and parents."""

    def __init__(self, written: Written) -> None:
        self._written = written
        self.last: str | None = None

    def line(self, turn: int, kind: str, **fields: Any) -> str:
        own = f"00000000-0000-4000-8000-{len(self._written.items):012d}"
        parent = fields.pop("parent", self.last)
        line = {
            "parentUuid": parent,
            "isSidechain": False,
            "sessionId": "s-1",
            "cwd": "/w",
            "version": "2.1.1",
        }
        self._written.add(
            turn, {**line, "type": kind, **fields, "uuid": own, "timestamp": "2026-01-31T14:00:00Z"}
        )
        self.last = own
        return own


def _claude_code(session: list[Turn]) -> Written:
    written = Written("claude-code")
    chain = _Chain(written)
    for number, turn in enumerate(session, 1):
        if turn.ask or number == 1:
            content = turn.ask or "go on"
            chain.line(number - 1, "user", message={"role": "user", "content": content})
        called = {}
        for block in _blocks(turn, number):
            message = {"id": f"msg_{number:04d}", "role": "assistant", "model": "m-1", "content": [block]}
            own = chain.line(number, "assistant", message=message)
            if block["type"] == "tool_use":
                called[block["id"]] = own
        for block in _results(turn, number):
            home = called[block["tool_use_id"]]
            copy = {"stdout": block["content"], "stderr": ""}
            chain.line(
                number,
                "user",
                message={"role": "user", "content": [block]},
                parent=home,
                toolUseResult=copy,
                sourceToolAssistantUUID=home,
            )
        if turn.meta:
            chain.line(number, "progress", data={"type": "hook_progress", "hook": "after"})
            written.add(number, {"type": "file-history-snapshot", "messageId": "m", "snapshot": {}})
    return written


def _openai_chat(session: list[Turn]) -> Written:
    written = Written("openai-chat")
    written.add(0, {"role": "system", "content": "You are careful."})
    for number, turn in enumerate(session, 1):
        if turn.ask or number == 1:
            written.add(number - 1, {"role": "user", "content": turn.ask or "go on"})
        message: dict[str, Any] = {
            "role": "assistant",
            "content": turn.say or (None if turn.uses else "I see."),
        }
        if turn.thinking:
            message["reasoning_content"] = turn.thinking
        if turn.uses:
            message["tool_calls"] = [_chat_call(use, number, place) for place, use in enumerate(turn.uses)]
        written.add(number, message)
        for place, use in enumerate(turn.uses):
            if use.answered:
                content: Any = output_of(use, "openai-chat")
                if use.image:
                    url = f"data:image/png;base64,{picture(use.image)}"
                    seen = {"type": "image_url", "image_url": {"url": url}}
                    content = [{"type": "text", "text": content}, seen]
                result = {"role": "tool", "tool_call_id": call_id(number, place), "content": content}
                written.add(number, result)
    return written


def _chat_call(use: Use, turn: int, number: int) -> dict[str, Any]:
    called = {"name": use.tool, "arguments": json.dumps(use.arguments)}
    return {"id": call_id(turn, number), "type": "function", "function": called}


_WRITERS: dict[str, Callable[[list[Turn]], Written]] = {
    "anthropic-messages": _anthropic,
    "claude-code": _claude_code,
    "openai-chat": _openai_chat,
}
DIALECTS = tuple(_WRITERS)
BLOCKS = ("anthropic-messages", "claude-code")
"""Dialects whose messages are blocks of Anthropic's: in them a result has a flag for an error."""

SIZES = (0, 1, 30, 390, 420, 900, 3000, 20_000)
_words = st.text(st.sampled_from('abc de\nfgé\U0001f600[]{}"\\'), max_size=30)


@st.composite
def outputs(draw: st.DrawFn) -> str:
    """Tool output of one of the sizes around which decisions turn."""
    words = draw(_words)
    size = draw(st.sampled_from(SIZES))
    return (words + "line of output\n") * (size // (len(words) + 15) + 1) if size else words


def _use(file: str, command: str, kind: str, output: str, failed: bool, image: int) -> Use:
    arguments = {
        "Bash": {"command": command},
        "Read": {"file_path": file},
        "Write": {"file_path": file, "content": output[:50]},
        "Grep": {"pattern": command, "path": file},
    }[kind]
    return Use(kind, arguments, output, failed, image)


uses = st.builds(
    _use,
    st.sampled_from(("/w/a.py", "/w/b.py")),
    st.sampled_from(("make test", "ls", "git status")),
    st.sampled_from(("Bash", "Read", "Write", "Grep")),
    outputs(),
    st.booleans(),
    st.sampled_from((0, 0, 0, 200, 6000)),
)
turns = st.builds(
    Turn,
    ask=st.sampled_from(("", "", "please go on", "fix the test\nand tell me")),
    thinking=st.sampled_from(("", "hm", "let me think about this " * 20)),
    say=st.sampled_from(("", "I will look.", "Done.")),
    uses=st.lists(uses, max_size=3).map(tuple),
    meta=st.booleans(),
)
sessions = st.lists(turns, min_size=1, max_size=8)
