"""Credentials made at run time, and files that hold them in every form that a scan looks into."""

from __future__ import annotations

import gzip
import json
import random
import string
import subprocess
import sys
from pathlib import Path
from typing import Any

from inside import command

BIN = Path(sys.executable).parent
SEAL = "".join(random.Random(5).choices(string.ascii_letters + string.digits, k=400)) + "=="


def token(seed: int = 1) -> str:
    """What a rule knows by its own characters."""
    return "ghp_" + "".join(random.Random(seed).choices(string.ascii_letters + string.digits, k=36))


def opaque(seed: int = 2) -> str:
    """What nothing knows but the name it is assigned to."""
    rng = random.Random(seed)
    return "q7W" + "".join(rng.choices(string.ascii_letters + string.digits, k=21))


def line(number: int, content: Any, role: str = "user") -> str:
    """A line of a Claude Code session."""
    return json.dumps(
        {
            "type": role, "uuid": str(number), "parentUuid": str(number - 1) if number else None,
            "sessionId": "s-1", "message": {"role": role, "content": content},
        }
    )  # fmt: skip


def session(secret: str, bare: str) -> str:
    """A session with a seal of its provider, a credential and one that only its name gives away."""
    thinking = [{"type": "thinking", "thinking": f"I use {secret}", "signature": SEAL}]
    return "\n".join(
        (line(0, f"use {bare}"), line(1, thinking, "assistant"), line(2, f"DB_PASSWORD={bare}"), "")
    )


def body(secret: str) -> str:
    """A request to the Messages API, as somebody pretty-printed it."""
    seal = {"type": "thinking", "thinking": "hm", "signature": SEAL}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "ok"}
    call = {"type": "tool_use", "id": "toolu_1", "name": "run", "input": {"command": f"x {secret}"}}
    return json.dumps(
        {
            "model": "claude-x",
            "system": f"the key is {secret}",
            "messages": [
                {"role": "user", "content": "go"},
                {"role": "assistant", "content": [seal, call]},
                {"role": "user", "content": [result]},
            ],
        },
        indent=2,
    )  # fmt: skip


def fill(folder: Path, secret: str, bare: str) -> dict[str, bytes]:
    """Files of each form below a folder; gives what is in them."""
    files = {
        "s.jsonl": session(secret, bare).encode(),
        "body.json": body(secret).encode(),
        "crlf.txt": f"one\r\nexport GITHUB_TOKEN={secret}\r\nend without a line end".encode(),
        "bare.txt": f"only {bare} here\n".encode(),
        "deep/er/doc.json": json.dumps({"a": {"b": [bare, {"c": "é\u2028"}]}}, indent=3).encode(),
        "torn.jsonl": (session(secret, bare) + line(3, secret)[:-2]).encode() + b"\0" * 100,
        "plain.bin": bytes(range(256)) * 10,
    }
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return files


def packed(secret: str) -> bytes:
    return gzip.compress(f"token {secret}".encode())


def run(*arguments: object, given: bytes | None = None, **options: Any) -> subprocess.CompletedProcess[bytes]:
    """What the program does: the real one where it is given something to read, or options of a process."""
    words = [str(BIN / "archiver"), *map(str, arguments)]
    if given is not None or options:
        return subprocess.run(words, input=given, capture_output=True, timeout=120, **options)
    done = command(*words[1:])
    out, err = (text.encode("utf-8", "backslashreplace") for text in (done.out, done.err))
    return subprocess.CompletedProcess(words, done.code, out, err)
