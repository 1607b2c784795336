"""The string in which a match ends is found in raw JSON text, or said to be uncertain; never another one."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from archiver.redact.tokens import string_around

_TEXTS = st.text(st.sampled_from('"\\:,[]{} \nab'), max_size=12)
_VALUES: st.SearchStrategy[Any] = st.recursive(
    _TEXTS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_TEXTS, inner, max_size=4)
)


@settings(max_examples=200, deadline=None)
@given(_VALUES, st.booleans())
def test_every_certain_answer_is_the_token_around(value: Any, spaced: bool) -> None:
    text = json.dumps([value], separators=None if spaced else (",", ":")).encode()
    tokens = _tokens(text)
    for end in range(len(text) + 1):
        place = string_around(text, end)
        if place is not None and any(start < end - 1 < stop - 1 for start, stop in tokens):
            assert place in tokens
            assert place[0] < end <= place[1]


def _tokens(text: bytes) -> set[tuple[int, int]]:
    found, start, at = set(), -1, 0
    while at < len(text):
        if start >= 0 and text[at : at + 1] == b"\\":
            at += 1
        elif text[at : at + 1] == b'"':
            if start >= 0:
                found.add((start, at + 1))
            start = at if start < 0 else -1
        at += 1
    return found


def test_escaped_quotes_and_backslashes_do_not_end_a_string() -> None:
    text = b'{"a":"x \\"y\\" \\\\","b":"z"}'
    assert string_around(text, text.index(b"y") + 1) == (5, text.index(b',"b"'))
    assert string_around(text, text.index(b"z") + 1) == (text.index(b'"z'), len(text) - 1)
