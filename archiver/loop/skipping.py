"""Leaving out the block of a `with` statement, for which Python has no word.

A trace function raises a private exception in the frame of the statement, after the target of `as` has its
value and before the first instruction of the block; the `__exit__` that follows swallows it, and gives the
tracing back to whoever had it. Where the block begins with something whose exceptions go elsewhere, such as a
`try`, it is raised one instruction earlier, and the name gets its value by hand. Nothing is arranged unless
the byte code is that of a plain `with` or `async with`.
"""

from __future__ import annotations

import dis
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any, Final

Trace = Callable[[FrameType, str, Any], Any]

_BY_NAME: Final = ("STORE_FAST", "STORE_NAME", "STORE_GLOBAL", "STORE_DEREF")
_STORES: Final = (*_BY_NAME, "STORE_FAST_LOAD_FAST")
_LOADS: Final = ("LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_NAME", "LOAD_GLOBAL", "LOAD_DEREF")


_alone: Final = threading.RLock()
"""Held while a block is left out: CPython 3.12 may crash where threads change their tracing at once."""
_PATIENCE: Final = 30.0
"""Seconds to wait for it."""


class CannotSkipError(Exception):
    """The block cannot be left out here; says why."""


class _Skipped(BaseException):
    """Stands for the block that was left out."""


class Skip:
    """The block of one `with` statement, to be left out: `arm` in `__enter__`, `over` in `__exit__`."""

    def __init__(self, frame: FrameType, value: object) -> None:
        """`frame` is that of the statement, which goes on with `value`; raises `CannotSkipError`."""
        self._frame: FrameType | None = frame
        self._value = value
        self._place = _place(frame.f_code, frame.f_lasti)
        self._skipped = _Skipped()
        self._armed = False
        self._before: tuple[Any, Any, bool] = (None, None, False)

    def arm(self) -> None:
        """Have the block left out; the last thing that is done before the statement goes on."""
        frame = self._frame
        assert frame is not None, "a block is left out once"  # noqa: S101
        if not _alone.acquire(timeout=_PATIENCE):
            raise CannotSkipError("another thread has been leaving out a block for too long")
        self._armed = True
        self._before = (sys.gettrace(), frame.f_trace, frame.f_trace_opcodes)
        frame.f_trace, frame.f_trace_opcodes = self._in_frame, True
        sys.settrace(_elsewhere)

    def over(self, error: BaseException | None) -> bool:
        """Give the tracing back; True if `error` is the one that stands for the block."""
        frame, self._frame = self._frame, None
        if frame is not None and self._armed:
            trace, frame.f_trace, frame.f_trace_opcodes = self._before
            sys.settrace(trace)
            _alone.release()
        return error is self._skipped

    def _in_frame(self, frame: FrameType, _event: str, _argument: Any) -> Trace:
        if frame is not self._frame or frame.f_lasti < self._place.offset:
            return self._in_frame
        if self._place.name is not None:
            names = frame.f_globals if self._place.is_global else frame.f_locals
            names[self._place.name] = self._value
        raise self._skipped


def demand_working() -> None:
    """`CannotSkipError` unless a block is left out in this interpreter, with what else traces it now."""
    if not _trial():
        raise CannotSkipError("this interpreter does not let a trace function leave the block out")


def _elsewhere(frame: FrameType, event: str, argument: Any) -> None:
    """Of calls that the target of `as` makes nothing is traced."""


class _Trial:
    def __enter__(self) -> None:
        self._skip = Skip(sys._getframe(1), None)
        self._skip.arm()

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> bool:
        return self._skip.over(error)


def _trial() -> bool:
    ran = False
    try:
        with _Trial():
            ran = True
    except CannotSkipError:
        return False
    return not ran


@dataclass(frozen=True, slots=True)
class _Place:
    """Where the exception is raised: as soon as the frame comes to the instruction at `offset`."""

    offset: int
    name: str | None = None
    """The target of `as`, where it has no value yet."""
    is_global: bool = False


def _place(code: CodeType, last: int) -> _Place:
    """For the `with` at the instruction that holds the byte `last`."""
    found = [one for one in dis.get_instructions(code) if one.opname != "EXTENDED_ARG"]
    at = max(number for number, one in enumerate(found) if one.offset <= last)
    target = _target(found, at)
    stored = _stored(found, target)
    own = _handler(code, found[target].offset)
    if own is None:
        raise CannotSkipError("what is raised in its block does not come to the `with`")
    if _handler(code, found[stored + 1].offset) == own:
        return _Place(found[stored + 1].offset)
    store = found[target]
    if store.opname == "POP_TOP":
        return _Place(store.offset)
    if store.opname not in _BY_NAME:
        raise CannotSkipError("what is raised at the start of the block does not come to its own `with`")
    return _Place(store.offset, store.argval, store.opname == "STORE_GLOBAL")


def _target(found: list[dis.Instruction], at: int) -> int:
    """Place of the first instruction that stores what `__enter__` gave."""
    names = [one.opname for one in found[max(0, at - 3) : at + 1]]
    if names[-1] == "BEFORE_WITH":
        return at + 1
    if names == ["BEFORE_ASYNC_WITH", "GET_AWAITABLE", "LOAD_CONST", "SEND"]:
        after = next(number for number, one in enumerate(found) if one.offset == found[at].argval)
        return after + 1 if found[after].opname == "END_SEND" else after
    raise CannotSkipError("it was not entered by a `with` statement")


def _stored(found: list[dis.Instruction], target: int) -> int:
    """Place of the last instruction that belongs to the target of `as`."""
    first, second = found[target].opname, found[target + 1].opname
    if first == "POP_TOP" or first in _STORES:
        return target
    if first in _LOADS and second == "STORE_ATTR":
        return target + 1
    raise CannotSkipError("the target of its `as` is not a plain name or attribute")


def _handler(code: CodeType, offset: int) -> int | None:
    """Where what an instruction raises is handled."""
    byte_code: Any = dis.Bytecode(code)
    entries = byte_code.exception_entries
    return next((one.target for one in entries if one.start <= offset < one.end), None)
