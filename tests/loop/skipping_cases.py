"""`with` statements whose block is to be left out: each case says what was done, and what should have been.

    python skipping_cases.py

runs them without a test framework, in whatever interpreter that is.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import textwrap
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from archiver.loop.skipping import CannotSkipError, Skip, demand_working

CASES: list[Callable[[], None]] = []


def case(function: Callable[[], None]) -> Callable[[], None]:
    CASES.append(function)
    return function


class Out:
    """A context manager whose block is left out; usable once."""

    def __init__(self) -> None:
        self.left = False

    def _skip(self, frame: Any) -> Out:
        demand_working()
        self.skip = Skip(frame, self)
        self.skip.arm()
        return self

    def __enter__(self) -> Out:
        return self._skip(sys._getframe(1))

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> bool:
        self.left = self.skip.over(error)
        return self.left

    async def __aenter__(self) -> Out:
        await asyncio.sleep(0)
        return self._skip(sys._getframe(1))

    async def __aexit__(self, kind: object, error: BaseException | None, traceback: object) -> bool:
        self.left = self.skip.over(error)
        await asyncio.sleep(0)
        return self.left


class Seen:
    """A context manager of somebody else."""

    def __init__(self) -> None:
        self.events: list[object] = []

    def __enter__(self) -> Seen:
        self.events.append("enter")
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        self.events.append(kind)


@case
def with_a_target() -> None:
    ran = []
    with Out() as out:
        ran.append(1)
    assert (ran, out.left) == ([], True)


@case
def without_a_target() -> None:
    ran = []
    out = Out()
    with out:
        ran.append(1)
    assert (ran, out.left) == ([], True)


@case
def in_one_line() -> None:
    ran = []
    out = Out()
    with out: ran.append(1)  # fmt: skip  # noqa: E701
    with Out() as other: ran.append(other)  # fmt: skip  # noqa: E701
    assert (ran, out.left, other.left) == ([], True, True)


@case
def with_a_target_that_the_block_uses_first() -> None:
    ran = []
    with Out() as out:
        out.left = "touched"  # type: ignore[assignment]
        ran.append(1)
    assert (ran, out.left) == ([], True)


@case
def with_an_attribute_as_target() -> None:
    ran = []
    holder = Seen()
    with Out() as holder.out:  # type: ignore[attr-defined]
        ran.append(1)
    assert (ran, holder.out.left) == ([], True)  # type: ignore[attr-defined]


@case
def with_a_cell_as_target() -> None:
    ran = []

    def use() -> Out:
        return out

    with Out() as out:
        ran.append(1)
    assert (ran, use().left) == ([], True)


@case
def with_a_global_as_target() -> None:
    scope: dict[str, Any] = {"Out": Out, "ran": []}
    exec("with Out() as out:\n    ran.append(1)\nafter = True", scope)  # noqa: S102
    assert (scope["ran"], scope["out"].left, scope["after"]) == ([], True, True)


@case
def with_another_target_it_refuses() -> None:
    ran: list[int] = []
    held: dict[str, Any] = {}
    try:
        with Out() as held["out"]:
            ran.append(1)
    except CannotSkipError:
        pass
    else:
        raise AssertionError("the block was entered")
    assert (ran, held) == ([], {})


@case
def where_the_block_begins_with_a_try() -> None:
    ran = []
    with Out() as out:
        try:
            ran.append(1)
        except BaseException:
            ran.append(2)
        finally:
            ran.append(3)
    assert (ran, out.left) == ([], True)


@case
def where_the_block_begins_with_a_try_and_the_target_is_no_local() -> None:
    block = "with Out() as out:\n try:\n  ran.append(1)\n except BaseException:\n  ran.append(2)\n"
    for declared in ("pass", "global out"):
        scope: dict[str, Any] = {"Out": Out, "ran": []}
        lines = textwrap.indent(f"{declared}\n{block}return (lambda: out)()\n", "    ")
        exec(f"def work():\n{lines}", scope)  # noqa: S102
        assert scope["work"]().left
        assert scope["ran"] == []
    scope = {"Out": Out, "ran": []}
    exec(block, scope)  # noqa: S102
    assert (scope["out"].left, scope["ran"]) == (True, [])


@case
def where_the_block_is_empty() -> None:
    with Out() as out:
        pass
    assert out.left


@case
def where_the_block_only_returns() -> None:
    def inner() -> str:
        with Out() as out:
            return "inside"
        return "after" if out.left else "not left"

    assert inner() == "after"


@case
def where_the_block_begins_with_a_loop() -> None:
    ran = []
    with Out() as out:
        while True:
            ran.append(1)
            break
    with Out() as other:
        for number in range(3):
            ran += [number]
    assert (ran, out.left, other.left) == ([], True, True)


@case
def where_the_block_returns() -> None:
    def inner() -> str:
        with Out():
            return str(1)
        return "after"

    assert inner() == "after"


@case
def in_a_loop() -> None:
    ran, left = [], []
    for number in range(5):
        with Out() as out:
            ran.append(number)
            continue
        left.append(out.left)
    assert (ran, left) == ([], [True] * 5)


@case
def within_another_with() -> None:
    ran = []
    with Seen() as seen:
        with Out() as out:
            ran.append(1)
        ran.append(2)
    assert (ran, out.left, seen.events) == ([2], True, ["enter", None])


@case
def beside_others_in_one_with() -> None:
    ran = []
    first, last = Seen(), Seen()
    with first, Out() as out, last:
        ran.append(1)
    assert (ran, out.left, first.events, last.events) == ([], True, ["enter", None], [])


@case
def one_within_the_block_of_another_that_runs() -> None:
    ran = []
    with contextlib.suppress(ValueError):
        with Out() as out:
            ran.append(1)
        raise ValueError
    assert (ran, out.left) == ([], True)


@case
def in_a_generator() -> None:
    def numbers() -> Iterator[int]:
        yield 1
        with Out():
            yield 2
        yield 3

    assert list(numbers()) == [1, 3]


@case
def in_a_coroutine() -> None:
    async def work() -> list[int]:
        ran = []
        await asyncio.sleep(0)
        with Out() as out:
            await asyncio.sleep(0)
            ran.append(1)
        assert out.left
        return ran

    assert asyncio.run(work()) == []


@case
def in_an_async_with() -> None:
    async def work() -> list[int]:
        ran = []
        async with Out() as out:
            await asyncio.sleep(0)
            ran.append(1)
        assert out.left
        other = Out()
        async with other:
            ran.append(2)
        assert other.left
        return ran

    assert asyncio.run(work()) == []


@case
def in_an_async_generator() -> None:
    async def numbers() -> AsyncIterator[int]:
        yield 1
        async with Out():
            yield 2
        yield 3

    async def work() -> list[int]:
        return [number async for number in numbers()]

    assert asyncio.run(work()) == [1, 3]


@case
def in_many_tasks_at_once() -> None:
    async def one(number: int, ran: list[int]) -> None:
        async with Out():
            ran.append(number)
        await asyncio.sleep(0)
        ran.append(-number)

    async def work() -> list[int]:
        ran: list[int] = []
        await asyncio.gather(*(one(number, ran) for number in range(1, 20)))
        return ran

    assert sorted(asyncio.run(work())) == list(range(-19, 0))


@case
def in_many_threads_at_once() -> None:
    ran: list[int] = []
    left: list[bool] = []

    def work() -> None:
        for number in range(20):
            with Out() as out:
                ran.append(number)
            left.append(out.left)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (ran, left) == ([], [True] * 160)


@case
def in_a_long_function() -> None:
    """Instructions with more than one byte of argument, before, at and behind the statement."""
    names = "\n".join(f"    v{number} = {number}" for number in range(300))
    text = f"def long(Out, ran):\n{names}\n    with Out() as out:\n        ran.append(out)\n    return out\n"
    scope: dict[str, Any] = {}
    exec(text, scope)  # noqa: S102
    ran: list[int] = []
    assert scope["long"](Out, ran).left
    assert ran == []


@case
def in_a_function_that_ran_often_before() -> None:
    """Instructions that the interpreter has specialised."""

    class Maybe(Out):
        def __init__(self, out: bool) -> None:
            super().__init__()
            self.out = out

        def __enter__(self) -> Out:
            return self._skip(sys._getframe(1)) if self.out else self

        def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> bool:
            return super().__exit__(kind, error, traceback) if self.out else False

    def work(out: bool) -> int:
        ran = 0
        with Maybe(out) as maybe:
            maybe.left = False
            ran += 1
        return ran

    assert [work(False) for _ in range(200)] == [1] * 200
    assert [work(number % 2 == 0) for number in range(200)] == [0, 1] * 100


@case
def an_error_of_the_target_is_not_swallowed() -> None:
    class Fixed:
        __slots__ = ()

    ran = []
    try:
        with Out() as Fixed().out:  # type: ignore[attr-defined]
            ran.append(1)
    except (AttributeError, CannotSkipError):
        pass
    else:
        raise AssertionError("no error")
    assert (ran, sys.gettrace()) == ([], None)


@case
def in_an_exit_stack_it_refuses() -> None:
    ran = []
    try:
        with contextlib.ExitStack() as stack:
            stack.enter_context(Out())
            ran.append(1)
    except CannotSkipError:
        pass
    else:
        raise AssertionError("the block was entered")
    assert ran == []


@case
def in_a_call_by_hand_it_refuses() -> None:
    try:
        Out().__enter__()
    except CannotSkipError:
        return
    raise AssertionError("nothing said that there is no block")


@case
def in_a_context_manager_made_of_a_generator_nothing_is_run() -> None:
    ran = []

    @contextlib.contextmanager
    def wrapped() -> Iterator[Out]:
        with Out() as out:
            yield out

    try:
        with wrapped():
            ran.append(1)
    except RuntimeError as error:
        assert "didn't yield" in str(error)
    assert ran == []


@case
def nothing_is_traced_afterwards() -> None:
    with Out():
        raise AssertionError
    frame = sys._getframe()
    assert (sys.gettrace(), frame.f_trace, frame.f_trace_opcodes) == (None, None, False)


class Debugger:
    """Traces lines as a debugger does."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, int]] = []
        self.errors: list[str] = []

    def trace(self, frame: Any, event: str, argument: Any) -> Any:
        if event == "line" and frame.f_code.co_filename == __file__:
            self.lines.append((frame.f_code.co_name, frame.f_lineno))
        return self.trace


@case
def under_a_debugger_which_goes_on_afterwards() -> None:
    debugger = Debugger()
    ran = []

    def work() -> int:
        first = sys._getframe().f_lineno
        with Out() as out:
            ran.append(1)
        assert out.left
        return first

    before = sys.gettrace()
    sys.settrace(debugger.trace)
    try:
        first = work()
        assert sys.gettrace() == debugger.trace
    finally:
        sys.settrace(before)
    seen = [line - first for name, line in debugger.lines if name == "work"]
    assert ran == []
    assert {0, 1, 3, 4} <= set(seen), seen


@case
def under_a_debugger_that_traces_instructions() -> None:
    seen: list[str] = []
    ran = []

    def trace(frame: Any, event: str, argument: Any) -> Any:
        frame.f_trace_opcodes = True
        seen.append(event)
        return trace

    def work() -> None:
        with Out() as out:
            ran.append(1)
        assert out.left
        seen.append("after")
        seen.append("end")

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    assert ran == []
    assert "opcode" in seen[seen.index("after") :], "the debugger lost its instructions"


def main() -> None:
    for one in CASES:
        one()
        assert sys.gettrace() is None, one
        sys.stdout.write(f"{one.__name__}\n")


if __name__ == "__main__":
    main()
