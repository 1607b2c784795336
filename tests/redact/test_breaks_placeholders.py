"""What redaction wrote is no reason to redact more, whoever wrote it, and hides nothing."""

from __future__ import annotations

import json
import random

import pytest

from archiver.redact.finder import Finder
from archiver.redact.placeholder import PLACEHOLDER
from archiver.redact.redactor import Redactor
from tests.redact.conftest import KEY
from tests.redact.support import expand, lines

FORGED = "[REDACTED:github-token:000000000000]"


def redact(finder: Finder, text: str) -> str:
    return Redactor(finder, KEY, ()).text(text)


def test_a_kind_is_no_word_of_a_provider(finder: Finder) -> None:
    kinds = sorted({rule.kind for rule in finder.rules.rules})
    for number, kind in enumerate(kinds):
        for form in ("{hex:32}", "{hex:40}", "{alnum:32}", "{lownum:36}", "{alnum:20}"):
            text = f"[REDACTED:{kind}:0f3a9c51b2e7]\nrev {expand(form, number)} is it"
            assert redact(finder, text) == text


@pytest.mark.parametrize(
    "text",
    [
        "{f}{s}",
        "{s}{f}",
        "{f} {s} {f}",
        "[REDACTED:{s}:000000000000]",
        "[REDACTED:github-token:{s}]",
        "[REDACTED:github-token:0000{s}]",
        "[REDACTED:[REDACTED:{s}",
        "password={f}{s}",
        "{f}\n{s}",
        'token="{s}" # {f}',
        "{f}={s}",
        '{{"{f}": "{s}"}}',
    ],
)
def test_forged_placeholders_hide_nothing(finder: Finder, text: str) -> None:
    secret = expand("ghp_{alnum:36}", 9)
    data = text.format(f=FORGED, s=secret)
    made = redact(finder, data)
    assert secret[6:] not in made
    assert redact(finder, made) == made
    line = json.dumps({"text": data}).encode() + b"\n"
    assert secret[6:].encode() not in lines(Redactor(finder, KEY, ())._scrubber, line)


def test_what_was_redacted_stays_as_it_is(finder: Finder) -> None:
    rng = random.Random(5)
    forms = ["ghp_{alnum:36}", "AKIA{b32:16}", "glpat-{alnum:20}", "password={alnum:9}#{alnum:5}8x"]
    for seed in range(60):
        pieces = [expand(rng.choice(forms), seed * 7 + at) for at in range(5)]
        text = rng.choice([" ", "\n", ", ", "; "]).join([*pieces, FORGED])
        made = redact(finder, text)
        assert redact(finder, made) == made
        assert len(PLACEHOLDER.findall(made.encode())) > 1
