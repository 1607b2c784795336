"""A text that holds JSON is not JSON: its strings are read as such where escapes hide a secret."""

from __future__ import annotations

import json
import time

import pytest

from archiver.redact.exact import ExactMatcher
from archiver.redact.finder import Finder
from archiver.redact.ledger import Ledger
from archiver.redact.quoted import quoted
from archiver.redact.scrub import Scrubber
from tests.redact.conftest import KEY
from tests.redact.support import expand, lines

SECRET = expand("ghp_{alnum:36}", 11)


def _rows(text: str) -> str:
    data = text.encode()
    return "\n".join(
        f"{at:08x}  {data[at : at + 16].hex(' '):<48} |{data[at : at + 16].decode()}|"
        for at in range(0, len(data), 16)
    )


@pytest.mark.parametrize(
    "inside",
    [
        f"{SECRET[:12]}\x1b[1;32m{SECRET[12:]}",
        f"{SECRET[:12]}\u200b{SECRET[12:]}",
        "x\n" + _rows(f"GITHUB_TOKEN={SECRET}") + "\n",
    ],
)
@pytest.mark.parametrize("around", ["result: {} done", 'a 5" wide one\n{}\n{{"x": 1}}\n', "{}\n{}"])
def test_a_session_that_a_command_printed(finder: Finder, inside: str, around: str) -> None:
    printed = json.dumps({"a": "b", "content": inside})
    value = {"type": "text", "text": around.format(printed, printed)}
    line = json.dumps(value).encode() + b"\n"
    scrubber = Scrubber(finder, ExactMatcher(()), Ledger(KEY))
    made = lines(scrubber, line)
    shown = json.loads(made)["text"]
    assert SECRET[12:] not in shown
    assert SECRET[14:30].encode().hex(" ") not in shown
    assert "[REDACTED:" in shown
    assert lines(Scrubber(finder, ExactMatcher(()), Ledger(KEY)), made) == made


def test_strings_are_found_by_what_stands_around_a_trigger() -> None:
    data = rb'it is 5" wide: {"a": "one \u001b two", "b": "three"} and "four'
    end = data.index(b" two")
    assert list(quoted(data, [end])) == [(data.index(rb'"one'), rb'"one \u001b two"')]
    assert list(quoted(data, [3, len(data)])) == []


@pytest.mark.parametrize("piece", ['"\\u001b', '\\"', '"', '"a\\u001bb"'])
def test_work_is_linear(piece: str) -> None:
    data = (piece * (200_000 // len(piece))).encode()
    started = time.process_time()
    for _ in quoted(data, range(7, len(data), 7)):
        pass
    assert time.process_time() - started < 5
