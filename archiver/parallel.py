"""Work on many things at once: results in order, a bounded distance ahead, threads that end with the work.

    items → feeder thread → worker threads → results, in the order of the items

The threads belong to one iteration and to nobody else, so nothing of them is left for a fork to copy.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Generic, TypeVar

from archiver.errors import StoreUnreachableError

Item = TypeVar("Item")
Result = TypeVar("Result")

_PATIENCE = 5.0
"""Seconds to wait for requests under way when nobody wants their results; then they are left to end alone."""


def in_order(
    work: Callable[[Item], Result],
    items: Iterable[Item],
    *,
    workers: int,
    ahead: int | None = None,
    patience: float = _PATIENCE,
) -> Generator[Result]:
    """`work(item)` for each item, by up to `workers` threads, in the order of the items.

    At most `ahead` items (4 a worker) are taken before the caller asks for their results; taking them has a
    thread of its own, so that slow `items` are fetched while others are worked on. What `work` or `items`
    raises is raised at its place. With one worker all is done by the caller, when it asks.

    The threads end when the generator ends or is closed, which waits up to `patience` seconds for what is
    under way; an interruption (Ctrl-C) does not wait for them.
    """
    if workers <= 1:
        yield from map(work, items)
        return
    line = _Line(work, items, workers, ahead or 4 * workers)
    try:
        yield from line.results()
    except (Exception, GeneratorExit):
        raise
    except BaseException:
        patience = 0.0
        raise
    finally:
        line.end(patience)


def in_time(work: Callable[[], Result], patience: float, *, name: str = "archiver-in-time") -> Result:
    """What `work` gives or raises, in a thread of its own; `StoreUnreachableError` after `patience` seconds.

    For a store or a key service that may hang through all its attempts. What was begun goes on as long as the
    process does, and may yet come to its end.
    """
    coming: Future[Result] = Future()

    def labour() -> None:
        try:
            coming.set_result(work())
        except BaseException as error:
            coming.set_exception(error)

    thread = threading.Thread(target=labour, name=name, daemon=True)
    thread.start()
    thread.join(patience)
    if not coming.done():
        raise StoreUnreachableError(
            f"the store or the key service has not answered within {patience:g} seconds"
        )
    return coming.result()


class _Line(Generic[Item, Result]):
    def __init__(
        self, work: Callable[[Item], Result], items: Iterable[Item], workers: int, ahead: int
    ) -> None:
        self._work = work
        self._items = items
        self._workers = workers
        self._room = threading.Semaphore(ahead)
        self._todo: SimpleQueue[tuple[Item, Future[Result]] | None] = SimpleQueue()
        self._results: SimpleQueue[Future[Result] | None] = SimpleQueue()
        self._unwanted = False
        self._process = os.getpid()
        self._threads: list[threading.Thread] = []

    def results(self) -> Generator[Result]:
        self._start(self._feed)
        while (coming := self._results.get()) is not None:
            result = coming.result()
            self._room.release()
            yield result

    def end(self, patience: float) -> None:
        """Let the threads end, and wait for them so long; after a fork they are not there."""
        if os.getpid() != self._process:
            return
        self._unwanted = True
        self._room.release()
        until = time.monotonic() + patience
        for thread in self._threads:  # the feeder is the first; after it no worker is added
            thread.join(max(0.0, until - time.monotonic()))

    def _start(self, target: Callable[[], None]) -> None:
        # Daemons, so that a request that hangs does not keep an interrupted program from ending.
        thread = threading.Thread(target=target, name="archiver-parallel", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _feed(self) -> None:
        """Hand out the items; a worker is started with each of the first."""
        started = 0
        try:
            for item in self._items:
                self._room.acquire()
                if self._unwanted:
                    break
                coming: Future[Result] = Future()
                self._results.put(coming)
                self._todo.put((item, coming))
                if started < self._workers:
                    started += 1
                    self._start(self._labour)
        except BaseException as error:
            failed: Future[Result] = Future()
            failed.set_exception(error)
            self._results.put(failed)
        finally:
            self._results.put(None)
            for _ in range(started):
                self._todo.put(None)

    def _labour(self) -> None:
        while (task := self._todo.get()) is not None:
            self._do(*task)
            del task  # While it waits for the next one, it keeps nothing of this one.

    def _do(self, item: Item, coming: Future[Result]) -> None:
        if self._unwanted:
            return
        try:
            coming.set_result(self._work(item))
        except BaseException as error:
            coming.set_exception(error)
