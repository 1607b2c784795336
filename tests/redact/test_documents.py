"""Edits of single JSON lines: where they land, and what they leave alone."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest

from archiver.redact.scrub import Scrubber
from archiver.transcripts import get_dialect
from tests.redact.support import expand, lines

TOKEN = expand("ghp_{alnum:36}", 7)
VALUE = expand("{alnum:11}7{alnum:11}4Q", 7)


def _line(scrubber: Scrubber, line: bytes) -> bytes:
    out = lines(scrubber, line + b"\n")
    json.loads(out)
    return out[:-1]


def test_only_the_secret_changes_in_a_touched_line(scrubber: Scrubber) -> None:
    before = (
        rb'{ "a" : "\u00e9\/x", "b": [1.50, 1e2, -0],  "t":"\t\u2028 ' + TOKEN.encode() + rb' \ud800 end\/"}'
    )
    after = _line(scrubber, before)
    head, tail = before.split(TOKEN.encode())
    assert after.startswith(head + b"[REDACTED:github-token:")
    assert after.endswith(b"]" + tail)


def test_untouched_lines_are_copied_byte_for_byte(scrubber: Scrubber) -> None:
    odd = rb'{"z":"\u0041\/", "n": 1.0, "token_count": 12, "max_tokens": 4096}'
    block = odd + b"\n" + json.dumps({"t": TOKEN}).encode() + b"\n" + odd + b"\n"
    first, second, third = lines(scrubber, block).split(b"\n")[:3]
    assert first == third == odd
    assert second != json.dumps({"t": TOKEN}).encode()


@pytest.mark.parametrize(
    "spelling", [rb"\u0067hp_", rb"g\u0068p_", rb"ghp\u005f", rb"ghp\u005F", rb"gh\u0070_"]
)
def test_escaped_letters_hide_nothing(spelling: bytes, scrubber: Scrubber) -> None:
    line = b'{"t":"x ' + spelling + TOKEN[4:].encode() + b' y"}'
    after = _line(scrubber, line)
    assert after.startswith(b'{"t":"x [REDACTED:github-token:')
    assert after.endswith(b'] y"}')


@pytest.mark.parametrize(
    "head",
    [
        rb'{"p\u0061ssword":',
        rb'{"name":"DB_P\u0041SSWORD","value":',
        rb'["\u002d-token",',
        rb'{"v\u0061lue":',
    ],
)
def test_escaped_names_hide_nothing(head: bytes, scrubber: Scrubber) -> None:
    tail = (
        b',"name":"API_KEY"}'
        if b"lue" in head and b"name" not in head
        else b"]"
        if head[:1] == b"["
        else b"}"
    )
    assert VALUE.encode() not in _line(scrubber, head + b'"' + VALUE.encode() + b'"' + tail)


def test_both_of_two_equal_keys_are_judged(scrubber: Scrubber) -> None:
    line = b'{"k":"' + TOKEN.encode() + b'","k":"plain"}'
    assert TOKEN.encode() not in _line(scrubber, line)


def test_keys_are_redacted_too(scrubber: Scrubber) -> None:
    assert next(iter(json.loads(_line(scrubber, json.dumps({TOKEN: 1}).encode())))).startswith("[REDACTED:")


@pytest.mark.parametrize(
    "value",
    [
        {"password": VALUE},
        {"a": {"clientSecret": VALUE}},
        {"secrets": ["x", VALUE]},
        {"name": "DB_PASSWORD", "value": VALUE},
        {"value": VALUE, "name": "DB_PASSWORD"},
        {"headers": [{"name": "Authorization", "value": f"Bearer {VALUE}"}]},
        {"headers": {"x-api-key": VALUE}},
        {"argv": ["mysql", "--password", VALUE, "-h"]},
        {"env": [{"key": "API_TOKEN", "value": VALUE}]},
        {"kind": "Secret", "data": {"conn": base64.b64encode(VALUE.encode()).decode()}},
        {"data": {"conn": base64.b64encode(VALUE.encode()).decode()}, "kind": "Secret"},
        {"auths": {"h": {"auth": base64.b64encode(f"u:{VALUE}".encode()).decode()}}},
    ],
    ids=lambda value: json.dumps(value)[:40],
)
@pytest.mark.parametrize("depth", [0, 2])
def test_structure_gives_secrets_away(value: Any, depth: int, scrubber: Scrubber) -> None:
    secret = VALUE if VALUE in json.dumps(value) else base64.b64encode(VALUE.encode()).decode()
    if secret not in json.dumps(value):
        secret = base64.b64encode(f"u:{VALUE}".encode()).decode()
    for _ in range(depth):
        value = {"arguments": json.dumps(value)}
    after = _line(scrubber, json.dumps(value).encode())
    assert secret.encode() not in after
    assert b"[REDACTED:" in after


@pytest.mark.parametrize(
    "value",
    [
        {"max_tokens": VALUE},
        {"token_type": "bearer0123456789abcdef"},
        {"cache_key": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b"},
        {"id": "toolu_01OWbyOM5QkJY3VZXB2gyuFa", "uuid": "0b6e1c62-8b58-4a08-a4a8-6f1f8c6f2f11"},
        {"commit": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b", "integrity": "sha512-" + "Ab9/" * 21 + "=="},
        {"password": "${DB_PASSWORD}", "token": "<your-token>", "secret": "***", "apiKey": "YOUR_API_KEY"},
        {"password": "process.env.DB_PASSWORD", "token": "getToken()", "secret": "secretName"},
        {"token": "0b6e1c62-8b58-4a08-a4a8-6f1f8c6f2f11", "credentials": "/home/user/.aws/credentials"},
        {"text": 'password == ""; token = null; api_key: string; secret: Secret | None = None'},
        {"name": "password", "value": "required"},
        {"kind": "Secrets", "data": {"a": "aGVsbG8td29ybGQ="}},
        {"csrf_token": VALUE, "next_page_token": VALUE},
    ],
    ids=lambda value: json.dumps(value)[:40],
)
def test_what_only_looks_secret_stays(value: Any, scrubber: Scrubber) -> None:
    line = json.dumps(value).encode()
    assert _line(scrubber, line) == line


def test_opaque_fields_are_spared_from_rules_but_not_from_known_values(
    scrubber: Scrubber, knowing: Callable[..., Scrubber]
) -> None:
    signature = "Er" + TOKEN + "/" + VALUE + "=="
    item = {
        "type": "assistant",
        "uuid": "0b6e1c62-8b58-4a08-a4a8-6f1f8c6f2f11",
        "message": {
            "id": "msg_1",
            "role": "assistant",
            "content": [{"type": "thinking", "thinking": f"I use {TOKEN}", "signature": signature}],
        },
    }
    line = json.dumps(item).encode() + b"\n"
    opaque = get_dialect("claude-code").opaque
    block = json.loads(lines(scrubber, line, opaque))["message"]["content"][0]
    assert block["signature"] == signature
    assert block["thinking"].startswith("I use [REDACTED:github-token:")
    known = json.loads(lines(knowing(VALUE.encode()), line, opaque))["message"]["content"][0]
    assert VALUE not in known["signature"]
    assert known["signature"].startswith(f"Er{TOKEN}/[REDACTED:")


_KNOWN = 'p"ss/Wörd\\9-zq'


@pytest.mark.parametrize(
    "spelling",
    [
        _KNOWN,
        json.dumps(_KNOWN)[1:-1],
        json.dumps(json.dumps(_KNOWN)[1:-1])[1:-1],
        json.dumps(_KNOWN, ensure_ascii=False)[1:-1],
        quote(_KNOWN, safe=""),
        _KNOWN.encode().hex(),
        _KNOWN.encode().hex().upper(),
        *(base64.b64encode(b"x" * shift + _KNOWN.encode() + b"yz").decode() for shift in range(3)),
        *(base64.urlsafe_b64encode(b"?" * shift + _KNOWN.encode() + b"?>").decode() for shift in range(3)),
    ],
)
def test_known_values_are_found_in_every_encoding(spelling: str, knowing: Callable[..., Scrubber]) -> None:
    after = _line(knowing(_KNOWN.encode()), json.dumps({"t": f"a {spelling} b"}).encode())
    shown = json.loads(after)["t"]
    assert "[REDACTED:known-value:" in shown
    assert shown.startswith("a ")
    assert shown.endswith(" b")
    assert len(shown) < len(spelling) + 60
    inner = spelling[4:-4]
    assert inner not in shown


def test_a_known_value_that_joins_an_escape_does_not_break_the_line(knowing: Callable[..., Scrubber]) -> None:
    """`\\nABC…` is a line end and `ABC…`; the letters `nABC…` stand there only by chance."""
    line = rb'{"t":"x\nABCDEF12345","u":"nABCDEF12345"}'
    after = json.loads(_line(knowing(b"nABCDEF12345"), line))
    assert after["t"] == "x\nABCDEF12345"
    assert after["u"].startswith("[REDACTED:")


def test_one_secret_has_one_placeholder_and_another_has_another(scrubber: Scrubber) -> None:
    other = expand("ghp_{alnum:36}", 8)
    after = json.loads(_line(scrubber, json.dumps([TOKEN, f"GH_TOKEN={TOKEN}", other]).encode()))
    assert after[1] == f"GH_TOKEN={after[0]}"
    assert after[2] != after[0]


def test_private_keys_go_whole_however_their_lines_are_broken(scrubber: Scrubber) -> None:
    body = [expand("{b64:64}", seed) for seed in range(5)]
    begin, end = "-----BEGIN RSA " + "PRIVATE KEY-----", "-----END RSA " + "PRIVATE KEY-----"
    plain = "\n".join([begin, *body, end])
    numbered = "\n".join(f"{n:6}\u2192{text}" for n, text in enumerate([begin, *body, end], 1))
    quoted = "\n".join(f'+    "{text}\\n"' for text in [begin, *body, end])
    for text in (plain, plain.replace("\n", "\\n"), numbered, quoted, "\n".join([begin, *body])):
        after = json.loads(_line(scrubber, json.dumps({"t": f"key: {text}\nrest of it"}).encode()))["t"]
        assert not [line for line in body if line in after], text
        assert after.endswith("rest of it")
    fingerprints = {finding.fingerprint for finding in scrubber._ledger.findings()}
    assert len(fingerprints) <= 4


def test_a_string_in_a_number_of_trigger_words_is_redacted_not_skipped(scrubber: Scrubber) -> None:
    line = json.dumps({"t": "password: " * 50_000 + TOKEN}).encode()
    assert TOKEN.encode() not in _line(scrubber, line)
