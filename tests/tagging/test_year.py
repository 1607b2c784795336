"""A simulated year: nothing promised is ever gone, nothing expired stays, a held run survives everything."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from archiver import retention
from archiver.tagging.planning import Change, Wanted, ordered, wanted
from tagging.year import Year

SEEDS = range(8)
TRIED = range(12)
"""Years in which a mistake has to show."""


def years(seeds: range) -> Counter[str]:
    seen: Counter[str] = Counter()
    for seed in seeds:
        year = Year(seed).play()
        assert not year.violations, f"seed {seed}: {year.violations[:3]}"
        seen.update(year.seen)
    return seen


def test_a_year() -> None:
    seen = years(SEEDS)
    for what in ("hold", "release", "merged", "orphan", "claim", "finish", "hidden", "gone", "skipped"):
        assert seen[what], what
    for what in ("live to intermediate", "live to success", "live to failure", "live to hold"):
        assert seen[what], what
    assert any(what.startswith("hold to ") for what in seen)
    assert seen["1 bases"], "epochs are real"
    assert seen["2 bases"]


@pytest.mark.soak
def test_many_years() -> None:
    years(range(1000, 1100))


def each_alone(known: Any, there: Any, *, keep: int, now: Any) -> list[Wanted]:
    """The mistake of looking at each bundle instead of its whole epoch."""
    newest = {one.record.seq for one in [one for one in known.run if one.record.bundle][-keep:]}
    found = []
    for want in wanted(known, there, keep=keep, now=now):
        shorter = want.to in ("live", "success", "failure") and want.at and want.at not in newest
        is_live = shorter and known.run[want.at - 1].record.retention == "live"
        found.append(replace(want, to="intermediate") if is_live else want)
    return found


def newest_alone(known: Any, there: Any, *, keep: int, now: Any) -> list[Wanted]:
    """The mistake of forgetting how many are kept."""
    return wanted(known, there, keep=1, now=now)


def no_hold(known: Any, there: Any, *, keep: int, now: Any) -> list[Wanted]:
    """The mistake of not asking for notes."""
    return wanted(replace(known, standing=retention.NOTHING), there, keep=keep, now=now)


def never_orphans(known: Any, there: Any, *, keep: int, now: Any) -> list[Wanted]:
    return [one for one in wanted(known, there, keep=keep, now=now) if one.at]


def bases_first(wants: Any, tags: Any, known: Any) -> list[Change]:
    """The mistake of shortening in the order of numbers."""
    return list(reversed(ordered(wants, tags, known)))


@pytest.mark.parametrize(
    "mistake",
    [
        {"want": each_alone},
        {"want": newest_alone},
        {"want": no_hold},
        {"want": never_orphans},
        {"order": bases_first},
        {"order": lambda *_: []},
        {"told": True},
    ],
    ids=["each alone", "newest alone", "no hold", "never orphans", "bases first", "nothing done", "not told"],
)
def test_a_mistake_shows(mistake: dict[str, Any]) -> None:
    assert any(Year(seed, **mistake).play().violations for seed in TRIED)
