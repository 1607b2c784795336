"""Many errors at once: each is said, one cause of many once, and what helps against several is said once."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from archiver.cli import output
from archiver.errors import ArchiverError

_KEY = re.compile(r'^key = "ed25519:[^"\n]+"$', re.MULTILINE)
_RUNS = re.compile(r"^runs = .*$", re.MULTILINE)
_PLACES = re.compile(
    r"\b(?:records|bundles|effects|notes|audit)/\S+|\b(?:run '[^']*'|run [^\s:,]+|(?:record|checkpoint) \d+)"
)
"""What differs between messages of one cause."""
_FEW = 3
"""Problems of one cause that are said one by one; of more, so many are named."""


@dataclass(frozen=True, slots=True)
class _Problem:
    place: str
    """Where it is, as far as the message does not say so."""
    text: str
    remedy: str | None
    cause: tuple[str, ...]
    """The same for all problems that differ only in where they are."""


def report(problems: Iterable[tuple[str, ArchiverError]]) -> None:
    """Print each text with its error; those with the same next step stand together, before that step.

    More than a few of one cause are one line, with their number and the first of them. Where several runs are
    refused because of one unknown key, one entry for all runs is suggested.
    """
    causes: dict[tuple[str, ...], list[_Problem]] = {}
    for text, error in problems:
        one = _read(text, error)
        causes.setdefault(one.cause, []).append(one)
    groups: dict[str | None, list[_Problem]] = {}
    for same in causes.values():
        for one in [_summary(same)] if len(same) > _FEW else same:
            groups.setdefault(_kind(one.remedy), []).append(one)
    for kind, group in groups.items():
        for one in group[:-1]:
            output.problem("error", one.text, None)
        remedy = group[0].remedy
        if remedy is not None and any(other.remedy != remedy for other in group):
            remedy = _for_all_runs(remedy)
        output.problem("error", group[-1].text, remedy if kind is not None else None)


def _read(text: str, error: ArchiverError) -> _Problem:
    """Without the place before the message where the message names it itself."""
    message = str(error)
    place = text.removesuffix(message).removesuffix(": ") if text.endswith(f": {message}") else ""
    parts = place.split(", ") if place else []
    if parts and all(re.search(rf"{re.escape(part)}(?!\w)", message) for part in parts):
        text = message
    cause = (_without(parts, message if place else text), _without(parts, _kind(error.remedy) or ""))
    return _Problem(place or text, text, error.remedy, (type(error).__name__, *cause))


def _without(parts: list[str], text: str) -> str:
    for part in parts:
        text = text.replace(part, "…")
    return _PLACES.sub("…", text)


def _summary(same: list[_Problem]) -> _Problem:
    """All of one cause in one line."""
    first = same[0]
    named = "; ".join(one.place for one in same[1:_FEW])
    text = f"{first.text} (the same {len(same)} times: also {named}; and {len(same) - _FEW} more)"
    remedy = first.remedy
    if remedy is not None and any(one.remedy != remedy for one in same):
        remedy = _for_all_runs(remedy)
    return replace(first, text=text, remedy=remedy)


def _for_all_runs(remedy: str) -> str:
    return _RUNS.sub('runs = "*"', remedy)


def _kind(remedy: str | None) -> str | None:
    """The next step without the run that it names, if it is an entry for a list of writers."""
    return _RUNS.sub("", remedy) if remedy is not None and _KEY.search(remedy) else remedy
