"""Generated conversations of OpenAI Chat Completions, always the same for the same seed."""

from __future__ import annotations

import json
from typing import Any

from transcripts.samples import Writer

MODEL = "gpt-sample-1"


def call_id(make: Writer) -> str:
    return "call_" + make.token("")


def chat_call(make: Writer, turn: int, number: int) -> dict[str, Any]:
    """A call as the API gives it: its arguments are JSON in a text."""
    file = f"/home/sample/project/src/file{(turn + number) % 7}.py"
    name, arguments = (
        ("read_file", {"path": file}),
        ("bash", {"command": f"make test-{turn % 5}"}),
        ("edit_file", {"path": file, "old_string": make.words(5), "new_string": make.words(6)}),
        ("write_file", {"path": file, "content": make.output(200)}),
    )[(turn + number) % 4]
    return {
        "id": call_id(make),
        "type": "function",
        "function": {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)},
    }


def chat_picture(make: Writer, size: int = 600) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{make.blob(size)}"}}


def chat_messages(
    turns: int,
    *,
    seed: int = 0,
    parallel: int = 2,
    images: bool = False,
    reasoning: bool = True,
    result_bytes: int = 120,
) -> list[dict[str, Any]]:
    """A system prompt; then in each turn a person asks, the model makes calls, gets results, answers."""
    make = Writer(seed)
    messages: list[dict[str, Any]] = [{"role": "system", "content": "You are careful."}]
    for turn in range(turns):
        asked: Any = f"Instruction {turn}: {make.words(8)}"
        if images:
            asked = [{"type": "text", "text": asked}, chat_picture(make)]
        calls = [chat_call(make, turn, number) for number in range(parallel)]
        message: dict[str, Any] = {"role": "assistant", "content": None, "tool_calls": calls}
        answer: dict[str, Any] = {"role": "assistant", "content": make.words(9)}
        if reasoning:
            message["reasoning_content"] = make.words(30)
            block = {"type": "thinking", "thinking": make.words(20), "signature": make.blob(120)}
            answer |= {"reasoning_content": make.words(20), "thinking_blocks": [block]}
        results = [
            {"role": "tool", "tool_call_id": call["id"], "content": make.output(result_bytes)}
            for call in calls
        ]
        messages += [{"role": "user", "content": asked}, message, *results, answer]
    return messages


def chat_request(turns: int, *, seed: int = 0, images: bool = False) -> dict[str, Any]:
    """The body of a request."""
    return {
        "model": MODEL,
        "messages": chat_messages(turns, seed=seed, images=images),
        "tools": [{"type": "function", "function": {"name": "bash", "parameters": {"type": "object"}}}],
        "temperature": 0.0,
    }


def chat_log(turns: int, *, seed: int = 0) -> dict[str, Any]:
    """A request as a proxy logs it: with the response, whose call nobody has answered yet."""
    make = Writer(seed + 1000)
    message = {"role": "assistant", "content": make.words(5), "tool_calls": [chat_call(make, turns, 0)]}
    return {
        "messages": chat_messages(turns, seed=seed),
        "response": {
            "id": "chatcmpl-" + make.token(""),
            "object": "chat.completion",
            "created": 1769868000,
            "model": MODEL,
            "choices": [{"index": 0, "finish_reason": "tool_calls", "message": message}],
            "usage": {
                "prompt_tokens": 1000,
                "completion_tokens": 50,
                "prompt_tokens_details": {"cached_tokens": 600},
            },
        },
        "cost": 0.25,
    }


def chat_trajectories(count: int, *, seed: int = 0, turns: int = 2) -> list[dict[str, Any]]:
    """Recorded runs of one benchmark; as models do, they use the same ids of calls in each."""
    runs = []
    for number in range(count):
        ids = Writer(seed)
        messages = chat_messages(turns, seed=seed + number)
        for message in messages:
            calls = message.get("tool_calls", [])
            if calls:
                due = [call_id(ids) for _ in calls]
            for call, own in zip(calls, due if calls else [], strict=True):
                call["id"] = own
            if message["role"] == "tool":
                message["tool_call_id"] = due.pop(0)
        runs.append({"task_id": number, "reward": 1.0, "traj": messages, "info": {"out": [], "n": 2**70 + 1}})
    return runs


def legacy_messages() -> list[dict[str, Any]]:
    """Calls as the API had them before they had ids."""
    called = {"name": "get_weather", "arguments": '{"city": "Oslo"}'}
    return [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Rain?"},
        {"role": "assistant", "content": None, "function_call": called},
        {"role": "function", "name": "get_weather", "content": '{"rain": true}'},
        {"role": "assistant", "content": None, "function_call": called},
        {"role": "function", "name": "get_weather", "content": '{"rain": true}'},
        {"role": "assistant", "content": "Yes."},
    ]


def accepted(items: list[Any]) -> bool:
    """The rule of the API, told another way: behind a message with calls stand just their results."""
    place = 0
    while place < len(items):
        item = items[place]
        place += 1
        if item["role"] == "tool":
            return False
        due = sorted(call["id"] for call in item.get("tool_calls", ()))
        given = [one.get("tool_call_id") for one in items[place : place + len(due)]]
        if None in given or sorted(given) != due:
            return False
        place += len(due)
    return True
