"""JSON in and out: what has no JSON form is named, what real transcripts hold survives."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver import jsonio
from archiver.errors import NotSerialisableError

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(VALUES)
def test_what_is_written_reads_back(value: Any) -> None:
    assert jsonio.exact(jsonio.dumps(value)) == value
    assert jsonio.exact(jsonio.canonical(value)) == value


@given(st.dictionaries(st.text(), st.integers()))
def test_canonical_does_not_depend_on_order(value: dict[str, int]) -> None:
    assert jsonio.canonical(value) == jsonio.canonical(dict(reversed(value.items())))


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"a": [1, {"b": math.nan}]}, "$.a[1].b"),
        ({"a": {"x y": math.inf}}, "$.a['x y']"),
        ({"a": object()}, "$.a"),
        ([b"bytes"], "$[0]"),
        ({"a": {1: 2}}, "$.a"),
        ({"a": {1, 2}}, "$.a"),
    ],
)
def test_a_value_without_a_json_form_is_named_by_its_path(value: Any, path: str) -> None:
    for write in (jsonio.dumps, jsonio.canonical):
        with pytest.raises(NotSerialisableError) as caught:
            write(value)
        assert caught.value.path == path


@pytest.mark.parametrize("depth", [300, 600, 950, 5000])
@pytest.mark.parametrize("mapping", [True, False])
def test_deep_nesting_is_refused_not_a_crash(depth: int, mapping: bool) -> None:
    value: Any = object()
    for _ in range(depth):
        value = {"a": value} if mapping else [value]
    for write in (jsonio.dumps, jsonio.canonical, jsonio.pretty):
        with pytest.raises(NotSerialisableError):
            write(value)
    with pytest.raises(ValueError, match="deep"):
        jsonio.loads("[" * 100_000 + "]" * 99_999)


def test_lone_surrogates_and_huge_integers_survive() -> None:
    text = '{"half":"\\ud83d","big":123456789012345678901234567890}'
    value = jsonio.loads(text)
    assert json.loads(jsonio.dumps(value)) == json.loads(text)
    assert json.loads(jsonio.canonical(value)) == json.loads(text)


@pytest.mark.parametrize("text", ["NaN", "[Infinity]", "-Infinity"])
def test_constants_outside_json_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not JSON"):
        jsonio.loads(text)


@pytest.mark.parametrize(
    "text", ["[12345678901234567890123]", '{"a":-18446744073709551616,"b":"\\ud83d"}', "[1]"]
)
def test_integers_of_any_size_stay_whole_where_they_are_written_again(text: str) -> None:
    value = jsonio.exact(text.encode())
    assert value == json.loads(text)
    assert jsonio.again(value).decode() == text


@pytest.mark.parametrize(
    "text",
    [
        f'{{"a":[{"7" * 5000}],"b":1}}',
        f'{{"a":-{"7" * 5000},"b":"\\ud83d"}}',
        "[1e400]",
        '{"a":' * 1100 + "1" + "}" * 1100,
        "[" * 100_000 + "]" * 100_000,
    ],
)
def test_sound_json_without_a_python_value_is_written_as_it_was(text: str) -> None:
    for read in (jsonio.loads, jsonio.exact):
        value = read(text.encode())
        assert jsonio.again(value) == text.encode()
        assert jsonio.dumps({"x": value}) == b'{"x":' + text.encode() + b"}"


TEXTS = VALUES.map(json.dumps) | st.lists(
    st.sampled_from(["{", "}", "[", "]", ",", ":", '"a"', "1", "-", "01", "1.", "1e5", "true", " ", '"\\x"'])
).map("".join)


@given(TEXTS)
def test_soundness_is_that_of_the_decoder(text: str) -> None:
    try:
        json.loads(text)
    except ValueError:
        assert not jsonio.sound(text)
    else:
        assert jsonio.sound(text)


def test_a_held_value_is_written_as_it_is() -> None:
    value = {"z": [1, None, "é\u2028"], "a": {"b": 2.5}}
    assert jsonio.dumps({"held": [jsonio.held(value), 1]}) == jsonio.dumps({"held": [value, 1]})
