"""Parallel work: order, bounds, errors in their place, threads that end, interruptions that do not wait."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from archiver.parallel import in_order

INTERRUPTED = """
import threading, time
from archiver.parallel import in_order
never = threading.Event()
print("ready", flush=True)
list(in_order(lambda n: never.wait(), range(8), workers=4))
"""

FORKED = """
import os, signal, threading, warnings
from archiver.parallel import in_order
warnings.simplefilter("ignore")
hold = threading.Event()
results = in_order(lambda n: n == 0 or hold.wait(30), range(4), workers=2)
next(results)
child = os.fork()
if child == 0:
    signal.alarm(10)
    results.close()
    os._exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
hold.set()
results.close()
"""


def parallel_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "archiver-parallel"]


@pytest.mark.parametrize("workers", [1, 2, 7])
def test_results_come_in_order(workers: int) -> None:
    def work(number: int) -> int:
        time.sleep(0.001 * (number % 3))
        return number * number

    assert list(in_order(work, range(60), workers=workers)) == [number * number for number in range(60)]
    assert parallel_threads() == []


def test_nothing_to_do() -> None:
    assert list(in_order(str, [], workers=4)) == []
    assert parallel_threads() == []


def test_work_is_done_at_the_same_time() -> None:
    together = threading.Barrier(4, timeout=120)
    assert len(list(in_order(lambda _: together.wait(), range(8), workers=4))) == 8


def test_only_so_many_items_are_taken_ahead() -> None:
    taken = 0

    def items() -> Iterator[int]:
        nonlocal taken
        for number in range(100):
            taken += 1
            yield number

    results = in_order(lambda number: number, items(), workers=3, ahead=6)
    assert next(results) == 0
    time.sleep(0.2)
    assert taken <= 8  # those six, the one that was handed out, and one that waits for room
    assert list(results) == list(range(1, 100))


@pytest.mark.parametrize("workers", [1, 3])
def test_an_error_comes_at_its_place(workers: int) -> None:
    def work(number: int) -> int:
        if number == 5:
            raise ValueError("five")
        return number

    seen = []
    with pytest.raises(ValueError, match="five"):
        for result in in_order(work, range(50), workers=workers):
            seen.append(result)  # noqa: PERF402 - what came before the error counts
    assert seen == [0, 1, 2, 3, 4]
    assert parallel_threads() == []


@pytest.mark.parametrize("workers", [1, 3])
def test_an_error_of_the_items_comes_after_what_they_gave(workers: int) -> None:
    def items() -> Iterator[int]:
        yield from range(4)
        raise KeyError("no more")

    seen = []
    with pytest.raises(KeyError, match="no more"):
        for result in in_order(lambda number: number, items(), workers=workers):
            seen.append(result)  # noqa: PERF402 - as above
    assert seen == [0, 1, 2, 3]
    assert parallel_threads() == []


def test_threads_end_when_the_rest_is_not_wanted() -> None:
    done = 0

    def work(number: int) -> int:
        nonlocal done
        time.sleep(0.02)
        done += 1
        return number

    results = in_order(work, range(1000), workers=4)
    assert next(results) == 0
    results.close()
    assert parallel_threads() == []
    assert done < 30


def test_a_fork_can_drop_what_it_inherits() -> None:
    """A child has the generator but not its threads; closing it there neither waits nor fails."""
    done = subprocess.run([sys.executable, "-c", FORKED], capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.stderr) == ("0\n", "")


def test_an_interruption_does_not_wait_for_what_hangs() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        try:
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n"
            time.sleep(0.3)
            os.kill(child.pid, signal.SIGINT)
            _, errors = child.communicate(timeout=120)  # what hangs never ends
            assert child.returncode in (-signal.SIGINT, 130), errors
        finally:
            child.kill()
