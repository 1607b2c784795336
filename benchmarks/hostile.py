"""Inputs made to be slow or large for redaction, and the memory that one takes."""

from __future__ import annotations

import base64
import json
import os
import random
import resource
import string
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

_ALNUM = string.ascii_letters + string.digits
_LINE = 1_000
_LONGEST = 16_000_000
"""Bytes of a line; readers take no longer ones than 16 MiB."""


def rng_of(seed: int) -> random.Random:
    """Numbers for filler, the same ones every time."""
    return random.Random(seed)  # noqa: S311 - a benchmark's filler


def secret(rng: random.Random) -> str:
    """A value in the format of a provider's token; made here, so that no scanner trips over this file."""
    return "gh" + "o_" + "".join(rng.choices(_ALNUM, k=36))


def _nested(size: int) -> bytes:
    value: Any = "password: x"
    while True:
        made = json.dumps({"a": value}).encode()
        if len(made) > 20_000:
            return made * (size // len(made))
        value = made.decode()


def _base64s(size: int) -> bytes:
    data = rng_of(3).randbytes(size // 3)
    while len(data) < size:
        data = base64.b64encode(data)
    return data[:size]


def _dense(size: int) -> bytes:
    rng = rng_of(5)
    return "".join(f"K{n}_TOKEN={secret(rng)}\n" for n in range(size // 55)).encode()


def _encoded(size: int) -> Iterator[tuple[str, bytes]]:
    """Texts full of small pieces that are decoded, or joined, before they are looked at."""
    rng = rng_of(11)

    def words() -> bytes:
        return "".join(rng.choices(string.ascii_lowercase + " ", k=24)).encode()

    def filled(make: Callable[[], bytes]) -> bytes:
        made = bytearray()
        while len(made) < size:
            made += make()
        return bytes(made)

    yield "runs of base64", filled(lambda: base64.b64encode(words() + b"x") + b" ")
    yield "runs of hex", filled(lambda: words().hex().encode() + b" ")
    yield "'x%3D'", b"x%3D" * (size // 4)
    yield "'%2541'", b"%2541" * (size // 5)
    head = "gh" + "p_"
    yield "wrapped tokens", filled(lambda: b"%-30.30s%s\n%s\n" % (words(), head.encode(), words()))
    rows = (
        f"{at:08x}: {rng.randbytes(16).hex(' ', 2)}  ................\n" for at in range(0, size // 4, 16)
    )
    yield "dumps", "".join(rows).encode()[:size]
    delta = json.dumps({"type": "content_block_delta", "index": 0, "delta": {"text": "word "}}) + "\n"
    yield "deltas of a stream", delta.encode() * (size // len(delta))


def inputs(size: int) -> Iterator[tuple[str, bytes]]:
    """A name and a text of about `size` bytes."""
    rng = rng_of(9)
    repeated = (
        *("password: ", "Bearer ", "token=", "eyJ.", "-----BEGIN PRIVATE KEY-----\n", "%41", "4a", "\\u0061"),
        *("://a:b@", '"key":', "\x1b[31m", "okta key ", "'\"`", "AKIA", "[REDACTED:", "kind: Secret\n", "=="),
        *('{"password":"', "-u a:b", "cookie: a=", "\u200b", '\\\\"', "Basic ", "secret\\n", "&sig=", "ghp_"),
    )
    for text in repeated:
        data = text.encode()
        yield repr(text), data * (size // len(data))
    yield "nested JSON", _nested(size)
    yield "base64 of base64", _base64s(size)
    wrapped = base64.b64encode(rng.randbytes(size * 3 // 4))
    yield "wraps at 76", b"\n".join(wrapped[at : at + 76] for at in range(0, len(wrapped), 76))
    yield "hex", rng.randbytes(size // 2).hex().encode()
    yield "words of providers", ("stripe token okta_key github secret=x " * (size // 38)).encode()
    yield "password=word ", b"password=value " * (size // 15)
    yield "a secret every 55 bytes", _dense(size)
    yield from _encoded(size)
    yield "passwords", "".join(f"password=aB{n}x!9qz " for n in range(size // 22)).encode()


def one_leaf(text: bytes) -> bytes:
    """One JSON line whose only value is the text."""
    return json.dumps({"text": text.decode("utf-8", "replace")}, ensure_ascii=False).encode() + b"\n"


def many_leaves(text: bytes) -> bytes:
    """JSON lines of ten values each that hold the text in pieces."""
    shown = text.decode("utf-8", "replace")
    pieces = [shown[at : at + _LINE // 10] for at in range(0, len(shown), _LINE // 10)]
    rows = (pieces[at : at + 10] for at in range(0, len(pieces), 10))
    return b"".join(json.dumps({"text": row}, ensure_ascii=False).encode() + b"\n" for row in rows)


def peak(kind: str, megabytes: int, load: Callable[[], Any]) -> None:
    """Print how much one redaction takes in this process over what it held before, in MB."""
    from archiver.redact import Redactor
    from archiver.scratch import Scratch
    from archiver.transcripts.reader import read

    finder = load()
    with tempfile.TemporaryDirectory(prefix="archiver-bench-") as folder:
        path = Path(folder) / ("text.log" if kind == "text" else "session.jsonl")
        if os.fork() == 0:  # what makes the file does not count
            _write(path, kind, megabytes)
            os._exit(0)
        os.wait()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        with Scratch() as scratch:
            Redactor(finder, bytes(32), ()).transcript(read([path]).transcript, scratch)
    print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)


def _write(path: Path, kind: str, megabytes: int) -> None:
    import generate

    size = megabytes * 1_000_000
    start = next(iter(generate.lines(0.001))).replace(b"\n", b"")
    with path.open("wb") as file:
        if kind == "session":
            file.writelines(generate.lines(megabytes))
        elif kind in ("long lines", "long leaves"):
            file.writelines(generate.lines(0.1))  # so that it is known for a session
            long = min(size, _LONGEST)
            each, count = (1_000, long // 1_005) if kind == "long lines" else (long, 1)
            values = ["word " * (each // 5)] * count
            line = start[:-1] + b',"more":' + json.dumps(values).encode() + b"}\n"
            file.writelines([line] * (size // long))
        elif kind == "text":
            file.writelines(b"plain text without an end, line %d\n" % n for n in range(size // 40))
        else:
            rng = rng_of(2)
            for number in range(size // 500):
                more = json.dumps([secret(rng) if number % 4 == 0 else "word", "w " * 100]).encode()
                file.write(start[:-1] + b',"more":' + more + b"}\n")
