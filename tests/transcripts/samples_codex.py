"""Generated rollouts of Codex, always the same for the same seed: enveloped, and flat as in 2025."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from transcripts.samples_responses import MODEL, ItemWriter

VERSION = "0.142.2"
FOLDER = "/home/sample/project"


class Rollout:
    """Makes the lines of one session."""

    def __init__(self, seed: int, *, ordinals: bool = False) -> None:
        self.items = ItemWriter(seed)
        self.make = self.items.make
        self.session = str(uuid.UUID(int=self.make.random.getrandbits(128), version=4))
        self.used = [0, 0, 0]
        self._ordinal = 0 if ordinals else None

    def line(self, kind: str, payload: dict[str, Any]) -> dict[str, Any]:
        self.make.clock += timedelta(seconds=1.25)
        line: dict[str, Any] = {"timestamp": self.now()}
        if self._ordinal is not None:
            line["ordinal"] = self._ordinal
            self._ordinal += 1
        return {**line, "type": kind, "payload": payload}

    def now(self) -> str:
        return self.make.clock.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def meta(self, **more: Any) -> dict[str, Any]:
        payload = {
            "id": self.session,
            "timestamp": self.now(),
            "cwd": FOLDER,
            "originator": "codex-tui",
            "cli_version": VERSION,
            "source": "cli",
            "model_provider": "openai",
            "base_instructions": {"text": "You are a coding agent. " + self.make.words(50)},
            "git": {"commit_hash": f"{self.make.random.getrandbits(160):040x}", "branch": "main"},
            **more,
        }
        return self.line("session_meta", payload)

    def context(self) -> dict[str, Any]:
        payload = {"turn_id": self.make.uuid(), "cwd": FOLDER, "model": MODEL, "approval_policy": "never"}
        return self.line("turn_context", payload)

    def item(self, item: dict[str, Any]) -> dict[str, Any]:
        return self.line("response_item", item)

    def event(self, kind: str, **fields: Any) -> dict[str, Any]:
        return self.line("event_msg", {"type": kind, **fields})

    def tokens(self) -> dict[str, Any]:
        last = (1000, 600, 50)
        self.used = [total + one for total, one in zip(self.used, last, strict=True)]
        names = ("input_tokens", "cached_input_tokens", "output_tokens")
        info = {
            "total_token_usage": dict(zip(names, self.used, strict=True)),
            "last_token_usage": dict(zip(names, last, strict=True)),
        }
        return self.event("token_count", info=info, rate_limits=None)

    def harness(self) -> list[dict[str, Any]]:
        """What Codex writes ahead of what a person types."""
        environment = f"<environment_context>\n  <cwd>{FOLDER}</cwd>\n</environment_context>"
        guide = f"# AGENTS.md instructions for {FOLDER}\n\n<INSTRUCTIONS>\nBe careful.\n</INSTRUCTIONS>"
        return [
            self.items.developer("<permissions instructions>\nAll is allowed.\n</permissions instructions>"),
            self.items.user(guide),
            self.items.user(environment),
        ]

    def shown(self, item: dict[str, Any]) -> list[dict[str, Any]]:
        """The copy of an item that the screen shows."""
        if item.get("role") == "user":
            images = [part["image_url"] for part in item["content"] if part["type"] == "input_image"]
            return [self.event("user_message", message=item["content"][0]["text"], images=images)]
        if item.get("role") == "assistant":
            return [self.event("agent_message", message=item["content"][0]["text"], phase="commentary")]
        if item["type"] == "function_call_output" and isinstance(item["output"], str):
            return [self.ended(item["call_id"], item["output"])]
        return []

    def ended(self, call: str, output: str) -> dict[str, Any]:
        return self.event(
            "exec_command_end",
            call_id=call,
            stdout=output,
            stderr="",
            aggregated_output=output,
            formatted_output=output,
            exit_code=0,
        )

    def compacted(self, kept: list[dict[str, Any]], *, call: bool = False) -> list[dict[str, Any]]:
        """A compaction, which keeps what a person said and puts something sealed in the place of the rest."""
        sealed = {"type": "compaction", "id": self.items.id("cmp"), "encrypted_content": self.items.sealed()}
        open_call = [self.items.call("exec_command", {"cmd": "sleep 5"})] if call else []
        history = [*kept, sealed, *open_call]
        payload = {"message": "", "replacement_history": history, "window_id": self.make.uuid()}
        return [self.line("compacted", payload), self.event("context_compacted")]


def codex_session(
    turns: int,
    *,
    seed: int = 0,
    parallel: int = 2,
    images: bool = False,
    compaction: bool = False,
    events: bool = True,
    ordinals: bool = False,
    result_bytes: int = 120,
) -> Iterator[dict[str, Any]]:
    """The lines of a session; `compaction` marks one half-way, `events` are what the screen shows besides."""
    write = Rollout(seed, ordinals=ordinals)
    yield write.meta()
    for item in write.harness():
        yield write.item(item)
    said = []
    for turn in range(turns):
        if compaction and turn and turn == turns // 2:
            yield from write.compacted(said)
        yield write.context()
        for item in write.items.turn(turn, parallel=parallel, images=images, result_bytes=result_bytes):
            if item.get("role") == "user":
                said.append(item)
            yield write.item(item)
            if events:
                yield from write.shown(item)
        yield write.tokens()


def codex_flat(
    turns: int, *, seed: int = 0, parallel: int = 2, result_bytes: int = 120
) -> list[dict[str, Any]]:
    """The lines of a session as early versions wrote them: a head, states, and items without an envelope."""
    write = Rollout(seed)
    head = {
        "id": write.session,
        "timestamp": write.now(),
        "instructions": "Be careful.\r\nAlways.",
        "git": {"commit_hash": f"{write.make.random.getrandbits(160):040x}", "branch": "main"},
    }
    lines: list[dict[str, Any]] = [head, {"record_type": "state"}, *write.harness()]
    for turn in range(turns):
        for item in write.items.turn(turn, parallel=parallel, result_bytes=result_bytes):
            if item["type"] == "function_call_output":
                item["output"] = item["output"].replace("\n", "\r\n")
            lines += [item, {"record_type": "state"}]
    return lines
