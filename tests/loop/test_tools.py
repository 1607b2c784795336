"""`@effect`: which effect a call is, and which run it belongs to."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from archiver.config import load
from archiver.errors import RefusedError, UsageError
from archiver.loop import current
from archiver.loop.effects import EffectBook, effect
from archiver.setup import Setup, open_setup

from .effecting import book_of


@pytest.fixture
def book(setup: Setup) -> Iterator[EffectBook]:
    """Stands for the run that is open: tools ask it for their effects."""
    book: Any = book_of(setup)
    token = current.enter(book)
    yield book
    current.leave(book, token)


def test_a_tool_is_done_once_for_each_key(book: EffectBook) -> None:
    sent: list[str] = []

    class Mailer:
        @effect("mail.send", key="mail-{to}-{day}", without=("client",))
        def send(self, to: str, *, day: int = 1, client: object = None) -> tuple[str, int]:
            """Send it."""
            sent.append(to)
            return to, day

    mailer: Any = Mailer()
    assert mailer.send("ann") == mailer.send(to="ann", client=object()) == ["ann", 1]
    assert mailer.send("ann", day=2) == ["ann", 2]
    assert sent == ["ann", "ann"]
    assert [(one.key, one.arguments) for one in book.effects] == [
        ("mail-ann-1", {"to": "ann", "day": 1}),
        ("mail-ann-2", {"to": "ann", "day": 2}),
    ]
    assert mailer.send.__doc__ == "Send it."
    with pytest.raises(TypeError):
        mailer.send()


def test_a_key_that_is_made_by_a_function_and_a_coroutine(book: EffectBook) -> None:
    calls: list[int] = []

    @effect("pay", key=lambda number, amount: f"invoice-{number}")
    async def pay(number: int, amount: int) -> int:
        calls.append(amount)
        return amount

    async def work() -> None:
        assert await pay(7, 10) == await pay(7, 10) == 10
        with pytest.raises(RefusedError, match="other arguments"):
            await pay(7, 11)

    asyncio.run(work())
    assert calls == [10]


def test_in_a_thread_the_only_open_run_counts(book: EffectBook) -> None:
    tool = effect("pay", key="k")(lambda: 5)
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.append(tool()))
    thread.start()
    thread.join(120)
    assert found == [5]


def test_which_of_several_runs_is_not_guessed(setup: Setup, book: EffectBook) -> None:
    tool = effect("pay", key="k")(lambda: 5)
    other: Any = book_of(setup)
    token = current.enter(other)
    errors: list[Exception] = []

    def work() -> None:
        try:
            tool()
        except UsageError as error:
            errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(120)
    assert ["2 runs are open" in str(error) for error in errors] == [True]
    current.leave(other, token)
    assert tool() == 5
    assert [one.key for one in book.effects] == ["k"]


def test_decorations_that_cannot_work() -> None:
    with pytest.raises(UsageError, match="has no key"):
        effect("pay")
    with pytest.raises(UsageError, match="none of its arguments"):
        effect("pay", key="{nobody}")(lambda number: number)

    def some() -> Iterator[int]:
        yield 1

    with pytest.raises(UsageError, match="one by one"):
        effect("pay", key="k")(some)
    with pytest.raises(UsageError, match="no run is open"):
        effect("pay", key="k")(lambda: 5)()


def test_on_s3_too_one_of_two_copies_does_it(s3_config: Path) -> None:
    setup = open_setup(load(s3_config), need="write")
    first, second = book_of(setup), book_of(setup)
    with first.effect("pay", key="k") as one:
        with pytest.raises(Exception, match="nobody knows"):
            second.effect("pay", key="k").do(int)
        one.confirm("first")
    with second.effect("pay", key="k") as other:
        raise AssertionError("the block is left out")
    assert other.result == "first"
