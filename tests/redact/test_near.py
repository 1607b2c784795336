"""A provider's word gives a value away where it is that word, close by, and where access is spoken of."""

from __future__ import annotations

import random

import pytest

from archiver.redact.finder import Finder
from archiver.redact.forms import Form
from tests.redact.support import expand

HEX = "{hex:32}"


def _kinds(finder: Finder, text: str) -> list[str]:
    return [finder.rules.rules[span.rule].kind for span in finder.find(text.encode())]


@pytest.mark.parametrize(
    "text",
    [
        "ibm platform key: f{url:42}7",
        "myIbmKey: f{url:42}7",
        "the Line token is {hex:32}",
        'GEOAPIFY_TOKEN\\n\\t= \\\\"{hex:32}\\\\"',
        "Geoapify:\n    access: private\n    value of the key >>> {hex:32}",
        "everhour={hex:4}-{hex:4}-{hex:6}-{hex:6}-{hex:8}",
        "asana_pat = 1/{digit:16}:{hex:32}",
    ],
)
def test_a_word_of_a_provider_gives_its_value_away(finder: Finder, text: str) -> None:
    assert _kinds(finder, expand(text))


@pytest.mark.parametrize(
    "text",
    [
        "pipeline secret {hex:32}",
        "add app version key {hex:32}",
        "libmount key {hex:44}",
        "geoapify was built from {hex:32}",
        "geoapify" + " and more words" * 6 + " key {hex:32}",
        "geoapify key {alpha:8}",
        "claude-opus-4-5-20251101 in geoapify-0123-4567-build",
        "geoapify token YOUR_API_TOKEN_GOES_IN_HERE_32CHAR",
        "geoapify_key = 00000000000000000000000000000000",
    ],
)
def test_a_value_is_left_alone_where_the_word_does_not_speak_of_it(finder: Finder, text: str) -> None:
    found = [finder.rules.rules[span.rule] for span in finder.find(expand(text).encode())]
    assert [rule.id for rule in found if rule.near] == []


def test_a_value_is_found_behind_quotes_that_were_escaped_often(finder: Finder) -> None:
    value = Form.parse(HEX).sample(random.Random(3))
    for depth in range(5):
        quote = "\\" * (2**depth - 1) + '"'
        text = f"geoapify_api_key{quote}: {quote}{value}{quote}"
        assert _kinds(finder, text) == ["geoapify-key"], depth
