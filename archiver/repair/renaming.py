"""New ids for second calls and lines, and new names for tools: always the same ones, and nobody else's."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Sequence
from typing import Any, Final

from archiver.transcripts.dialect import Dialect, Problem

_NOT_IN_NAMES: Final = re.compile(r"[^a-zA-Z0-9_-]")
_LONGEST_NAME: Final = 128
_LONGEST_ID: Final = 40
"""The shortest limit that a provider has for ids of calls."""
_UNNAMED: Final = "unnamed_tool"
_LINES: Final = uuid.UUID("0b0c1b5e-51a7-5f36-9d0e-6c9f5b8f2a47")


class Taken:
    """Ids and names that the items use already, read in one pass."""

    def __init__(self, items: Iterable[Any], dialect: Dialect) -> None:
        self._ids: set[str] = set()
        self._names: set[str] = set()
        for item in items:
            facts = dialect.facts(item)
            self._ids.update(call.id for call in facts.calls)
            self._ids.update(result.call_id for result in facts.results)
            self._names.update(call.name for call in facts.calls)

    def call_id(self, old: str) -> str:
        """An id made of the old one that nobody has; no longer than that where it is long already."""
        number = 2
        while True:
            end = f"_{number}"
            room = max(_LONGEST_ID, len(old)) - len(end)
            made = old[:room] + end
            if made not in self._ids:
                self._ids.add(made)
                return made
            number += 1

    def names(self, problems: Sequence[Problem]) -> dict[str, str]:
        """For each refused name of a tool, one that providers take.

        A NUL was never a part of a name: without it, it may be that of another call. Else two tools stay two.
        """
        made: dict[str, str] = {}
        for old in sorted({problem.name for problem in problems if problem.name is not None}):
            bare = old.replace("\0", "")
            new = _NOT_IN_NAMES.sub("_", bare)[:_LONGEST_NAME] or _UNNAMED
            made[old] = new if new == bare else self._free(new)
            self._names.add(made[old])
        return made

    def _free(self, name: str) -> str:
        made, number = name, 2
        while made in self._names:
            end = f"_{number}"
            made, number = name[: _LONGEST_NAME - len(end)] + end, number + 1
        return made


def line_id(old: str, index: int) -> str:
    """A new id for the line `index`, which has the id of another one."""
    return str(uuid.uuid5(_LINES, f"{old} {index}"))
