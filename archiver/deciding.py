"""What people said of effects whose outcome was not known: now, and in the claims of the run."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Literal

from archiver.effect_names import name_in
from archiver.errors import UsageError
from archiver.model import utc_text
from archiver.model.record import Decision
from archiver.safetext import shorten

Outcome = Literal["done", "not-done"]
OUTCOMES: Mapping[str, Outcome] = {"done": "done", "not-done": "not-done"}
MAX_REASON = 2000
"""Characters of a reason; it is signed into a record that has a limit."""
_LISTED = 50


def by_name(resolve: Mapping[str, Outcome]) -> dict[str, Outcome]:
    """What was found out, by the names of effects; `UsageError` for two words about one."""
    found: dict[str, Outcome] = {}
    for given, outcome in resolve.items():
        if found.setdefault(name_in(given), outcome) != outcome:
            raise UsageError(
                f"effect {shorten(given, 80)} is to be resolved as done and as not done",
                remedy="leave one of them out",
            )
    return found


def check_words(resolve: Mapping[str, str], reason: str) -> None:
    """`UsageError` for an outcome that is none, and for decisions without a reason."""
    for name, outcome in resolve.items():
        if outcome not in OUTCOMES:
            raise UsageError(
                f"effect {shorten(name, 80)} cannot be resolved as {outcome!r:.80}",
                remedy="an effect is `done` or `not-done`",
            )
    if resolve and not reason.strip():
        raise UsageError(
            "a decision about an effect needs its reason, which is recorded with it",
            remedy="add --because with what you found and where",
        )
    if len(reason) > MAX_REASON:
        raise UsageError(
            f"the reason has {len(reason)} characters, more than {MAX_REASON}", remedy="write it shorter"
        )


def check_names(resolve: Iterable[str], undecided: Collection[str], made: Iterable[Decision]) -> None:
    """`UsageError` for the name of an effect that is not, or no longer, to be decided on."""
    already = {decision.effect: decision for decision in made}
    for name in resolve:
        if name in already:
            raise UsageError(
                f"effect {shorten(name, 80)} was decided on: {said(already[name])}",
                remedy="leave out its --resolve",
            )
        if name not in undecided:
            left = [one for one in undecided if one not in already]
            listed = ", ".join(shorten(one, 80) for one in left[:_LISTED])
            raise UsageError(
                f"there is no undecided effect {shorten(name, 80)!r} in this checkpoint",
                remedy=f"to be decided on: {listed}" if left else "nothing has to be decided on",
            )


def said(decision: Decision) -> str:
    """A decision in one sentence."""
    because = f": {decision.reason}" if decision.reason else ""
    return f"{decision.outcome}, said {decision.by} at {utc_text(decision.at)}{because}"


def latest(decisions: Iterable[Decision]) -> tuple[Decision, ...]:
    """Of several decisions about one effect the last one."""
    return tuple({decision.effect: decision for decision in decisions}.values())


def about(decisions: Iterable[Decision], names: Collection[str]) -> Iterator[Decision]:
    """Those that are about effects with these names."""
    return (decision for decision in decisions if decision.effect in names)


def unicode(text: str) -> str:
    """Text of an argument, which need not be Unicode."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
