"""Nothing that steers a terminal gets through, and nothing readable gets lost."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver import jsonio
from archiver.cli.text import safe_json, safe_lines, safe_text, size

ATTACKS = {
    "colour": "\x1b[31mred\x1b[0m",
    "clear screen": "\x1b[2J\x1b[H",
    "window title (OSC 0)": "\x1b]0;owned\x07",
    "hyperlink (OSC 8)": "\x1b]8;;https://example.org\x1b\\click\x1b]8;;\x1b\\",
    "clipboard (OSC 52)": "\x1b]52;c;cm0gLXJmIH4=\x07",
    "device status report": "\x1b[6n",
    "DCS": "\x1bP$q\x1b\\",
    "C1 CSI": "\x9b31m",
    "C1 OSC and ST": "\x9d0;owned\x9c",
    "C1 DCS": "\x90q\x9c",
    "NEL": "one\x85two",
    "carriage return": "good\rbad",
    "backspace": "rm\x08\x08ls",
    "delete": "a\x7fb",
    "NUL": "a\0b",
    "bell": "\a",
    "form feed and vertical tab": "a\f\vb",
    "bidi override": "user\u202etxt.exe",
    "bidi isolates": "\u2066a\u2069\u2067b\u2068c",
    "bidi marks": "\u200e\u200f\u061c",
    "zero width": "pass\u200bword\u200c\u200d\u2060\ufeff",
    "line and paragraph separator": "a\u2028b\u2029c",
    "tag characters": "a\U000e0041\U000e007f",
    "interlinear annotation": "\ufff9a\ufffab\ufffb",
    "soft hyphen": "pay\u00adpal",
    "lone surrogate": "\ud800",
    "private use": "\ue000\U0010ffff",
    "unassigned": "\U000e01f0\u0378",
}
_TEXT = st.text(st.characters(codec=None))
_STEERING = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def steering(text: str) -> list[str]:
    return [character for character in text if unicodedata.category(character) in _STEERING]


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS.keys())
def test_attacks_become_visible(attack: str) -> None:
    shown = safe_text(attack)
    assert not steering(shown)
    assert "\\" in shown
    assert shown.encode()  # a lone surrogate could not be written at all


@given(_TEXT)
def test_any_text_is_one_harmless_line(text: str) -> None:
    shown = safe_text(text)
    assert not steering(shown)
    assert len(shown.splitlines()) <= 1
    assert safe_text(shown) == shown


@given(st.text(st.characters(exclude_categories=["C", "Zl", "Zp"])))
def test_harmless_text_stays_as_it_is(text: str) -> None:
    assert safe_text(text) == text


def test_two_texts_never_look_the_same_because_of_escaping() -> None:
    assert safe_text("a\x1bb") != safe_text("ab")
    assert safe_text("a\u202eb") != safe_text("ab")


def test_line_ends() -> None:
    assert "\n" not in safe_text("a\nb")
    assert safe_lines("a\nb\x1b\n") == ["a", "b\\x1b", ""]


@given(st.recursive(_TEXT, lambda s: st.dictionaries(_TEXT, s) | st.lists(s)))
def test_json_means_the_same_and_is_harmless(value: object) -> None:
    for raw in (jsonio.dumps(value), jsonio.pretty(value)):
        shown = safe_json(raw.decode())
        assert json.loads(shown) == json.loads(raw)
        assert not [character for character in steering(shown) if character != "\n"]


def test_json_stays_readable() -> None:
    assert safe_json('{"name": "Grüße 日本 🙂"}') == '{"name": "Grüße 日本 🙂"}'
    assert safe_json(json.dumps("\u009b", ensure_ascii=False)) == '"\\u009b"'
    assert safe_json(json.dumps("\U000e0041", ensure_ascii=False)) == '"\\udb40\\udc41"'


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (9_949, "9.9 kB"),
        (9_950, "10 kB"),
        (123_456, "123 kB"),
        (999_499, "999 kB"),
        (999_500, "1.0 MB"),
        (5 * 10**9, "5.0 GB"),
        (7 * 10**15, "7000 TB"),
    ],
)
def test_size(count: int, words: str) -> None:
    assert size(count) == words
