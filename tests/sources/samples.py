"""Small sessions as harnesses write them, and homes to put them in."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
LONG_AGO = NOW - timedelta(days=1)
_NAMES = uuid.UUID("5b6a3c1e-8a2f-4a77-9d0e-2f1c7f3b9a10")


def session_id(name: str) -> str:
    """A session's id that is always the same for a name."""
    return str(uuid.uuid5(_NAMES, name))


def write(path: Path, lines: Sequence[Any], *, at: datetime = LONG_AGO, end: str = "") -> Path:
    """A file of JSON lines, written at that time; `end` is what stands behind them."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(line) + "\n" for line in lines) + end
    path.write_text(text, "utf-8")
    touch(path, at)
    return path


def touch(path: Path, at: datetime) -> None:
    """Have the file written at that time."""
    os.utime(path, (at.timestamp(), at.timestamp()))


class Claude:
    """Lines of Claude Code."""

    def __init__(self, session: str = "s", *, side: str | None = None) -> None:
        self._session = session
        self._side = side

    def line(self, kind: str, content: Any = None, **more: Any) -> dict[str, Any]:
        line: dict[str, Any] = {
            "type": kind,
            "uuid": str(uuid.uuid4()),
            "sessionId": self._session,
            "timestamp": "2026-02-28T10:00:00.000Z",
        }
        if self._side is not None:
            line |= {"isSidechain": True, "agentId": self._side}
        if kind in ("user", "assistant"):
            line["message"] = {"role": kind, "content": content, **more.pop("message", {})}
        return {**line, **more}

    def asks(self, text: str = "do it") -> dict[str, Any]:
        return self.line("user", text)

    def says(self, text: str = "done", **more: Any) -> dict[str, Any]:
        return self.line("assistant", [{"type": "text", "text": text}], **more)

    def calls(self, call: str = "t1") -> dict[str, Any]:
        return self.line("assistant", [{"type": "tool_use", "id": call, "name": "Bash", "input": {}}])

    def result(self, call: str = "t1") -> dict[str, Any]:
        return self.line("user", [{"type": "tool_result", "tool_use_id": call, "content": "ok"}])

    def thinks(self) -> dict[str, Any]:
        return self.line("assistant", [{"type": "thinking", "thinking": "hm", "signature": "c2ln"}])

    def ended(self, subtype: str = "success", *, is_error: bool = False) -> dict[str, Any]:
        """The last line of stream-json."""
        return {
            "type": "result",
            "subtype": subtype,
            "is_error": is_error,
            "session_id": self._session,
            "result": "done",
        }

    def whole(self) -> list[dict[str, Any]]:
        """A session that ended well."""
        return [self.asks(), self.calls(), self.result(), self.says()]


def head(own: str, **more: Any) -> dict[str, Any]:
    """The first line of a session of Codex."""
    payload = {"id": own, "cwd": "/work", "source": "cli", "originator": "codex-tui", **more}
    return {"timestamp": "2026-02-28T10:00:00.000Z", "type": "session_meta", "payload": payload}


def item(kind: str, **more: Any) -> dict[str, Any]:
    """A response item of Codex."""
    payload = {"type": kind, **more}
    return {"timestamp": "2026-02-28T10:00:01.000Z", "type": "response_item", "payload": payload}


def event(kind: str, **more: Any) -> dict[str, Any]:
    """An event of Codex."""
    payload = {"type": kind, **more}
    return {"timestamp": "2026-02-28T10:00:02.000Z", "type": "event_msg", "payload": payload}


def codex_asks(text: str = "do it") -> dict[str, Any]:
    return item("message", role="user", content=[{"type": "input_text", "text": text}])


def codex_says(text: str = "done") -> dict[str, Any]:
    return item("message", role="assistant", content=[{"type": "output_text", "text": text}])


def codex_calls(call: str = "c1") -> dict[str, Any]:
    return item("function_call", name="shell", arguments="{}", call_id=call)


def codex_result(call: str = "c1") -> dict[str, Any]:
    return item("function_call_output", call_id=call, output="ok")


def messages() -> list[dict[str, Any]]:
    """A conversation as providers take it."""
    return [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]


def projects(home: Path) -> Path:
    """Where Claude Code has the sessions of one folder."""
    return home / ".claude" / "projects" / "-work"


def rollouts(home: Path) -> Path:
    """Where Codex has the sessions of one day."""
    return home / ".codex" / "sessions" / "2026" / "02" / "28"
