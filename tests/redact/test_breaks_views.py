"""What is encoded is found wherever it stands in a text, at its very beginning too."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from archiver.redact.finder import Finder
from archiver.redact.redactor import Redactor
from tests.redact.conftest import KEY
from tests.redact.support import expand, lines

FORMS: dict[str, Callable[[str], str]] = {
    "hex": lambda text: text.encode().hex(),
    "HEX": lambda text: text.encode().hex().upper(),
    "percent": lambda text: "".join(f"%{byte:02X}" for byte in text.encode()),
    "escapes": lambda text: "".join(f"\\x{byte:02x}" for byte in text.encode()),
}


@pytest.mark.parametrize("before", ["", " ", "=", "\n", "\x1b[0m"])
@pytest.mark.parametrize("form", FORMS)
def test_at_the_beginning(finder: Finder, form: str, before: str) -> None:
    text = before + FORMS[form](expand("ghp_{alnum:36}", 7))
    assert text[20:40] not in Redactor(finder, KEY, ()).text(text)
    for value in ({"a": text}, {text: 1}, {"a": json.dumps({"b": text})}):
        made = lines(Redactor(finder, KEY, ())._scrubber, json.dumps(value).encode() + b"\n")
        assert text[20:40] not in json.loads(made).__str__().replace("\\\\", "\\")


@pytest.mark.parametrize(
    "code", [0xAD, 0x61C, 0x200B, 0x200F, 0x202A, 0x202E, 0x2060, 0x2066, 0x2069, 0xFEFF]
)
def test_split_by_a_character_that_nobody_sees(finder: Finder, code: int) -> None:
    secret = expand("ghp_{alnum:36}", 8)
    text = f"key {secret[:14]}{chr(code)}{secret[14:]} it"
    assert secret[14:] not in Redactor(finder, KEY, ()).text(text)
    for ascii_only in (True, False):
        for value in ({"a": text}, {"a": json.dumps({"b": text}, ensure_ascii=ascii_only)}):
            line = json.dumps(value, ensure_ascii=ascii_only).encode() + b"\n"
            assert secret[14:].encode() not in lines(Redactor(finder, KEY, ())._scrubber, line)
