"""Work on many runs at once, so that big ones keep no small one waiting, until it is told to stop."""

from __future__ import annotations

import random
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from queue import SimpleQueue
from typing import Final, Generic, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

BIG: Final = 8 << 20
"""Bytes from which on a run is a big one."""


class Lanes(Generic[Item, Result]):
    """`work` on each item by `workers` threads: one of them takes small items as long as there are any.

    The order is another one each time: hosts with the same runs do not come to each at the same moment.
    """

    def __init__(
        self,
        work: Callable[[Item], Result],
        items: Sequence[tuple[int, Item]],
        workers: int,
        ending: threading.Event,
    ) -> None:
        """`items` have their sizes with them, in bytes; once `ending` is set nothing more is begun."""
        self._ending = ending
        self._work = work
        self._workers = min(workers, len(items))
        shuffled = list(items)
        random.shuffle(shuffled)
        self._small = deque(item for size, item in shuffled if size < BIG)
        self._big = deque(item for size, item in shuffled if size >= BIG)
        self._big_at_work = 0
        self._lock = threading.Lock()
        self._stopped = False

    def stop(self) -> None:
        """Begin nothing more; what is under way ends, and its results come."""
        self._stopped = True

    @property
    def left(self) -> list[Item]:
        """What was not begun."""
        with self._lock:
            return [*self._small, *self._big]

    def __iter__(self) -> Iterator[Result]:
        """The results as they come; what `work` raises is raised."""
        done: SimpleQueue[tuple[Result | None, BaseException | None] | None] = SimpleQueue()
        threads = [
            # Daemons, so that a request that hangs does not keep an interrupted program from ending.
            threading.Thread(target=self._labour, args=(done,), name="archiver-sweep", daemon=True)
            for _ in range(self._workers)
        ]
        for thread in threads:
            thread.start()
        ended = 0
        try:
            while ended < len(threads):
                came = done.get()
                if came is None:
                    ended += 1
                    continue
                result, error = came
                if error is not None:
                    raise error
                yield result  # type: ignore[misc]  # None only beside an error
        finally:
            self.stop()

    def _labour(self, done: SimpleQueue[tuple[Result | None, BaseException | None] | None]) -> None:
        while (taken := self._take()) is not None:
            item, big = taken
            try:
                done.put((self._work(item), None))
            except BaseException as error:
                done.put((None, error))
            finally:
                if big:
                    with self._lock:
                        self._big_at_work -= 1
            del item, taken
        done.put(None)

    def _take(self) -> tuple[Item, bool] | None:
        with self._lock:
            if self._stopped or self._ending.is_set():
                return None
            room = self._big_at_work < self._workers - 1 or not self._small
            if self._big and room:
                self._big_at_work += 1
                return self._big.popleft(), True
            return (self._small.popleft(), False) if self._small else None
