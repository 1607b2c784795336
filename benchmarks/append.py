"""What a save costs of a transcript of which the last one had nearly all, beside a full one and other tools.

    python benchmarks/append.py [MEGABYTES]      100 by default

A generated run of that size (calls, files, logs with numbers that do not compress) is saved by a process that
goes on: the first save is full, then 2 % is appended and saved again, three times over. Printed are bytes and
seconds of processor time of the second save as parts of a full one, the time of the call of `checkpoint`, and
the peak of resident memory; and for restic and borg, where they are installed, what they add to a repository
of the first snapshot for the second one. Machines are noisy: the ratios within one run count.
"""

from __future__ import annotations

import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import orjson

sys.path.insert(0, str(Path(__file__).parent))
import checkpoint
import generate

MEGABYTES: Final = 100.0
PART: Final = 0.02
APPENDED: Final = 3
"""Times that this part is appended."""
WANTED_BYTES, WANTED_TIME = 0.03, 0.25
PASSWORD: Final = "benchmark"  # noqa: S105 - of repositories that are gone in a moment


@dataclass
class Run:
    """Messages that grow."""

    rng: random.Random
    messages: list[dict[str, Any]]
    turns: int = 0
    size: int = 0

    def grow(self, to: float) -> None:
        """Turns until there are so many bytes."""
        while self.size < to:
            turn = checkpoint.turn(self.rng, self.turns)
            turn[1]["content"][0]["content"] += "\n" + "\n".join(self._log())
            self.messages += turn
            self.turns, self.size = self.turns + 1, self.size + len(orjson.dumps(turn))

    def _log(self) -> Iterator[str]:
        rng = self.rng
        for _ in range(rng.randrange(5, 60)):
            at = f"{rng.randrange(24):02d}:{rng.randrange(60):02d}:{rng.random() * 60:09.6f}"
            word, took = rng.choice(generate.WORDS), rng.random() * 1e3
            yield f"2026-03-02T{at}Z req={rng.getrandbits(64):016x} {word} took {took:.3f} ms"


@dataclass
class Saved:
    """One save: bytes of its bundle, seconds until it is stored, of the processor, and of the call alone."""

    stored: int
    seconds: float
    computing: float
    call: float


def measure(megabytes: float) -> None:
    """All saves, in one process; then those of others."""
    with tempfile.TemporaryDirectory(prefix="archiver-bench-") as name:
        folder = Path(name)
        run = Run(random.Random(1), [{"role": "user", "content": "Go on."}])  # noqa: S311 - a filler
        run.grow(megabytes * 1e6)
        before = checkpoint.resident()
        snapshots = folder / "snapshots"
        snapshots.mkdir()
        saved = saves(run, folder, megabytes, snapshots)
        first, second = saved[0], saved[1]
        print(f"\n{megabytes:g} MB, {PART:.0%} appended each time")
        for number, one in enumerate(saved):
            print(
                f"  save {number + 1}: {one.stored / 1e3:8.1f} kB  {one.computing:6.2f} s of computing  "
                f"{one.seconds:6.2f} s until it is stored, {one.call * 1e3:.0f} ms of it in the call"
            )
        size, took = second.stored / first.stored, second.computing / first.computing
        print(f"  bytes of the second, as part of the full one: {size:.1%}   (wanted: {WANTED_BYTES:.0%})")
        print(f"  time of the second, as part of the full one:  {took:.1%}   (wanted: {WANTED_TIME:.0%})")
        appended = second.stored / (megabytes * 1e6 * PART)
        print(f"  bytes of the second, as part of what was appended: {appended:.1%}")
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
        print(f"  memory: {before:.0f} MB with the messages alone, {peak:.0f} MB at most")
        restic(snapshots, folder)
        borg(snapshots, folder)


def saves(run: Run, folder: Path, megabytes: float, snapshots: Path) -> list[Saved]:
    """The full one, and those after it; the first two states of the messages are left as files."""
    config = checkpoint.configured(folder)
    import archiver

    found = []
    with archiver.run("bench", policy="async", config=config) as opened:
        for number in range(1 + APPENDED):
            if number:
                run.grow(run.size + megabytes * 1e6 * PART)
            if number < 2:
                write(run.messages, snapshots / f"{number}.jsonl")
            before, computing, started = stored(folder), time.process_time(), time.perf_counter()
            ticket = opened.checkpoint(run.messages, note=f"step {number}")
            call = time.perf_counter() - started
            ticket.wait(600)
            opened.flush(600)
            seconds = time.perf_counter() - started
            found.append(Saved(stored(folder) - before, seconds, time.process_time() - computing, call))
    return found


def stored(folder: Path) -> int:
    """Bytes of all bundles and records."""
    store = folder / "store"
    kinds = ("bundles", "records")
    return sum(path.stat().st_size for kind in kinds for path in (store / kind).rglob("*") if path.is_file())


def write(messages: list[dict[str, Any]], path: Path) -> None:
    with path.open("wb") as file:
        file.writelines(orjson.dumps(message) + b"\n" for message in messages)


def restic(snapshots: Path, folder: Path) -> None:
    """The same file, first as it was and then as it became."""
    environ = {"RESTIC_PASSWORD": PASSWORD, "RESTIC_REPOSITORY": str(folder / "restic")}
    beside("restic", snapshots, folder, environ, ("init",), ("backup", "--quiet"))


def borg(snapshots: Path, folder: Path) -> None:
    environ = {"BORG_PASSPHRASE": PASSWORD, "BORG_BASE_DIR": str(folder / "borg-home")}
    repository = str(folder / "borg")
    make = ("create", "--compression", "zstd", f"{repository}::{{now:%f}}")
    beside("borg", snapshots, folder, environ, ("init", "--encryption", "repokey", repository), make)


def beside(
    tool: str,
    snapshots: Path,
    folder: Path,
    environ: dict[str, str],
    begin: tuple[str, ...],
    save: tuple[str, ...],
) -> None:
    """What another tool adds for the second snapshot, and how long it takes."""
    program = shutil.which(tool)
    if program is None:
        print(f"  {tool}: not installed (Debian: apt-get install restic borgbackup)")
        return
    home = {**os.environ, "HOME": str(folder), "XDG_CACHE_HOME": str(folder / "cache"), **environ}
    tree = folder / "tree"
    tree.mkdir(exist_ok=True)

    def run(*words: str) -> float:
        started = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([program, *words], env=home, check=True, capture_output=True)
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        return ended.ru_utime + ended.ru_stime - started.ru_utime - started.ru_stime

    run(*begin)
    sizes, times = [0], []
    for number in range(2):
        shutil.copyfile(snapshots / f"{number}.jsonl", tree / "messages.jsonl")
        times.append(run(*save, str(tree)))
        sizes.append(sum(path.stat().st_size for path in (folder / tool).rglob("*") if path.is_file()))
    first, second = sizes[1], sizes[2] - sizes[1]
    print(
        f"  {tool}: first {first / 1e3:.1f} kB in {times[0]:.2f} s of computing, "
        f"second +{second / 1e3:.1f} kB in {times[1]:.2f} s"
    )


if __name__ == "__main__":
    measure(float(sys.argv[1]) if sys.argv[1:] else MEGABYTES)
