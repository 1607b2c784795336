"""Is a rule file as it should be? Its form, its examples, and what its expressions cost, fault by line."""

from __future__ import annotations

import random
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from archiver.redact import engine, examples, re2, rules
from archiver.redact.engine import Engine
from archiver.redact.patterns import AHEAD
from archiver.redact.rule_reading import Problem, Reading, locate
from archiver.redact.rule_tables import Source
from archiver.redact.ruleset import OWN, PACKS, Chosen, Rule, RuleSet

_LIMIT: Final = 0.25
"""Seconds that one confirmation may take on a hostile text."""
_GIVEN_UP: Final = 2.0
_LONG: Final = 400
_HOSTILE: Final = ("a", "A", "0", " ", "=", "-", "a ", "a.", "=a")


@dataclass(frozen=True, slots=True)
class Checked:
    """What came of a check."""

    name: str
    rules: int
    problems: tuple[Problem, ...]
    notes: tuple[Problem, ...]


def check(name: str, text: str) -> Checked:
    """Check the text of a rule file, together with the rules of the package that it adds to."""
    source, others = _sources(name, text)
    reading = rules.read((*others, source))
    mine = [index for index, rule in enumerate(reading.made.rules) if rule.origin == name]
    refused = _refused(reading.made, mine)
    search = None if refused else _Search(reading.made, mine)
    return _checked(reading, source, mine, refused, search)


def check_package() -> tuple[Checked, ...]:
    """Check every file of the package and every pack; their expressions are compiled together."""
    sources = rules.sources(Chosen(packs=PACKS))
    reading = rules.read(sources)
    search = _Search(reading.made, list(range(len(reading.made.rules))))
    found: list[Checked] = []
    for source in sources:
        mine = [index for index, rule in enumerate(reading.made.rules) if rule.origin == source.name]
        found.append(_checked(reading, source, mine, {}, search))
    return tuple(found)


def _checked(
    reading: Reading, source: Source, mine: list[int], refused: dict[int, str], search: _Search | None
) -> Checked:
    """What is wrong with the rules of one file; without `search`, that some are `refused`."""
    name, text, made = source.name, source.text, reading.made
    problems = [problem for problem in reading.problems if problem.name == name]
    problems += [_problem(text, made.rules[index], why) for index, why in refused.items()]
    if search is not None:
        problems += [_problem(text, made.rules[at], why) for at in mine for why in _faults(search, at)]
    notes = [note for note in reading.notes if note.name == name]
    order = sorted(dict.fromkeys(problems), key=lambda problem: problem.line)
    return Checked(name, len(mine), tuple(order), tuple(notes))


def _sources(name: str, text: str) -> tuple[Source, tuple[Source, ...]]:
    """The file as a source, and those of the package without the one that it is, or stands in for."""
    package = rules.sources(Chosen(packs=PACKS))
    same = next((one for one in package if one.text == text), None)
    if same is not None:
        return Source(name, text, same.pack), tuple(one for one in package if one is not same)
    has_names = locate(text, "names", 0)
    others = tuple(one for one in package if not (has_names and locate(one.text, "names", 0)))
    return Source(name, text, OWN), others


def _problem(text: str, rule: Rule, why: str) -> Problem:
    return Problem(rule.origin, _line(text, rule), f"rule {rule.id}: {why}")


def _line(text: str, rule: Rule) -> int:
    """The line where a rule says its id, in whatever spelling."""
    for number, line in enumerate(text.splitlines(), start=1):
        field, sign, value = line.partition("=")
        slug = "".join(c if c.isalnum() else "-" for c in value.strip().strip("\"'").lower()).strip("-")
        if sign and field.strip().lower() == "id" and rule.id in (slug, f"gitleaks-{slug}"):
            return number
    return 0


def _refused(made: RuleSet, mine: list[int]) -> dict[int, str]:
    """Rules whose trigger the engine does not take."""
    found: dict[int, str] = {}
    for expression, owner in zip(made.expressions, made.owners, strict=True):
        if owner in mine and owner not in found and (why := engine.refused(expression)):
            found[owner] = f"the engine does not take it: {why}"
    return found


class _Search:
    """Looks for what single rules find, whatever others say of the same place."""

    def __init__(self, made: RuleSet, mine: list[int]) -> None:
        self.made = made
        shared = any(made.rules[index].beside for index in mine)
        self._numbers = [
            number for number, owner in enumerate(made.owners) if owner in mine or (shared and owner < 0)
        ]
        self._engine = Engine([made.expressions[number] for number in self._numbers]) if mine else None

    def finds(self, index: int, text: str, *, others: bool = False) -> bool:
        """True when this very rule finds something; `others`: or a rule that shares a trigger with it."""
        data = text.encode("utf-8", "surrogatepass")
        return self._engine is not None and any(
            others or rule == index
            for end, at in self._engine.scan(data)
            if self.made.owners[self._numbers[at]] in (index, -1)
            for _, _, rule in self.made.confirms[self._numbers[at]](data, end)
        )

    def time(self, index: int, text: str) -> float:
        """Seconds for the slowest confirmation, at a few triggers of the rule in the text."""
        data = text.encode("utf-8", "surrogatepass")
        hits = [(end, self._numbers[at]) for end, at in self._engine.scan(data)] if self._engine else []
        hits = sorted(hit for hit in hits if self.made.owners[hit[1]] == index)
        slowest = 0.0
        for end, number in dict.fromkeys((*hits[:2], *hits[len(hits) // 2 :][:1], *hits[-1:])):
            begin = time.perf_counter()
            try:
                with _limited(_GIVEN_UP):
                    self.made.confirms[number](data, end)
            except TimeoutError:
                return _GIVEN_UP
            slowest = max(slowest, time.perf_counter() - begin)
        return slowest


def _faults(search: _Search, index: int) -> Iterator[str]:
    rule = search.made.rules[index]
    for what, texts in examples.must_match(rule):
        found = [search.finds(index, text, others=not rule.match) for text in texts]
        if not (all(found) if rule.match else any(found)):
            yield f"it does not find {what!r}"
    for what, texts in examples.must_not_match(rule):
        if any(search.finds(index, text) for text in texts):
            yield f"it finds {what!r}, which it must not"
    took = max((search.time(index, text) for text in _hostile(rule)), default=0.0)
    if took > _LIMIT:
        yield f"it takes {took:.1f} s or more for one place of a hostile text"


def _hostile(rule: Rule) -> Iterator[str]:
    """Texts that begin as the rule wants and go on so that an expression tries many ways in vain."""
    if rule.pattern is not None:
        rng = random.Random(rule.id)  # noqa: S311 - texts to try, not keys
        for _ in range(4):
            text = re2.sample(rule.pattern.node, rng, _LONG)
            yield text[:AHEAD]
            yield text[: min(len(text), AHEAD) * 3 // 4] + "\x01"
            yield text[:-1] + "\x01"
    for template in rule.match[:2]:
        text = examples.expand(template)
        signs = [at + 1 for at, char in enumerate(text) if not char.isalnum()]
        for at in {len(text) // 2, len(text), *signs[-4:]}:
            yield from (text[:at] + fill * (4 * AHEAD // len(fill)) for fill in _HOSTILE)


@contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """Ends what takes longer with `TimeoutError`; in the main thread alone, where signals are handled."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
