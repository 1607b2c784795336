"""What people said of effects whose outcome was not known: now, and in the claims of the run."""

from __future__ import annotations

import os
import pwd
import socket
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Literal

from archiver.errors import UsageError
from archiver.model import utc_text
from archiver.model.record import Decision
from archiver.safetext import shorten

Outcome = Literal["done", "not-done"]
OUTCOMES: Mapping[str, Outcome] = {"done": "done", "not-done": "not-done"}
MAX_REASON = 2000
"""Characters of a reason; it is signed into a record that has a limit."""
_LISTED = 50


def check_words(resolve: Mapping[str, str], reason: str) -> None:
    """`UsageError` for an outcome that is none, and for decisions without a reason."""
    for key, outcome in resolve.items():
        if not key:
            raise UsageError(
                "an effect without a key cannot be resolved: nobody could tell which one was meant",
                remedy="restore with --accept effects, and give the effect a key",
            )
        if outcome not in OUTCOMES:
            raise UsageError(
                f"effect {shorten(key, 80)} cannot be resolved as {outcome!r:.80}",
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


def check_keys(resolve: Iterable[str], undecided: Collection[str], made: Iterable[Decision]) -> None:
    """`UsageError` for a key that is not, or no longer, to be decided on."""
    already = {decision.effect: decision for decision in made}
    for key in resolve:
        if key in already:
            raise UsageError(
                f"effect {shorten(key, 80)} was decided on: {said(already[key])}",
                remedy="leave out its --resolve",
            )
        if key not in undecided:
            left = [one for one in undecided if one not in already]
            listed = ", ".join(shorten(one, 80) for one in left[:_LISTED])
            raise UsageError(
                f"there is no undecided effect {shorten(key, 80)!r} in this checkpoint",
                remedy=f"to be decided on: {listed}" if left else "nothing has to be decided on",
            )


def said(decision: Decision) -> str:
    """A decision in one sentence."""
    because = f": {decision.reason}" if decision.reason else ""
    return f"{decision.outcome}, said {decision.by} at {utc_text(decision.at)}{because}"


def latest(decisions: Iterable[Decision]) -> tuple[Decision, ...]:
    """Of several decisions about one effect the last one."""
    return tuple({decision.effect: decision for decision in decisions}.values())


def about(decisions: Iterable[Decision], keys: Collection[str]) -> Iterator[Decision]:
    """Those that are about effects with these keys."""
    return (decision for decision in decisions if decision.effect in keys)


def somebody() -> str:
    """User and host."""
    try:
        user = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}"


def unicode(text: str) -> str:
    """Text of an argument or of the system, which need not be Unicode."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
