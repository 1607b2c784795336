"""Texts that a rule must and must not find: those that its file writes, and others made from its forms.

What a file writes are templates: runs such as `{alnum:36}` are filled from a seed, so that no file holds a
credential. A rule that writes none has some made: its forms as they are, and with other letters in place of
their fixed text; or what it must find, without the values.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

from archiver.redact import re2
from archiver.redact.forms import CLASSES, Form, Run
from archiver.redact.ruleset import Rule

_RUN = re.compile(r"\{=[^{}]*\}|\{(?:uuid|" + "|".join(CLASSES) + r")(?::\d+(?:,\d*)?)?\}")
_SEEDS = 3
_TRIES = 20
_CHANGED = str.maketrans(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789",
    "qjzxvkwpyqjzxvkwpyqjzxvkwqQJZXVKWPYQJZXVKWPYQJZXVKWQ7539180264",
)


def expand(template: str, seed: int = 1) -> str:
    """A text with every run of the template filled; braces that are no run stay."""
    rng = random.Random(seed)  # noqa: S311 - examples, not keys
    return _RUN.sub(lambda match: Form.parse(match[0]).sample(rng), template)


def must_match(rule: Rule) -> Iterator[tuple[str, list[str]]]:
    """What stands in the file or was made, and some texts of it; one of them at least has to be found."""
    for template in rule.match:
        yield template, [expand(template, seed) for seed in range(_SEEDS)]
    if rule.match:
        return
    for form in rule.forms:
        yield form.text, [f'x = "{value}"' for value in _values(form)]
    for form in rule.beside:
        yield form.text, [text for value in _values(form) for text in _introduced(rule, value)]
    if rule.pattern is not None:
        rng = random.Random(rule.id)  # noqa: S311 - as above
        words = b" ".join(rule.pattern.keywords).decode()
        yield "the pattern", [f"{words} {re2.sample(rule.pattern.node, rng)}\n" for _ in range(_TRIES)]


def must_not_match(rule: Rule) -> Iterator[tuple[str, list[str]]]:
    """What stands in the file or was made, and texts of it that must not be found."""
    for template in rule.reject:
        yield template, [expand(template, seed) for seed in range(_SEEDS)]
    if rule.reject:
        return
    for template in rule.match if not rule.forms and not rule.beside else ():
        if (bare := _RUN.sub("", template)) != template:
            yield f"{template} without values", [bare]
    for form in rule.forms:
        if any(_changed(part) != part for part in form.parts):
            other = Form(form.text, tuple(map(_changed, form.parts)))
            yield f"{form.text} with other fixed text", [f'x = "{value}"' for value in _values(other)]
    for form in rule.beside if not rule.forms else ():
        yield f"{form.text} alone", [f"revision {value} was built" for value in _values(form)]


def _values(form: Form) -> list[str]:
    rng = random.Random(form.text)  # noqa: S311 - as above
    return [form.sample(rng) for _ in range(_SEEDS)]


def _introduced(rule: Rule, value: str) -> Iterator[str]:
    """A value with a name or a word before it."""
    for word in rule.named:
        yield f"{word.upper()}={value}"
        yield f"{word.upper()}_TOKEN={value}"
    for word in rule.near:
        yield f"{word.replace(' ', '_')}_api_key: {value}"


def _changed(part: Run | str | tuple[str, ...]) -> Run | str | tuple[str, ...]:
    if isinstance(part, Run):
        return part
    return part.translate(_CHANGED) if isinstance(part, str) else tuple(x.translate(_CHANGED) for x in part)
