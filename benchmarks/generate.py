"""Make a Claude Code session of any size: `python benchmarks/generate.py 100 out.jsonl` (megabytes)."""

from __future__ import annotations

import base64
import json
import random
import sys
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

WORDS = [
    *("parser", "index", "merge", "value", "table", "cursor", "page", "retry", "commit", "branch", "test"),
    *("fixture", "price", "feed", "lexer", "stream", "error", "assert", "return", "yield", "import", "class"),
    *("self", "none", "true", "async", "await", "lambda", "config", "schema", "record", "queue"),
]
START = datetime(2026, 3, 2, tzinfo=UTC)
SESSION = "5f0c7a52-9d3e-4b61-8c27-0a4be4d1c9f3"


def lines(megabytes: float, seed: int = 1) -> Iterator[bytes]:
    """JSONL lines of a session: instructions, thinking, calls, results with their structured copies."""
    rng = random.Random(seed)  # noqa: S311 - a benchmark's filler
    made, number, parent = 0, 0, None
    while made < megabytes * 1e6:
        for item in _turn(rng, number):
            item["parentUuid"], item["uuid"] = parent, str(uuid.UUID(int=rng.getrandbits(128), version=4))
            parent = item["uuid"]
            line = json.dumps(item, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
            made += len(line)
            yield line
        number += 1


def _turn(rng: random.Random, number: int) -> Iterator[dict[str, Any]]:
    if number % 40 == 0:
        yield _envelope("user", number, {"role": "user", "content": f"Step {number}: {_text(rng, 40)}"})
    message = f"msg_{number:08d}"
    signature = base64.b64encode(rng.randbytes(240)).decode()
    yield _assistant(
        message, number, {"type": "thinking", "thinking": _text(rng, 60), "signature": signature}
    )
    yield _assistant(message, number, {"type": "text", "text": _text(rng, 25)})
    call = f"toolu_{number:020d}"
    tool = rng.choice(("Read", "Bash", "Grep", "Edit"))
    arguments = {"file_path": f"/srv/app/src/module_{rng.randrange(200)}.py", "command": _text(rng, 6)}
    yield _assistant(message, number, {"type": "tool_use", "id": call, "name": tool, "input": arguments})
    output = _output(rng)
    result = _envelope(
        "user",
        number,
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call, "content": output}]},
    )
    result["toolUseResult"] = {"stdout": output, "stderr": "", "interrupted": False}
    yield result


def _assistant(message: str, number: int, block: dict[str, Any]) -> dict[str, Any]:
    usage = {"input_tokens": 900, "cache_read_input_tokens": 40_000, "output_tokens": 300}
    return _envelope(
        "assistant",
        number,
        {
            "id": message,
            "type": "message",
            "role": "assistant",
            "model": "claude-sonnet-4-5",
            "content": [block],
            "usage": usage,
        },
    )


def _envelope(kind: str, number: int, message: dict[str, Any]) -> dict[str, Any]:
    seconds = number * 7
    return {
        "parentUuid": None,
        "isSidechain": False,
        "userType": "external",
        "cwd": "/srv/app",
        "sessionId": SESSION,
        "version": "2.1.40",
        "gitBranch": "main",
        "type": kind,
        "message": message,
        "uuid": "",
        "timestamp": (START + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z"),
    }


def _output(rng: random.Random) -> str:
    if rng.random() < 0.3:
        return f"Exit code 0\n{_text(rng, 30)}"
    rows = rng.randrange(20, 220)
    return "\n".join(
        f"{row:5d}→    {_text(rng, 7)} = {rng.randrange(10**6)}  # {_text(rng, 3)}" for row in range(rows)
    )


def _text(rng: random.Random, count: int) -> str:
    return " ".join(rng.choices(WORDS, k=count))


def write(path: Path, megabytes: float, seed: int = 1) -> None:
    """Write a session of about that size."""
    with path.open("wb") as file:
        file.writelines(lines(megabytes, seed))


if __name__ == "__main__":
    write(Path(sys.argv[2]), float(sys.argv[1]))
