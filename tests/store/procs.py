"""Runs in a process of its own, forks writers of one store and kills them: `procs.py VERB ROOT`.

Prints one JSON document on what the writers said; the test looks at what they left.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from archiver.errors import AlreadyExistsError
from archiver.model import RetentionClass
from archiver.store import ObjectInfo
from archiver.store.local import LocalStore

CLASSES: tuple[RetentionClass, ...] = ("live", "intermediate", "success", "failure", "hold", "record")
STEPS = ("open", "mkdir", "write", "fsync", "link", "rename", "unlink", "pwrite", "ftruncate", "close")


def fork(work: Callable[..., int], *arguments: Any) -> int:
    """Start `work` in a child, which exits with what it returns."""
    if child := os.fork():
        return child
    code = 70
    try:
        code = work(*arguments)
    finally:
        os._exit(code)


def race(root: Path, rounds: int = 15, writers: int = 6) -> Any:
    """Several processes create the same name; says by round who won."""
    winners = []
    for number in range(1, rounds + 1):
        start = time.time() + 0.02
        name = f"records/run-{number % 3}/{number:08d}.age"
        children = [fork(_contend, root, name, me, start) for me in range(writers)]
        codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        winners.append([name, [CLASSES[me] for me, code in enumerate(codes) if code == 0], sorted(codes)])
    return winners


def _contend(root: Path, name: str, me: int, start: float) -> int:
    store = LocalStore(root)
    time.sleep(max(0.0, start - time.time()))
    try:
        store.create(name, [CLASSES[me].encode()] * 100, retention=CLASSES[me])
    except AlreadyExistsError:
        return 1
    return 0


def kill_steps(root: Path) -> Any:
    """One writer a system call: number N dies by SIGKILL right before its Nth call, until one survives.

    Each has a store of its own, so that all make the same calls; says the number of the survivor.
    """
    return _kill_each(root, lambda _: None, _create_one)


def kill_replace_steps(root: Path) -> Any:
    """The same for a writer that replaces an object which is there."""
    return _kill_each(root, _create_one, _replace_one)


def _kill_each(root: Path, before: Callable[[Path], None], work: Callable[[Path], None]) -> Any:
    for number in itertools.count(1):
        (root / str(number)).mkdir()
        before(root / str(number))
        child = fork(_die_at, root / str(number), number, work)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if code == 0:
            return number
        assert code == -signal.SIGKILL, code
    return None


def _die_at(root: Path, number: int, work: Callable[[Path], None]) -> int:
    calls = itertools.count(1)
    for word in STEPS:
        setattr(os, word, _counted(getattr(os, word), calls, number))
    work(root)
    return 0


def _create_one(root: Path) -> None:
    _create(root, "records/run/00000001.age")


def _replace_one(root: Path) -> None:
    store = LocalStore(root)
    was = store.head("records/run/00000001.age")
    store.replace(was.name, [b"new", b"bytes"] * 100, was=was)


def race_replace(root: Path, rounds: int = 10, writers: int = 4) -> Any:
    """Several processes replace the same state of an object; says by round who did."""
    winners = []
    for number in range(1, rounds + 1):
        store, name = LocalStore(root), f"records/run/{number:08d}.age"
        store.create(name, [b"old"], retention="hold")
        was, start = store.head(name), time.time() + 0.02
        children = [fork(_contend_replace, root, was, me, start) for me in range(writers)]
        codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        winners.append([name, [me for me, code in enumerate(codes) if code == 0], sorted(codes)])
    return winners


def _contend_replace(root: Path, was: ObjectInfo, me: int, start: float) -> int:
    store = LocalStore(root)
    time.sleep(max(0.0, start - time.time()))
    try:
        store.replace(was.name, [b"%d" % me] * 100, was=was)
    except AlreadyExistsError:
        return 1
    return 0


def _counted(call: Callable[..., Any], calls: Iterator[int], number: int) -> Callable[..., Any]:
    def counted(*args: Any, **named: Any) -> Any:
        if next(calls) == number:
            os.kill(os.getpid(), signal.SIGKILL)
        return call(*args, **named)

    return counted


def kill_randomly(root: Path, rounds: int = 60) -> Any:
    """Writers die by SIGKILL at random moments; says who had returned from `create` before.

    The first is not disturbed: it shows how long a write takes here and now.
    """
    returned = []
    usual = 0.0
    chance = random.Random(7)
    for number in range(1, rounds + 1):
        read, write = os.pipe()
        child = fork(_create_and_tell, root, number, write)
        os.close(write)
        os.read(read, 1)  # it has begun
        began = time.monotonic()
        if number == 1:
            os.read(read, 1)
            usual = time.monotonic() - began
            returned.append(1)
        time.sleep(chance.random() * usual * 1.5)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        returned += [number] * len(os.read(read, 1))
        os.close(read)
    return returned


def _create_and_tell(root: Path, number: int, write: int) -> int:
    os.write(write, b"1")
    _create(root, f"records/run-{number % 7}/{number:08d}.age")
    os.write(write, b"2")
    time.sleep(60)
    return 0


def _create(root: Path, name: str) -> None:
    LocalStore(root).create(name, [name.encode() * 50] * 20, retention="record")


if __name__ == "__main__":
    verbs = {
        "race": race,
        "race_replace": race_replace,
        "kill_steps": kill_steps,
        "kill_replace_steps": kill_replace_steps,
        "kill_randomly": kill_randomly,
    }
    json.dump(verbs[sys.argv[1]](Path(sys.argv[2])), sys.stdout)
