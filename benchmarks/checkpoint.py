"""What a call of `checkpoint` costs the loop while the background writer is busy, and whether memory grows.

    python benchmarks/checkpoint.py [MEGABYTES …]      0.1 and 10 by default

The transcript grows by 1 % before each call. In the same loop, taking turns: one `orjson.dumps` of the same
messages, which is the least that a snapshot can cost, and what a peer does in the call itself: pickle, write,
fsync. The same is measured before there is a writer. Machines are noisy: compare ratios; `busy` says what a
thread that computes does to any other. Then how many are saved a second where each is waited for, and the
resident memory over 2,000 checkpoints: what the allocator keeps, beside the objects that are alive.
"""

from __future__ import annotations

import gc
import os
import pickle
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

sys.path.insert(0, str(Path(__file__).parent))
import generate

TARGETS = {0.1: (0.5, None), 10.0: (15.0, 50.0)}
"""Milliseconds at the median and at the 99th percentile, by megabytes."""
CALLS = {0.1: 1000, 10.0: 200}
MEMORY_CALLS = 2000
SAVES = {0.1: 50, 10.0: 8}
"""Checkpoints that are sealed one after the other, by megabytes."""
Timed = dict[str, list[float]]
Versions = Iterator[list[dict[str, Any]]]


def turn(rng: random.Random, number: int) -> list[dict[str, Any]]:
    """A tool call and its result."""
    call = {
        "type": "tool_use",
        "id": f"toolu_{number:020d}",
        "name": "Bash",
        "input": {"command": generate._text(rng, 8)},
    }
    text = {"type": "text", "text": generate._text(rng, 40)}
    result = {"type": "tool_result", "tool_use_id": call["id"], "content": generate._output(rng)}
    return [{"role": "assistant", "content": [text, call]}, {"role": "user", "content": [result]}]


def conversation(megabytes: float) -> Versions:
    """The messages before each call: of about that size, the last 1 % new; of ten versions in turn the oldest
    is cut back, as a harness does that makes room."""
    rng = random.Random(1)  # noqa: S311 - a benchmark's filler
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Go on."}]
    number = size = 0

    def grow(to: float) -> None:
        nonlocal number, size
        while size < to:
            new = turn(rng, number)
            messages.extend(new)
            number, size = number + 1, size + len(orjson.dumps(new))

    grow(megabytes * 1e6)
    base, base_size = len(messages), size
    while True:
        for step in range(1, 11):
            grow(base_size + step * megabytes * 1e4)
            yield messages
        del messages[base:]
        size = base_size


def timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1e3


def peer(messages: list[dict[str, Any]], path: Path) -> None:
    """A synchronous saver: everything happens in the call."""
    with path.open("wb") as file:
        pickle.dump(messages, file, protocol=pickle.HIGHEST_PROTOCOL)
        file.flush()
        os.fsync(file.fileno())


def measure(megabytes: float) -> None:
    """One size, in this process."""
    with tempfile.TemporaryDirectory(prefix="archiver-bench-") as name:
        folder = Path(name)
        versions = conversation(megabytes)
        idle: Timed = {"orjson.dumps": [], "peer": []}
        for messages, _ in zip(versions, range(20), strict=False):
            idle["orjson.dumps"].append(timed(lambda m=messages: orjson.dumps(m)))  # type: ignore[misc]
            idle["peer"].append(timed(lambda m=messages: peer(m, folder / "peer")))  # type: ignore[misc]
        report(f"{megabytes:g} MB, no writer", idle, None)
        busy, statuses = with_writer(megabytes, versions, folder)
        report(f"{megabytes:g} MB, writer busy ({statuses})", busy, TARGETS.get(megabytes))
        throughput(megabytes, versions, folder)


def with_writer(
    megabytes: float, versions: Iterator[list[dict[str, Any]]], folder: Path
) -> tuple[Timed, str]:
    """The calls and what they are compared with, taking turns, and what became of the checkpoints."""
    import archiver

    busy: Timed = {"checkpoint": [], "orjson.dumps": [], "peer": []}
    tickets = []
    rng = random.Random(2)  # noqa: S311 - as above
    with archiver.run("bench", policy="async", config=configured(folder)) as run:
        first = run.checkpoint(next(versions), phase="begin", force=True)
        first.wait(60)
        for number in range(CALLS.get(megabytes, 200)):
            messages = next(versions)
            # As an agent comes from waiting for its model, anywhere in what the writer does.
            time.sleep(rng.uniform(0, 0.04))
            busy["checkpoint"].append(
                timed(lambda m=messages: tickets.append(run.checkpoint(m, note="a step")))  # type: ignore[misc]
            )
            for name, work in (("orjson.dumps", orjson.dumps), ("peer", lambda m: peer(m, folder / "peer"))):
                time.sleep(rng.uniform(0, 0.02))
                if name == "orjson.dumps" or number % 4 == 0:
                    busy[name].append(timed(lambda m=messages, w=work: w(m)))  # type: ignore[misc]
        run.flush(120)
    counted: dict[str, int] = {}
    for ticket in tickets:
        counted[ticket.status] = counted.get(ticket.status, 0) + 1
    return busy, ", ".join(f"{count} {status}" for status, count in sorted(counted.items()))


def throughput(megabytes: float, versions: Versions, folder: Path) -> None:
    """How many are sealed and stored a second, what of that is computing, how often a disk is waited for."""
    import archiver

    count, syncs = SAVES.get(megabytes, 8), 0
    sync = os.fsync

    def counted(handle: int) -> None:
        nonlocal syncs
        syncs += 1
        sync(handle)

    os.fsync = counted
    with archiver.run("bench-saves", policy="async", config=folder / "archiver.toml") as run:
        run.checkpoint(next(versions), force=True).wait(60)
        taken = [orjson.loads(orjson.dumps(next(versions))) for _ in range(count)]
        before, started, computing = syncs, time.perf_counter(), time.process_time()
        for number, messages in enumerate(taken):
            run.checkpoint(messages, note=f"step {number}").wait(60)
        sealed = time.perf_counter() - started
        run.flush(120)
        stored = time.perf_counter() - started
        computing = time.process_time() - computing
        each = (syncs - before) / count
    os.fsync = sync
    print(
        f"\n{megabytes:g} MB, one after the other: {count / sealed:.1f} sealed and {count / stored:.1f} "
        f"stored a second; each computes for {computing / count * 1e3:.1f} ms and waits for {each:.0f} syncs"
    )


def memory() -> None:
    """Resident memory over many checkpoints of a small transcript, each of them saved."""
    import archiver

    with tempfile.TemporaryDirectory(prefix="archiver-bench-") as name:
        versions = conversation(0.02)
        with archiver.run("bench", policy="async", config=configured(Path(name))) as run:
            print(f"\nmemory over {MEMORY_CALLS} checkpoints, each of them stored")
            for number in range(1, MEMORY_CALLS + 1):
                run.checkpoint(next(versions), note=f"step {number}").wait(60)
                if number % (MEMORY_CALLS // 4) == 0:
                    run.flush(60)
                    gc.collect()
                    alive = len(gc.get_objects())
                    print(f"  {number:5} checkpoints  {resident():7.1f} MB  {alive:7} objects")


def configured(folder: Path) -> Path:
    """The configuration of a new store, in an environment of its own."""
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"):
        os.environ[name] = str(folder / name.lower())
    os.environ["ARCHIVER_RUN__FLOOR"] = "0s"
    from archiver.config import load
    from archiver.setup import initialise

    config = folder / "archiver.toml"
    initialise(str(folder / "store"), config, settings=load(), now=datetime.now(UTC))
    return config


def report(title: str, results: Timed, target: tuple[float, float | None] | None) -> None:
    print(f"\n{title}")
    dumps = percentile(results["orjson.dumps"], 0.5)
    for name, times in results.items():
        median, late = percentile(times, 0.5), percentile(times, 0.99)
        line = (
            f"  {name:14} median {median:8.2f} ms  p99 {late:8.2f} ms  {median / dumps:6.2f} x orjson.dumps"
        )
        if name == "checkpoint" and target is not None:
            p99 = "" if target[1] is None else f", p99 {target[1]:g} ms"
            line += f"   (wanted: median {target[0]:g} ms{p99})"
        print(line)


def percentile(times: list[float], part: float) -> float:
    return sorted(times)[min(len(times) - 1, int(len(times) * part))]


def resident() -> float:
    """Resident memory now, in MB."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["--one"]:
        measure(float(arguments[1]))
    elif arguments[:1] == ["--memory"]:
        memory()
    else:
        for megabytes in arguments or list(map(str, TARGETS)):
            subprocess.run([sys.executable, __file__, "--one", megabytes], check=True)
        subprocess.run([sys.executable, __file__, "--memory"], check=True)


if __name__ == "__main__":
    main(sys.argv[1:])
