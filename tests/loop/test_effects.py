"""Effects of a run: done once, recorded before and after, and never done on a mere hope."""

from __future__ import annotations

import asyncio
import logging
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from archiver import layout
from archiver.errors import (
    ArchiverError,
    DamagedError,
    EffectDoneError,
    EffectNotRecordedError,
    LimitExceededError,
    NeedsDecisionError,
    NotSerialisableError,
    RedactedValueError,
    RefusedError,
    StaleWriterError,
    StoreFullError,
    StoreUnreachableError,
    UsageError,
)
from archiver.ledger import Ledger
from archiver.loop.effects import EffectBook
from archiver.model import Effect
from archiver.setup import Setup
from archiver.store.decorated import Decorated

from .effecting import book_of
from .writing import gated

ARGUMENTS = {"n": 1}


class Faulty(Decorated):
    """A store that fails at creates of effects, before or after they are done, as long as it is told to."""

    def __init__(self, inner: Any) -> None:
        super().__init__(inner)
        self.error: ArchiverError | None = None
        self.after = False

    def create(self, name: str, body: Iterable[bytes], *, retention: Any) -> Any:
        if self.error is not None and not self.after:
            raise self.error
        made = self._inner.create(name, body, retention=retention)
        if self.error is not None:
            raise self.error
        return made


@pytest.fixture
def faulty(setup: Setup) -> Setup:
    return replace(setup, store=Faulty(setup.store))


def names(setup: Setup) -> list[str]:
    return [info.name for info in setup.store.list(layout.effects_prefix("r"))]


def statuses(book: EffectBook) -> dict[str, str]:
    return {effect.key: effect.status for effect in book.effects}


def pay(book: EffectBook, done: list[Any], result: Any = None, **more: Any) -> Any:
    options = {"key": "k", "arguments": ARGUMENTS, **more}
    return book.effect("pay", **options).do(lambda: (done.append(1), result)[1])


# --- once -------------------------------------------------------------------------------------------------


def test_intent_before_outcome_after(setup: Setup) -> None:
    seen: list[Effect] = []
    book = book_of(setup, changed=seen.append)
    with book.effect("pay", key="k", arguments=ARGUMENTS) as effect:
        assert len(names(setup)) == 1
        assert statuses(book_of(setup)) == {"k": "uncertain"}, "what another process would see"
        assert statuses(book) == {"k": "in_progress"}
        assert not effect.done
        assert effect.confirm({"ids": (1, 2)}) == {"ids": [1, 2]}
    assert (effect.done, effect.recorded, effect.result) == (True, False, {"ids": [1, 2]})
    assert len(names(setup)) == 2
    assert [one.status for one in seen] == ["in_progress", "confirmed"]
    assert {setup.store.head(name).retention for name in names(setup)} == {"record"}


@pytest.mark.parametrize("again", ["the same process", "another process"])
def test_what_happened_is_not_done_again(setup: Setup, again: str) -> None:
    book = book_of(setup)
    done: list[int] = []
    assert pay(book, done, {"id": 7}) == {"id": 7}
    later = book if again == "the same process" else book_of(setup)
    with later.effect("pay", key="k", arguments=ARGUMENTS) as effect:
        done.append(2)
        effect.confirm("another")
    assert (effect.result, effect.recorded, effect.done) == ({"id": 7}, True, True)
    assert pay(later, done) == {"id": 7}
    assert done == [1]
    assert len(names(setup)) == 2


def test_where_a_block_cannot_be_left_out_it_is_not_entered(setup: Setup) -> None:
    done: list[int] = []
    pay(book := book_of(setup), done, "result")
    with pytest.raises(EffectDoneError, match="cannot be left out") as raised, ExitStack() as stack:
        stack.enter_context(book.effect("pay", key="k", arguments=ARGUMENTS))
        done.append(2)
    assert raised.value.result == "result"
    assert done == [1]


def test_the_same_key_with_other_arguments_is_refused(setup: Setup) -> None:
    done: list[int] = []
    pay(book_of(setup), done)
    with pytest.raises(RefusedError, match="recorded with other arguments"):
        pay(book_of(setup), done, arguments={"n": 2})
    assert done == [1]


def test_arguments_are_those_of_the_call(setup: Setup) -> None:
    given = {"n": [1]}
    call = book_of(setup).effect("pay", key="k", arguments=given)
    given["n"].append(2)
    call.do(int)
    assert book_of(setup).effects[0].arguments == {"n": [1]}


def test_credentials_are_compared_and_not_stored(setup: Setup) -> None:
    token = "ghp_" + "A1b2" * 9
    done: list[int] = []
    arguments = {"token": token, "n": 1}
    book = book_of(setup)
    assert pay(book, done, {"echo": token}, arguments=arguments, key=f"k-{token}") == {"echo": token}
    (effect,) = book.effects
    assert token not in repr(effect)
    assert "REDACTED" in effect.key
    with pytest.raises(RedactedValueError, match="recorded result"):
        pay(book_of(setup), done, arguments=arguments, key=f"k-{token}")
    with pytest.raises(RedactedValueError, match="argument"):
        pay(book_of(setup), done, arguments={**arguments, "n": 2}, key=f"k-{token}")
    assert done == [1]


def test_an_attempt_with_credentials_may_be_made_again(setup: Setup) -> None:
    arguments = {"token": "ghp_" + "A1b2" * 9}
    book = book_of(setup)
    with book.effect("pay", key="k", arguments=arguments) as effect:
        effect.not_done()
    done: list[int] = []
    pay(book, done, arguments=arguments)
    assert done == [1]


# --- how it ends ------------------------------------------------------------------------------------------


def test_an_error_leaves_it_open(setup: Setup) -> None:
    book = book_of(setup)
    with pytest.raises(ZeroDivisionError), book.effect("pay", key="k", arguments=ARGUMENTS):
        1 / 0  # noqa: B018
    assert statuses(book) == {"k": "uncertain"}
    assert [effect.key for effect in book.undecided] == ["k"]
    for one in (book, book_of(setup)):
        with pytest.raises(NeedsDecisionError, match="nobody knows"):
            pay(one, [])


def test_a_replayable_one_may_be_done_again(setup: Setup) -> None:
    book = book_of(setup)
    with pytest.raises(ZeroDivisionError):
        book.effect("put", key="k", arguments=ARGUMENTS, replayable=True).do(lambda: 1 / 0)
    assert statuses(book) == {"k": "in_progress"}
    done: list[int] = []
    pay(book_of(setup), done, "new", replayable=True)
    assert done == [1]
    assert len(names(setup)) == 2, "one intent, one outcome"
    assert statuses(book_of(setup)) == {"k": "confirmed"}


def test_an_error_that_says_that_it_did_not_happen(setup: Setup) -> None:
    book = book_of(setup)
    call = book.effect("pay", key="k", arguments=ARGUMENTS, not_done_on=(ConnectionRefusedError,))
    with pytest.raises(ConnectionRefusedError), call:
        raise ConnectionRefusedError("nobody listens")
    assert statuses(book) == statuses(book_of(setup)) == {"k": "proposed"}
    done: list[int] = []
    pay(book_of(setup), done, 5)
    assert done == [1]
    assert statuses(book_of(setup)) == {"k": "confirmed"}
    assert len(names(setup)) == 4, "two attempts"


def test_a_block_that_says_nothing_is_an_error(setup: Setup) -> None:
    book = book_of(setup)
    with pytest.raises(UsageError, match="without saying whether"), book.effect("pay", key="k"):
        pass
    assert statuses(book) == {"k": "uncertain"}


def test_a_call_is_used_once(setup: Setup) -> None:
    call = book_of(setup).effect("pay", key="k")
    call.do(int)
    with pytest.raises(UsageError, match="used already"):
        call.do(int)
    with pytest.raises(UsageError, match="confirmed already"):
        call.confirm()
    with pytest.raises(UsageError, match="not begun"):
        book_of(setup).effect("pay", key="x").not_done()


@pytest.mark.parametrize(
    ("result", "error"), [(object(), NotSerialisableError), ("x" * 2**20, LimitExceededError)]
)
def test_a_result_that_cannot_be_recorded(setup: Setup, result: Any, error: type[ArchiverError]) -> None:
    book = book_of(setup)
    with book.effect("pay", key="k") as effect:
        with pytest.raises(error):
            effect.confirm(result)
        assert not effect.done
        effect.confirm("its id")
    assert statuses(book_of(setup)) == {"k": "confirmed"}


def test_arguments_that_cannot_be_recorded(setup: Setup) -> None:
    done: list[int] = []
    with pytest.raises(LimitExceededError):
        pay(book_of(setup), done, arguments="x" * 2**20)
    with pytest.raises(NotSerialisableError):
        pay(book_of(setup), done, arguments=object())
    with pytest.raises(UsageError, match="a key"):
        pay(book_of(setup), done, key="")
    assert (done, names(setup)) == ([], [])


# --- several at once --------------------------------------------------------------------------------------


def test_the_same_key_at_once_is_refused_and_others_are_not(setup: Setup) -> None:
    book = book_of(setup)
    inside, go_on = threading.Event(), threading.Event()
    done: list[int] = []

    def slow() -> str:
        inside.set()
        assert go_on.wait(120)
        return "slow"

    thread = threading.Thread(target=lambda: book.effect("pay", key="k", arguments=ARGUMENTS).do(slow))
    thread.start()
    assert inside.wait(120)
    with pytest.raises(NeedsDecisionError, match="right now"):
        pay(book, done)
    assert pay(book, done, "other", key="other") == "other"
    go_on.set()
    thread.join(120)
    assert pay(book, done) == "slow"
    assert done == [1]


def test_many_threads(setup: Setup) -> None:
    book = book_of(setup)
    results: dict[int, Any] = {}

    def work(number: int) -> None:
        results[number] = book.effect("pay", key=f"k{number}").do(lambda: number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert results == {number: number for number in range(8)}
    assert statuses(book_of(setup)) == {f"k{number}": "confirmed" for number in range(8)}


def test_two_copies_of_one_writer_do_it_once(setup: Setup) -> None:
    """Both have read a ledger without it: the store refuses the second intent."""
    first, second = book_of(setup), book_of(setup)
    done: list[int] = []
    with first.effect("pay", key="k", arguments=ARGUMENTS) as effect:
        with pytest.raises(NeedsDecisionError, match="nobody knows"):
            pay(second, done)
        effect.confirm("first")
    third = book_of(setup)
    assert pay(second, done) == "first", "what it read then is not the last word"
    assert pay(third, done) == "first"
    assert done == []


def test_a_copy_that_was_overtaken_is_told_so(setup: Setup) -> None:
    def overtaken() -> None:
        raise StaleWriterError("taken over")

    done: list[int] = []
    with pytest.raises(StaleWriterError):
        pay(book := book_of(setup, fence=overtaken), done)
    assert done == []
    assert statuses(book) == {"k": "proposed"}
    later = book_of(setup)
    assert statuses(later) == {"k": "proposed"}, "its intent was withdrawn, for nothing happened"
    pay(later, done)
    assert done == [1]


def test_one_that_ends_late_hears_of_another_decision(setup: Setup) -> None:
    """Somebody decided meanwhile, with the same key, that it was not done."""
    book = book_of(setup)
    with (
        pytest.raises(StaleWriterError, match="recorded that it is not-done"),
        book.effect("pay", key="k", arguments=ARGUMENTS) as effect,
    ):
        other = book_of(setup)
        intent = other._ledger.going_on("k")
        assert intent is not None
        other._records.withdrawn(intent, "looked, and it was not there")
        effect.confirm("done after all")
    assert statuses(book) == {"k": "confirmed"}


# --- the order --------------------------------------------------------------------------------------------


def test_the_order_is_ready_intent_fence_effect(setup: Setup) -> None:
    order: list[str] = []

    def look(what: str) -> Callable[[], None]:
        return lambda: order.append(f"{what} {len(names(setup))}")

    book = book_of(setup, ready=look("ready"), fence=look("fence"))
    book.effect("pay", key="k").do(look("effect"))
    assert order == ["ready 0", "fence 1", "effect 1"]


# --- a store that is away ---------------------------------------------------------------------------------


def test_without_a_recorded_intent_it_is_not_done(faulty: Setup) -> None:
    book, done = book_of(faulty, put_aside=lambda name, data: None), []
    faulty.store.error = StoreUnreachableError("no route")
    with pytest.raises(EffectNotRecordedError, match="no route"):
        pay(book, done)
    assert done == []
    faulty.store.error = None
    pay(book, done)
    assert done == [1]


def test_an_intent_whose_answer_was_lost_is_not_taken_for_that_of_another(faulty: Setup) -> None:
    book, done = book_of(faulty), []
    faulty.store.error, faulty.store.after = StoreUnreachableError("lost"), True
    with pytest.raises(EffectNotRecordedError):
        pay(book, done)
    assert len(names(faulty)) == 1
    faulty.store.error = None
    pay(book, done)
    assert (done, len(names(faulty))) == ([1], 2)


def test_an_intent_whose_answer_was_lost_is_withdrawn_at_the_end(faulty: Setup) -> None:
    aside: dict[str, bytes] = {}
    book = book_of(faulty, put_aside=aside.__setitem__)
    faulty.store.error, faulty.store.after = StoreUnreachableError("lost"), True
    with pytest.raises(EffectNotRecordedError):
        pay(book, [])
    book.close()
    faulty.store.error = None
    assert statuses(book_of(faulty)) == {"k": "uncertain"}
    for name, data in aside.items():
        faulty.store.create(name, [data], retention="record")
    assert statuses(book_of(faulty)) == {"k": "proposed"}


@pytest.mark.parametrize("how", ["replayable", "unrecorded"])
def test_what_may_be_done_without_the_store_is_put_aside(faulty: Setup, how: str) -> None:
    aside: dict[str, bytes] = {}
    more: dict[str, Any] = {"replayable": True} if how == "replayable" else {"unrecorded": "do"}
    book, done = book_of(faulty, put_aside=aside.__setitem__), []
    faulty.store.error = StoreUnreachableError("no route")
    assert pay(book, done, "result", **more) == "result"
    assert (done, names(faulty), len(aside)) == ([1], [], 2)
    faulty.store.error = None
    for name, data in aside.items():
        faulty.store.create(name, [data], retention="record")
    assert pay(book_of(faulty), done, **more) == "result"
    assert done == [1]


def test_unrecorded_goes_on_though_nobody_can_look(setup: Setup) -> None:
    def away() -> None:
        raise StoreUnreachableError("no route")

    done: list[int] = []
    pay(book_of(setup, fence=away, ready=away), done, unrecorded="do")
    assert done == [1]
    with pytest.raises(EffectNotRecordedError):
        pay(book_of(setup, fence=away), done, key="other")
    assert done == [1]
    assert statuses(book_of(setup))["other"] == "proposed"


@pytest.mark.parametrize("strict", [False, True])
def test_an_outcome_that_fits_nowhere_stands_in_the_next_checkpoint(
    faulty: Setup, strict: bool, caplog: pytest.LogCaptureFixture
) -> None:
    def full(name: str, data: bytes) -> None:
        raise StoreFullError("the disk is full")

    book = book_of(faulty, put_aside=full, strict=strict)
    call = book.effect("pay", key="k", arguments=ARGUMENTS)

    def done() -> str:
        faulty.store.error = StoreUnreachableError("no route")
        return "result"

    if strict:
        with pytest.raises(StoreUnreachableError):
            call.do(done)
    else:
        assert call.do(done) == "result"
    assert (book.effects[0].status, book.effects[0].result) == ("confirmed", "result")
    assert [one.levelno for one in caplog.records if "only in memory" in one.message] == [logging.ERROR]


def test_a_ledger_that_could_not_be_read_is_read_before_the_first_effect(setup: Setup) -> None:
    done: list[int] = []
    pay(book_of(setup), done, "before")
    ledger = Ledger(setup, "r", "t", lambda: setup.redactor(b"k" * 32))
    book = EffectBook(ledger, (), fence=int)
    assert pay(book, done) == "before"
    assert done == [1]


def test_what_is_known_to_have_happened_is_given_while_the_store_is_away(setup: Setup) -> None:
    done: list[int] = []
    away, gate = gated(setup)
    gate.error = StoreUnreachableError("not now")
    ledger = Ledger(away, "r", "t", lambda: setup.redactor(b"k" * 32))
    known = Effect(key="k", tool="pay", arguments=ARGUMENTS, result="before", status="confirmed")
    assert pay(EffectBook(ledger, (known,), fence=int), done) == "before"
    with pytest.raises(EffectNotRecordedError):
        pay(EffectBook(ledger, (known,), fence=int), done, key="other")
    assert done == []


def test_one_that_may_be_done_again_is_done_though_the_spool_cannot_be_read(setup: Setup) -> None:
    def damaged() -> None:
        raise DamagedError("a torn record")

    done: list[int] = []
    pay(book_of(setup, fence=damaged), done, replayable=True)
    with pytest.raises(DamagedError):
        pay(book_of(setup, fence=damaged), done, key="other")
    assert done == [1]


# --- asynchronous -----------------------------------------------------------------------------------------


def test_async_with(setup: Setup) -> None:
    async def work(book: EffectBook) -> tuple[Any, bool]:
        async with book.effect("pay", key="k", arguments=ARGUMENTS) as effect:
            await asyncio.sleep(0)
            done.append(1)
            effect.confirm({"id": 1})
        return effect.result, effect.recorded

    done: list[int] = []
    assert asyncio.run(work(book_of(setup))) == ({"id": 1}, False)
    assert asyncio.run(work(book_of(setup))) == ({"id": 1}, True)
    assert done == [1]


def test_ado(setup: Setup) -> None:
    async def act(amount: int) -> dict[str, int]:
        done.append(amount)
        return {"paid": amount}

    async def fail() -> None:
        raise ConnectionRefusedError

    async def work() -> None:
        book = book_of(setup)
        assert await book.effect("pay", key="k").ado(act, 5) == {"paid": 5}
        assert await book.effect("pay", key="k").ado(act, 5) == {"paid": 5}
        with pytest.raises(ConnectionRefusedError):
            await book.effect("pay", key="x", not_done_on=(ConnectionRefusedError,)).ado(fail)
        assert statuses(book) == {"k": "confirmed", "x": "proposed"}
        with pytest.raises(UsageError, match="coroutine"):
            book.effect("pay", key="y").do(act, 1)

    done: list[int] = []
    asyncio.run(work())
    assert done == [5]
    assert statuses(book_of(setup)) == {"k": "confirmed", "x": "proposed"}


def test_one_that_is_cancelled_before_it_begins_did_not_happen(setup: Setup) -> None:
    entered, go_on = threading.Event(), threading.Event()

    def wait() -> None:
        entered.set()
        assert go_on.wait(120)

    async def work() -> None:
        book = book_of(setup, fence=wait)

        async def act() -> None:
            async with book.effect("pay", key="k") as effect:
                done.append(1)
                effect.confirm()

        task = asyncio.create_task(act())
        await asyncio.to_thread(entered.wait, 30)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        go_on.set()

    done: list[int] = []
    asyncio.run(work())  # waits for its threads
    assert done == []
    assert statuses(book_of(setup)) == {"k": "proposed"}


# --- processes that die -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "status", "paid"),
    [
        ("fence", {"invoice-1": "uncertain"}, []),
        ("between", {"invoice-1": "confirmed", "invoice-2": "uncertain"}, [1, 2]),
    ],
)
def test_a_killed_process(
    setup: Setup, config: Path, tmp_path: Path, how: str, status: dict[str, str], paid: list[int]
) -> None:
    script = Path(__file__).with_name("effecting.py")
    out = tmp_path / "out"
    child = subprocess.run([sys.executable, script, config, out, how], capture_output=True, text=True)
    assert child.returncode == -signal.SIGKILL, child.stderr
    book = book_of(setup)
    assert statuses(book) == status
    for number in (1, 2):
        key = f"invoice-{number}"
        call = book.effect("pay", key=key, arguments={"n": number})
        if status.get(key) == "uncertain":
            with pytest.raises(NeedsDecisionError):
                call.do(int)
        elif key in status:
            assert call.do(int) == {"paid": number}
    written = out.read_text().split() if out.exists() else []
    assert [int(line) for line in written] == paid
