"""Long honest texts stay as they are: logs of tests, listings and dumps with the same name on every line."""

from __future__ import annotations

import pytest

from archiver.redact.finder import Finder
from archiver.redact.redactor import Redactor
from tests.redact.conftest import KEY
from tests.redact.support import expand

LINES = [
    "PASS: gas/i386/x86-64-align-branch-{n}c\n",
    "PASS: gdb.base/hbreak2.exp: print it ({n})\n",
    "PASS: binutils-all/x86-64/pr2{n}a\n",
    "--- PASS: TestLogin{n} (0.00s)\n",
    '{{"id": {n}, "password": null}},\n',
    "10.0.0.{n} GET /login?token=${{TOKEN}} 200\n",
    "check {n} Authorization: Bearer $TOKEN\n",
    "    self.token = next(tokens)  # {n}\n",
]


@pytest.mark.parametrize("line", LINES)
def test_the_same_name_on_every_line(finder: Finder, line: str) -> None:
    text = "".join(line.format(n=number) for number in range(3_000))
    assert Redactor(finder, KEY, ()).text(text) == text


def test_a_name_that_is_a_verdict_elsewhere(finder: Finder) -> None:
    secret = expand("{alnum:9}#{alnum:5}8x", 3)
    for text in (
        f"PASS={secret}\n",
        f'"PASS": "{secret}"',
        f"DB_PASS: {secret}\n",
        f"export PASS='{secret}'",
    ):
        assert secret not in Redactor(finder, KEY, ()).text(text)
