"""A first look at long strings misses nothing that a whole reading of them finds."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from archiver.model import Items, Transcript, TranscriptPart
from archiver.redact.exact import ExactMatcher
from archiver.redact.finder import Finder
from archiver.redact.ledger import Ledger
from archiver.redact.redactor import Redactor
from archiver.redact.scrub import Scrubber
from archiver.redact.views import readings, views
from archiver.scratch import Scratch
from tests.redact.conftest import KEY
from tests.redact.generate import CONTEXTS, SECRETS, VALUES, spell
from tests.redact.support import expand, lines

_CODE = (
    'if err := run("a", \'b\'); err != nil {{\n\treturn fmt.Errorf("%w: {}", err)\n}}\n',
    '   {}→    pass: ["*/*"], token,\n',
    "--- PASS: TestSession{}\nmax_tokens: {}, // “{}” is no key — é\n",
    'C:\\Users\\name\\{} and {{"usage": {{"input_tokens": {}}}}}\n',
)
_SPELLED = ("{}", "x {} y", "\n{}\n", '"{}"', "→{}", "'{}',", "\x1b[31m{}\x1b[0m")


def _long_text(rng: random.Random, size: int) -> str:
    made: list[str] = []
    while sum(map(len, made)) < size:
        made.append(
            rng.choice(_CODE).replace("{}", str(rng.randrange(10_000))).replace("{{", "{").replace("}}", "}")
        )
    return "".join(made)


def _secret(rng: random.Random) -> str:
    seed = rng.randrange(1 << 30)
    if rng.random() < 0.5:
        return expand(rng.choice(SECRETS), seed)
    return rng.choice(CONTEXTS).format(expand(rng.choice(VALUES), seed))


@pytest.mark.parametrize("seed", range(60))
def test_a_long_string_is_read_as_if_it_were_read_as_a_whole(finder: Finder, seed: int) -> None:
    rng = random.Random(seed)
    text = _long_text(rng, rng.choice((0, 900, 6_000, 30_000)))
    for _ in range(rng.randrange(1, 3)):
        at = rng.randrange(len(text) + 1)
        text = text[:at] + rng.choice(_SPELLED).format(_secret(rng)) + text[at:]
    value: Any = {"id": 1, "content": [{"type": "text", "text": text}], "end": "done, "}
    for _ in range(rng.randrange(3)):
        value = {"type": "x", "inner": json.dumps(value, ensure_ascii=rng.random() < 0.5)}
    block = (spell(value, seed) if seed % 3 else json.dumps(value).encode()) + b"\n"
    quick = lines(Scrubber(finder, ExactMatcher(()), Ledger(KEY)), block)
    whole = lines(Scrubber(finder, ExactMatcher(()), Ledger(KEY), decode_all=True), block)
    assert quick == whole


def test_lines_are_numbered_also_behind_blocks_that_nobody_counted(finder: Finder, scratch: Scratch) -> None:
    secret = json.dumps({"text": expand("ghp_{alnum:36}")}).encode() + b"\n"
    blocks = (b'{"a":1}\n{"a":2}\n', b'{"a":3}\n', b'{"a":4}\n' + secret, secret)
    items = Items(lambda: iter(blocks), count=6, size=sum(map(len, blocks)))
    part = TranscriptPart(name="main.jsonl", items=items)
    redactor = Redactor(finder, KEY, ())
    made = redactor.transcript(Transcript(dialect="claude_code", parts=(part,)), scratch).value
    (finding,) = redactor.receipt().findings
    assert finding.places == ("transcript main.jsonl line 5 $.text", "transcript main.jsonl line 6 $.text")
    assert made.parts[0].items.count == 6


def test_readings_are_what_views_read() -> None:
    for text in ("a\x1b[31mb\x1b[0mc", "a\u200bb\u00adc", "é→", "plain", "a\x1b]0;t\x07b\ufeff", ""):
        data = text.encode()
        assert list(readings(data)) == [view.data for view in views(data)]
