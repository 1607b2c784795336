"""A file that looks as it did is not read again, and one that may have changed is."""

from __future__ import annotations

import os
import random
import time
import tracemalloc
from dataclasses import replace
from pathlib import Path

import pytest

from archiver.model.workspace import TreeEntry
from archiver.workspace.cache import StatCache
from archiver.workspace.found import Found, Stamp
from workspace.trees import captured

LATER = 10 * 10**9


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "root").mkdir()
    path = tmp_path / "root" / "file"
    path.write_bytes(b"first")
    return path


def found(file: Path) -> Found:
    return next(captured(file.parent).found)


def digested(one: Found, **changed: object) -> TreeEntry:
    return replace(one.entry, sha256="ab" * 32, **changed)  # type: ignore[arg-type]


def test_what_looks_the_same_is_known(file: Path) -> None:
    cache, one = StatCache(), found(file)
    assert cache.known(one) is None
    entry = digested(one, size=99, redacted=True)
    cache.keep(one, entry, time.time_ns() + LATER)
    assert cache.known(found(file)) == entry


def touched(file: Path) -> None:
    os.utime(file, ns=(0, 0))


def rewritten_with_its_old_time(file: Path) -> None:
    before = file.stat().st_mtime_ns
    file.write_bytes(b"FIRST")
    os.utime(file, ns=(before, before))


def another_file_under_its_name(file: Path) -> None:
    before = file.stat()
    file.with_name("other").write_bytes(b"other")
    os.utime(file.with_name("other"), ns=(before.st_mtime_ns, before.st_mtime_ns))
    file.with_name("other").rename(file)


def longer(file: Path) -> None:
    before = file.stat().st_mtime_ns
    file.write_bytes(b"first and more")
    os.utime(file, ns=(before, before))


def another_mode(file: Path) -> None:
    file.chmod(0o600)


@pytest.mark.parametrize(
    "change", [touched, rewritten_with_its_old_time, another_file_under_its_name, longer, another_mode]
)
def test_what_was_changed_is_not_known(file: Path, change: object) -> None:
    cache, one = StatCache(), found(file)
    cache.keep(one, digested(one), time.time_ns() + LATER)
    change(file)  # type: ignore[operator]
    assert cache.known(found(file)) is None


@pytest.mark.parametrize("field", range(5))
def test_each_part_of_the_stamp_counts(file: Path, field: int) -> None:
    cache, one = StatCache(), found(file)
    cache.keep(one, digested(one), time.time_ns() + LATER)
    stamp = Stamp(*(value + (place == field) for place, value in enumerate(one.stamp)))
    assert cache.known(replace(one, stamp=stamp)) is None
    assert cache.known(one) is not None


@pytest.mark.parametrize(("written", "kept"), [(-3, True), (-1, False), (0, False), (5, False)])
def test_a_file_that_was_written_shortly_before_is_read_again(file: Path, written: int, kept: bool) -> None:
    """In the same tick of a clock a second change has the same time."""
    one, began = found(file), 1_000 * 10**9
    moment = began + written * 10**9
    for stamp in (
        one.stamp._replace(mtime_ns=moment, ctime_ns=0),
        one.stamp._replace(mtime_ns=0, ctime_ns=moment),
    ):
        cache, racy = StatCache(), replace(one, stamp=stamp)
        cache.keep(racy, digested(one), began)
        assert (cache.known(racy) is not None) is kept


def test_a_capture_that_does_not_say_when_it_began_keeps_nothing(file: Path) -> None:
    cache, one = StatCache(), found(file)
    cache.keep(one, digested(one), 0)
    assert len(cache) == 0


def test_what_was_copied_in_memory_is_never_known(file: Path) -> None:
    cache, one = StatCache(), found(file)
    held = replace(one, source=b"a database")
    cache.keep(held, digested(one), time.time_ns() + LATER)
    assert len(cache) == 0
    cache.keep(one, digested(one), time.time_ns() + LATER)
    assert cache.known(held) is None


def test_what_is_not_kept_again_is_forgotten(file: Path) -> None:
    """Also what was known: a file may look the same and be carried in another way by now."""
    cache, one = StatCache(), found(file)
    other = replace(one, entry=replace(one.entry, path="other"))
    for kept in (one, other):
        cache.keep(kept, digested(kept), time.time_ns() + LATER)
    cache.settle()
    assert len(cache) == 2
    assert cache.known(other) is not None
    cache.keep(one, digested(one), time.time_ns() + LATER)
    cache.settle()
    assert (cache.known(one) is not None, cache.known(other)) == (True, None)
    cache.clear()
    assert cache.known(one) is None


def test_what_a_save_kept_that_came_to_nothing_is_forgotten(file: Path) -> None:
    cache, one = StatCache(), found(file)
    cache.keep(one, digested(one), time.time_ns() + LATER)
    cache.begin()
    assert cache.known(one) is None


def test_times_before_all_clocks_have_room(file: Path) -> None:
    os.utime(file, ns=(-(2**31) * 10**9, -(2**31) * 10**9))
    cache, one = StatCache(), found(file)
    cache.keep(one, digested(one), time.time_ns() + LATER)
    assert cache.known(one) == digested(one)


def test_memory(file: Path) -> None:
    cache, one, draw = StatCache(), found(file), random.Random(4)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for number in range(5000):
        path = f"packages/module{draw.randrange(400)}/source/{draw.randbytes(6).hex()}-{number}.py"
        other = replace(one, entry=replace(one.entry, path=path))
        cache.keep(other, digested(other), time.time_ns() + LATER)
    del other, path
    used = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert used / 5000 < 300
