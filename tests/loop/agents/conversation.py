"""A conversation that grows turn by turn: a model that knows what it is told, tools, phases, spend."""

from __future__ import annotations

import zlib
from typing import Any

import archiver
from archiver.testing import Place

PHASES = ("reading", "writing", "testing")
TURNS = 6


def agent(place: Place) -> Any:
    """Returns the whole conversation: a lost, doubled or changed turn changes all that follow."""
    with archiver.run(
        "conversation", harness="test 1", policy="every-step", objective="Mend the parser", check=place.check
    ) as run:
        messages = run.messages or [{"role": "user", "content": "The parser fails on empty lines. Mend it."}]
        while turns_of(messages) < TURNS:
            turn = turns_of(messages)
            asked = place.world.act(f"turn-{turn}", ask(messages, turn), replayable=True)
            messages += [asked, answer(turn)]
            run.spend(tokens_in=100, tokens_out=10, usd=0.01)
            run.checkpoint(messages, phase=PHASES[turn * len(PHASES) // TURNS], note=f"turn {turn + 1}")
        run.finish("succeeded")
        return {"messages": run.messages, "phase": run.phase, "outcome": run.outcome}


def turns_of(messages: list[Any]) -> int:
    return len(messages) // 2


def ask(messages: list[Any], turn: int) -> dict[str, Any]:
    """What a model says to this conversation, and to no other."""
    seen = zlib.crc32(repr(messages).encode()) % 10_000
    call = {"type": "tool_use", "id": f"call-{turn}", "name": "edit", "input": {"line": seen}}
    return {"role": "assistant", "content": [{"type": "text", "text": f"Line {seen} is next."}, call]}


def answer(turn: int) -> dict[str, Any]:
    result = {"type": "tool_result", "tool_use_id": f"call-{turn}", "content": f"edited, {turn} more to go"}
    return {"role": "user", "content": [result]}
