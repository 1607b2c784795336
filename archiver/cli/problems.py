"""Many errors at once: each is said, and what helps against several of them is said once."""

from __future__ import annotations

import re
from collections.abc import Iterable

from archiver.cli import output
from archiver.errors import ArchiverError

_KEY = re.compile(r'^key = "ed25519:[^"\n]+"$', re.MULTILINE)
_RUNS = re.compile(r"^runs = .*$", re.MULTILINE)


def report(problems: Iterable[tuple[str, ArchiverError]]) -> None:
    """Print each text with its error; those with the same next step stand together, before that step.

    Where several runs are refused because of one unknown key, one entry for all runs is suggested.
    """
    groups: dict[str | None, list[tuple[str, str | None]]] = {}
    for text, error in problems:
        groups.setdefault(_kind(error.remedy), []).append((text, error.remedy))
    for kind, group in groups.items():
        remedy = group[0][1]
        if remedy is not None and any(other != remedy for _, other in group):
            remedy = _RUNS.sub('runs = "*"', remedy)
        for text, _ in group[:-1]:
            output.problem("error", text, None)
        output.problem("error", group[-1][0], remedy if kind is not None else None)


def _kind(remedy: str | None) -> str | None:
    """The next step without the run that it names, if it is an entry for a list of writers."""
    return _RUNS.sub("", remedy) if remedy is not None and _KEY.search(remedy) else remedy
