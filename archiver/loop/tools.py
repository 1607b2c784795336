"""`@effect`: a tool whose every call is an effect of the run around it."""

from __future__ import annotations

import functools
import inspect
import string
from collections.abc import Callable, Collection
from typing import Any, ParamSpec, TypeVar

from archiver.errors import UsageError
from archiver.loop import current
from archiver.loop.effect_call import EffectCall

P = ParamSpec("P")
R = TypeVar("R")
Key = str | Callable[..., str]


def effect(
    tool: str,
    *,
    key: Key | None = None,
    replayable: bool = False,
    not_done_on: tuple[type[BaseException], ...] = (),
    without: Collection[str] = (),
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Make a function, or a coroutine function, an effect: the same key is done once, and gives its result.

    `key` says which effect a call is: a template over the arguments (`"invoice-{number}"`), or a function of
    them. All arguments are recorded but `self`, `cls` and those named in `without`. Results are in their JSON
    form, those of the first call too. Raises `UsageError` for a decoration that cannot work; a call outside
    of a run raises it too.
    """
    if not isinstance(tool, str) or key is None:
        raise UsageError(
            f"the effect {getattr(tool, '__qualname__', tool)} has no key, so two calls that are meant could "
            "not be told from one that is repeated",
            remedy='say which effect a call is: @effect("mail.send", key="mail-{to}-{subject}")',
        )

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        plan = _Plan(tool, key, function, replayable, not_done_on, frozenset(without))
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def later(*args: P.args, **kwargs: P.kwargs) -> Any:
                return await plan.call(args, kwargs).ado(function, *args, **kwargs)

            return later  # type: ignore[return-value]  # R is a coroutine here

        @functools.wraps(function)
        def now(*args: P.args, **kwargs: P.kwargs) -> R:
            return plan.call(args, kwargs).do(function, *args, **kwargs)

        return now

    return decorate


class _Plan:
    """What a call of one decorated function becomes."""

    def __init__(
        self,
        tool: str,
        key: Key,
        function: Callable[..., Any],
        replayable: bool,
        not_done_on: tuple[type[BaseException], ...],
        without: frozenset[str],
    ) -> None:
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise UsageError(
                f"{function.__qualname__} gives its results one by one, so it has no result to record",
                remedy="have it return them all",
            )
        self._tool, self._key, self._name = tool, key, function.__qualname__
        self._replayable, self._not_done_on = replayable, not_done_on
        self._signature = inspect.signature(function)
        names = list(self._signature.parameters)
        self._without = without | {name for name in names[:1] if name in ("self", "cls")}
        if isinstance(key, str):
            self._demand_known(key, names)

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> EffectCall:
        """The effect of the run around the caller; `TypeError` for arguments that it does not take."""
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        arguments = {name: value for name, value in bound.arguments.items() if name not in self._without}
        key = (
            self._key.format(**bound.arguments)
            if isinstance(self._key, str)
            else self._key(*bound.args, **bound.kwargs)
        )
        return current.current_run().effect(
            self._tool,
            key=key,
            arguments=arguments,
            replayable=self._replayable,
            not_done_on=self._not_done_on,
        )

    def _demand_known(self, key: str, names: list[str]) -> None:
        fields = (field for _, field, _, _ in string.Formatter().parse(key) if field is not None)
        for field in fields:
            name = field.split(".")[0].split("[")[0]
            if name not in names:
                raise UsageError(
                    f"the key {key!r} of {self._name} names {name or 'an argument by its place'!r}, which is "
                    "none of its arguments",
                    remedy=f"its arguments are {', '.join(names) or '(none)'}",
                )
