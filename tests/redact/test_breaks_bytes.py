"""Whatever bytes a text consists of, it is redacted: no error of another kind, no broken character."""

from __future__ import annotations

import json

import pytest

from archiver.redact.finder import Finder
from archiver.redact.redactor import Redactor
from tests.redact.conftest import KEY
from tests.redact.support import expand, lines


@pytest.fixture
def redactor(finder: Finder) -> Redactor:
    return Redactor(finder, KEY, ())


@pytest.mark.parametrize("broken", [r"\q", r"\u12", "\t", "\x01", "\\\\\\"])
def test_a_text_with_records_whose_strings_are_broken(redactor: Redactor, broken: str) -> None:
    secret = expand("ghp_{alnum:36}", 3)
    record = '{"type":"content_block_delta","delta":{"text":"%s"}}'
    text = "\n".join((record % f"\\n{broken}", record % secret[:20], record % secret[20:]))
    assert secret[4:20] not in redactor.text(text)
    line = json.dumps({"type": "x", "text": text}).encode() + b"\n"
    assert secret[4:20].encode() not in lines(redactor._scrubber, line)
