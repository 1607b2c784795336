"""What the tests of redaction share: templates expanded from a seed, decoded views, a plain way to redact."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from typing import Any

from archiver.redact.forms import CLASSES, Form
from archiver.redact.scrub import ItemOpaque, Scrubber, never

_RUN = re.compile(r"\{=[^{}]*\}|\{(?:uuid|" + "|".join(CLASSES) + r")(?::\d+(?:,\d*)?)?\}")
ANSI = re.compile(r"\x1b\[[0-9;]*m")


def expand(template: str, seed: int = 1) -> str:
    """A text with every run of the template filled; braces that are no run stay."""
    rng = random.Random(seed)
    return _RUN.sub(lambda match: Form.parse(match[0]).sample(rng), template)


def lines(scrubber: Scrubber, block: bytes, opaque: ItemOpaque = never) -> bytes:
    """A block of JSON lines, redacted."""
    out: list[bytes] = []
    scrubber.lines(block, 1, "here", opaque, out.append)
    return b"".join(out)


def strings(value: Any) -> Iterator[str]:
    """Every string of a JSON value, keys included, and of JSON inside strings."""
    if isinstance(value, str):
        yield value
        yield from _inner(value)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from strings(item)


def _inner(text: str) -> Iterator[str]:
    try:
        inner = json.loads(text)
    except (ValueError, RecursionError):
        return
    if isinstance(inner, dict | list):
        yield from strings(inner)


def readable(output: bytes) -> str:
    """All that a reader of redacted JSON lines can see, raw and decoded, colours taken out."""
    shown = [output.decode("utf-8", "replace")]
    for line in output.splitlines():
        shown.extend(ANSI.sub("", text) for text in strings(json.loads(line)))
    return "\0".join(shown)
