"""What the calls of a run have to be given, so that one that cannot be right is told at once, and of what."""

from __future__ import annotations

import inspect
import os
from collections.abc import Collection, Iterable, Mapping
from typing import Any, get_args

from archiver.errors import UsageError
from archiver.loop.given import Budget
from archiver.policy import Policy, Profile
from archiver.safetext import shorten
from archiver.setup import Setup
from archiver.transcripts import DIALECTS


def texts(**given: Any) -> None:
    """Each is a text, or None for what is not said."""
    for what, value in given.items():
        if not isinstance(value, str | None):
            raise _not(what, value, "a text")


def numbers(**given: Any) -> None:
    """Each is a number that is not below nothing."""
    for what, value in given.items():
        if not isinstance(value, int | float) or not value >= 0:
            raise UsageError(f"{what} is {value!r:.80}, and no number from 0 on", remedy="see docs/POLICY.md")


def name(what: str, value: Any) -> None:
    """It names something: a text that is not empty, and that UTF-8 can hold."""
    if not isinstance(value, str):
        raise _not(what, value, "a text")
    if not value or any("\ud800" <= character <= "\udfff" for character in value):
        raise UsageError(
            f"the {what} {value!r:.80} is no name", remedy="name what it is about, as in invoice-4711"
        )


def one_of(what: str, value: Any, known: Iterable[str]) -> None:
    """It is one of the words that are known."""
    words = sorted(known)
    if value not in words:
        raise UsageError(f"there is no {what} {value!r:.80}", remedy=f"it is one of: {', '.join(words)}")


def callable_(what: str, value: Any) -> None:
    """It can be called."""
    if not callable(value):
        raise _not(what, value, "a function")


def function(what: str, value: Any) -> None:
    """It can be called, and the result is there when it returns."""
    callable_(what, value)
    if inspect.iscoroutinefunction(value):
        raise UsageError(
            f"the {what} is a coroutine function, and nothing here awaits it",
            remedy="open the run with `async with`, and await its calls",
        )


def number(what: str, value: Any) -> None:
    """It is the number of a record."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise UsageError(
            f"{what} is {value!r:.80}, which is no number of a checkpoint", remedy="see run.ring()"
        )


def effect(tool: Any, key: Any, not_done_on: Any, unrecorded: Any) -> None:
    """An effect is described well enough to be done once."""
    name("tool", tool)
    name("key", key)
    one_of("unrecorded", unrecorded, ("refuse", "do"))
    kinds = not_done_on if isinstance(not_done_on, tuple) else (not_done_on,)
    if not all(isinstance(kind, type) and issubclass(kind, BaseException) for kind in kinds):
        raise _not("not_done_on", not_done_on, "a tuple of classes of errors")


def opening(
    *,
    budget: Any,
    policy: Any,
    dialect: Any,
    workspace: Any,
    offline: Any,
    accept: Any,
    resolve: Any,
    check: Any,
    config: Any,
    setup: Any,
) -> None:
    """How a run is to be opened; its texts are looked at with `texts`."""
    if not isinstance(budget, Budget | None):
        raise _not("budget", budget, "an archiver.Budget")
    _rules(policy)
    if dialect is not None:
        one_of("dialect", dialect, DIALECTS)
    one_of("offline", offline, ("refuse", "start"))
    for what, place in (("workspace", workspace), ("config", config)):
        if not isinstance(place, str | os.PathLike | None):
            raise _not(what, place, "a path")
    if isinstance(accept, str) or not isinstance(accept, Collection):
        raise _not("accept", accept, "a list of names")
    if not isinstance(resolve, Mapping | None):
        raise _not("resolve", resolve, 'a mapping of keys to "done" or "not-done"')
    if check is not None:
        function("check", check)
    if not isinstance(setup, Setup | None):
        raise _not("setup", setup, "what archiver.setup.open_setup gives")


def _rules(policy: Any) -> None:
    if isinstance(policy, Policy):
        one_of("policy", policy.profile, get_args(Profile))
        numbers(floor=policy.floor, floor_calls=policy.floor_calls, interruptions=policy.interruptions)
    elif policy is not None:
        one_of("policy", policy, get_args(Profile))


def _not(what: str, value: Any, wanted: str) -> UsageError:
    return UsageError(
        f"{what} is {wanted}, and this is of type {shorten(type(value).__name__, 80)}",
        remedy="see docs/LOOP.md",
    )
