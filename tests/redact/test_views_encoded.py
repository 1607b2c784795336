"""Secrets in base64, hex, dumps, percent-encoding and escapes that were written out."""

from __future__ import annotations

import base64
import gc
import json
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from archiver.redact.exact import ExactMatcher
from archiver.redact.finder import Finder
from archiver.redact.ledger import Ledger
from archiver.redact.scrub import Scrubber
from tests.redact.conftest import KEY
from tests.redact.support import expand, lines

SETTINGS = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
TOKENS = ["ghp_{alnum:36}", "glpat-{alnum:20}", "npm_{alnum:36}"]
CONTEXTS = ["A=1\nGITHUB_TOKEN={}\nB=2\n", '{{"api_key": "{}", "x": 1}}', "Authorization: Bearer {}\n"]


def _wrap(text: str, width: int = 64, end: str = "\n") -> str:
    return end.join(text[at : at + width] for at in range(0, len(text), width))


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _url_safe(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _xxd(text: str) -> str:
    data = text.encode()
    rows = []
    for at in range(0, len(data), 16):
        row = data[at : at + 16]
        pairs = " ".join(row[i : i + 2].hex() for i in range(0, len(row), 2))
        shown = "".join(chr(c) if 32 <= c < 127 else "." for c in row)
        rows.append(f"{at:08x}: {pairs:<39}  {shown}")
    return "\n".join(rows) + "\n"


def _hexdump(text: str) -> str:
    data = text.encode()
    rows = []
    for at in range(0, len(data), 16):
        row = data[at : at + 16]
        pairs = f"{row[:8].hex(' ')}  {row[8:].hex(' ')}"
        shown = "".join(chr(c) if 32 <= c < 127 else "." for c in row)
        rows.append(f"{at:08x}  {pairs:<48}  |{shown}|")
    return "\n".join(rows) + "\n"


ENCODINGS: dict[str, Callable[[str], str]] = {
    "base64": _base64,
    "url-safe": _url_safe,
    "base64 at 64": lambda text: _wrap(_base64(text)),
    "base64 at 76": lambda text: _wrap(_base64(text), 76, "\r\n"),
    "data url": lambda text: "data:text/plain;base64," + _base64(text),
    "base64 twice": lambda text: _base64(_base64(text)),
    "base64 three times": lambda text: _base64(_base64(_base64(text))),
    "percent": lambda text: quote(text, safe=""),
    "percent twice": lambda text: quote(quote(text, safe=""), safe=""),
    "all percent": lambda text: "".join(f"%{c:02x}" for c in text.encode()),
    "hex": lambda text: text.encode().hex(),
    "hex at 60": lambda text: _wrap(text.encode().hex(), 60),
    "bytes": lambda text: "".join(f"\\x{c:02x}" for c in text.encode()),
    "unicode": lambda text: "".join(f"\\u{c:04x}" for c in text.encode()),
    "xxd": _xxd,
    "hexdump": _hexdump,
    "percent of base64": lambda text: quote(_base64(text), safe=""),
}


def _scrubber(finder: Finder, *known: bytes) -> Scrubber:
    return Scrubber(finder, ExactMatcher(known), Ledger(KEY))


@pytest.mark.parametrize("name", ENCODINGS)
@pytest.mark.parametrize("depth", [0, 1, 2])
def test_an_encoded_secret_leaves_and_all_around_it_stays(finder: Finder, name: str, depth: int) -> None:
    for seed, context in enumerate(CONTEXTS):
        secret = expand(TOKENS[seed], seed)
        encoded = ENCODINGS[name](context.format(secret))
        value: Any = {"text": f"before\n{encoded}\nafter"}
        for _ in range(depth):
            value = {"inner": json.dumps(value)}
        output = lines(_scrubber(finder), json.dumps(value).encode() + b"\n")
        for _ in range(depth + 1):
            value = json.loads(output if isinstance(value, dict) and output else value["inner"])
            output = value["inner"].encode() if "inner" in value else b""
        text = value["text"]
        assert "[REDACTED:" in text
        assert secret[8:20] not in text
        assert text.startswith("before\n")
        assert text.endswith("after")


@SETTINGS
@given(st.sampled_from(sorted(ENCODINGS)), st.sampled_from(TOKENS), st.integers(0, 1 << 20))
def test_the_replaced_bytes_say_the_secret_and_nothing_more_is_found(
    finder: Finder, name: str, template: str, seed: int
) -> None:
    secret = expand(template, seed)
    data = f"one\n{ENCODINGS[name](f'A_TOKEN={secret} x')}\ntwo\n".encode()
    scrubber = _scrubber(finder)
    edits = scrubber.text_edits(data)
    assert len(edits) == 1
    assert edits[0].value == secret.encode() or name == "base64 three times"
    once = scrubber.text(data, "here")
    assert once.startswith(b"one\n")
    assert once.endswith(b"two\n")
    assert _scrubber(finder).text(once, "here") == once


@pytest.mark.parametrize("encode", [str, _base64, lambda text: text.encode().hex()])
def test_a_bare_token_leaves_where_it_is_all_that_is_encoded(
    finder: Finder, encode: Callable[[str], str]
) -> None:
    bare = expand("{lownum:10}4{upnum:8}7{lownum:12}", 5)
    encoded = encode(bare)
    data = f"payload {encoded}\n".encode()
    assert (encoded.encode() in _scrubber(finder).text(data, "here")) == (encode is str)


def test_a_key_in_base64_leaves_with_its_frame(finder: Finder) -> None:
    body = "\n".join(expand("MII{b64:61}", seed) for seed in range(5))
    pem = f"-----BEGIN RSA PRIVATE KEY-----\n{body}\n-----END RSA PRIVATE KEY-----\n"
    for text in (pem, pem[:200]):
        for encode in (_base64, lambda text: _wrap(_base64(text), 76), lambda text: text.encode().hex()):
            data = f"key: {encode(text)}\n".encode()
            output = _scrubber(finder).text(data, "here")
            assert output.startswith(b"key: [REDACTED:"), encode
            assert len(output) < 60


def test_an_environment_in_base64_leaves_all_its_secrets(finder: Finder) -> None:
    first, second = expand("ghp_{alnum:36}", 3), expand("{alnum:14}7aB", 4)
    environment = f"GITHUB_TOKEN={first}\0LANG=C\0DB_PASSWORD={second}\0"
    scrubber = Scrubber(finder, ExactMatcher(()), Ledger(KEY))
    for text in (_base64(environment), environment.encode().hex()):
        shown = scrubber.text(f"cat environ: {text} end".encode(), "here").decode()
        assert _base64(second)[4:16] not in shown
        assert first.encode().hex()[8:24] not in shown
        assert second.encode().hex()[8:24] not in shown
        assert "REDACTED" in shown


def test_images_hashes_and_signatures_stay(finder: Finder) -> None:
    rows = [
        "data:image/png;base64," + expand("iVBORw0KGgo{b64:4000}", 1),
        "sha512-" + expand("{b64:86}==", 2),
        expand("{hex:40} {hex:64} {uuid}", 3),
        '"signature": "' + expand("Er{b64:600}==", 4) + '"',
        "MDQ6VXNlcjM1MTkzNA==",
        "a%20b%2Fc https://x.test/?q=a%20b&r=%2Ftmp",
        _base64("the quick brown fox jumps over the lazy dog"),
        b"the quick brown fox jumps over the lazy dog".hex(),
        _xxd("the quick brown fox jumps over the lazy dog"),
    ]
    data = "\n".join(rows).encode()
    assert _scrubber(finder).text(data, "here") == data


@pytest.mark.parametrize(
    "piece",
    [
        "%41",
        "68656c6c6f20776f726c642068656c6c6f20 ",
        "ghp_abcdefgh\nabcd",
        *(pytest.param(piece, marks=pytest.mark.soak) for piece in ("x%3D ", "\\x41", "\\u0041")),
    ],
)
def test_work_is_linear(finder: Finder, piece: str) -> None:
    def took(size: int) -> float:
        data = (piece * (size // len(piece))).encode()
        spent = []
        for _ in range(2):
            gc.collect()  # the collector goes through all that other tests left
            start = time.process_time()
            _scrubber(finder).text_edits(data)
            spent.append(time.process_time() - start)
        return min(spent)

    gc.disable()
    try:
        assert took(400_000) < 12 * took(100_000) + 0.05
    finally:
        gc.enable()
