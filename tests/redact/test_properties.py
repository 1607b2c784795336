"""Properties of redaction over generated JSON lines and texts."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from archiver.redact import contains_placeholder
from archiver.redact.exact import ExactMatcher
from archiver.redact.finder import Finder
from archiver.redact.ledger import Ledger
from archiver.redact.scrub import Scrubber
from tests.redact.conftest import KEY
from tests.redact.generate import CONTEXTS, SECRETS, spell, texts, values
from tests.redact.support import expand, lines, readable

SETTINGS = settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))


def _scrubber(finder: Finder, **options: Any) -> Scrubber:
    return Scrubber(finder, ExactMatcher(()), Ledger(KEY), **options)


@SETTINGS
@given(st.lists(st.tuples(values(), st.integers(0, 1 << 30)), min_size=1, max_size=4))
def test_the_fast_path_finds_what_the_slow_path_finds(finder: Finder, found: list[tuple[Any, int]]) -> None:
    block = b"".join(spell(value, seed) + b"\n" for value, seed in found)
    assert lines(_scrubber(finder), block) == lines(_scrubber(finder, decode_all=True), block)


@SETTINGS
@given(values(), st.integers(0, 1 << 30))
def test_lines_stay_json_and_redaction_is_idempotent(finder: Finder, value: Any, seed: int) -> None:
    block = spell(value, seed) + b"\n"
    once = lines(_scrubber(finder), block)
    assert once.count(b"\n") == 1
    parsed = json.loads(once)
    assert _shape(parsed) == _shape(json.loads(block))
    assert lines(_scrubber(finder), once) == once
    if not contains_placeholder(parsed):
        assert once == block


def _shape(value: Any) -> Any:
    if isinstance(value, dict):
        return [_shape(item) for item in value.values()]
    if isinstance(value, list):
        return list(map(_shape, value))
    return type(value)


@SETTINGS
@given(
    st.sampled_from(SECRETS),
    st.integers(0, 1 << 30),
    st.sampled_from(["{}", "x {} y", "a\n{}\n", "→{}", "\x1b[31m{}\x1b[0m", "A={}", '"{}"', "é{}é"]),
    st.integers(0, 3),
)
def test_a_planted_secret_survives_in_no_view(
    finder: Finder, template: str, seed: int, around: str, depth: int
) -> None:
    secret = expand(template, seed)
    value: Any = {"text": [around.format(secret)], around.format(secret): 1}
    for _ in range(depth):
        value = {"inner": json.dumps(value)}
    output = lines(_scrubber(finder), spell(value, seed) + b"\n")
    assert secret not in readable(output)


@SETTINGS
@given(st.sampled_from(CONTEXTS), st.integers(0, 1 << 30), st.integers(0, 2))
def test_a_secret_known_by_context_survives_in_no_view(
    finder: Finder, context: str, seed: int, depth: int
) -> None:
    secret = expand("{lownum:8}4{upnum:6}7{lownum:6}2Q", seed)
    value: Any = {"text": "first\n" + context.format(secret)}
    for _ in range(depth):
        value = [json.dumps(value)]
    output = lines(_scrubber(finder), spell(value, seed) + b"\n")
    assert secret not in readable(output)


@SETTINGS
@given(texts())
def test_text_is_idempotent(finder: Finder, text: str) -> None:
    data = text.encode("utf-8", "surrogatepass")
    once = _scrubber(finder).text(data, "here")
    assert _scrubber(finder).text(once, "here") == once
    if b"[REDACTED:" not in once:
        assert once == data


@SETTINGS
@given(
    st.one_of(
        st.binary(max_size=300),
        st.lists(
            st.sampled_from(
                [
                    b"password: ",
                    b"-----BEGIN PRIVATE KEY-----",
                    b'"',
                    b"\\",
                    b"eyJ",
                    b"://",
                    b"@",
                    b"\0",
                    b"\xff",
                    b"token=",
                    b"ghp_",
                ]
            ),
            max_size=40,
        ).map(b"".join),
    )
)
def test_arbitrary_bytes_never_crash_it(finder: Finder, data: bytes) -> None:
    _scrubber(finder).text(data, "here")
