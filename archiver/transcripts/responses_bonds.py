"""What followed reasoning whose seal is destroyed: its id asks for that reasoning, which has to go.

The provider knows by the id of a call or a message which reasoning it was made with, and refuses it alone
("was provided without its required 'reasoning' item"); without an id it takes it. A call of a tool that the
provider ran cannot be sent without its id, so there the reasoning is left as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from archiver.transcripts.dialect import Problem
from archiver.transcripts.responses_items import ANSWERS, HOSTED, REASONING
from archiver.transcripts.responses_sealed import is_broken

_NEEDS_ID: Final = HOSTED | {"computer_call", "local_shell_call"}
_FIRM: Final = "what followed it cannot be sent without it"


class Bonds:
    """Takes in the items of one list in order."""

    def __init__(self) -> None:
        self._broken: int | None = None
        """The item of the reasoning just now, where its seal is destroyed."""
        self._firm: set[int] = set()
        self._bound: list[tuple[int, Problem]] = []
        """Of each id that asks for such reasoning, the item of that."""

    def see(self, index: int, item: Mapping[str, Any], kind: str) -> None:
        """Take in the next item."""
        if kind == REASONING:
            self._broken = index if is_broken(item.get("encrypted_content")) else None
        elif kind in ANSWERS or kind in HOSTED or (kind == "message" and item.get("role") == "assistant"):
            own = item.get("id")
            if self._broken is None or not isinstance(own, str) or not own:
                return
            if kind in _NEEDS_ID:
                self._firm.add(self._broken)
            else:
                problem = Problem(
                    "bound_id", index, "its id asks for reasoning whose seal is destroyed", ref=own
                )
                self._bound.append((self._broken, problem))
        else:
            self._broken = None

    def judged(self, sealed: Iterable[Problem]) -> Iterator[Problem]:
        """The problems of seals, and of what asks for reasoning that goes; some of that cannot go."""
        for problem in sealed:
            firm = problem.loose and problem.item in self._firm
            yield replace(problem, loose=False, beyond=_FIRM) if firm else problem
        yield from (problem for asked, problem in self._bound if asked not in self._firm)
