"""A folder with many files: the walk of a capture alone, with what was seen before, and memory.

    python benchmarks/workspace_walk.py [FILES]

50,000 small files by default, twenty a folder, four folders deep. Prints seconds of the processor, the best
of some rounds, and ratios to a bare `os.scandir` with a look at each entry.
"""

from __future__ import annotations

import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from archiver.scratch import Scratch
from archiver.workspace.cache import StatCache
from archiver.workspace.captured import Capture, CaptureOptions, capture_folder

ROUNDS = 5


def fill(root: Path, files: int) -> None:
    """Text files of forty bytes."""
    for number in range(files):
        folder = root / f"part{number // 8000}" / f"package{number // 400}" / f"module{number // 20}"
        if number % 20 == 0:
            folder.mkdir(parents=True)
        (folder / f"source_{number}.py").write_bytes(b"value = 1234567890\n" * 2)


def bare(folder: str) -> int:
    """The entries below a folder, each looked at."""
    count = 0
    with os.scandir(folder) as entries:
        for entry in entries:
            entry.stat(follow_symlinks=False)
            count += 1
            if entry.is_dir(follow_symlinks=False):
                count += bare(entry.path)
    return count


def seconds(work: Callable[[], object]) -> float:
    """Of the processor, the best of some rounds."""
    best = float("inf")
    for _ in range(ROUNDS):
        started = time.process_time()
        work()
        best = min(best, time.process_time() - started)
    return best


def main(files: int) -> None:
    with tempfile.TemporaryDirectory() as place, Scratch(Path(place)) as scratch:
        root = Path(place) / "root"
        root.mkdir()
        fill(root, files)

        def capture() -> Capture:
            return capture_folder(root, CaptureOptions(), scratch, ())

        cache = StatCache()
        for found in capture().found:
            if found.entry.type == "file":
                cache.keep(found, replace(found.entry, sha256="ab" * 32), time.time_ns() + 10**11)
        cache.settle()

        def unchanged() -> None:
            for found in capture().found:
                known = cache.known(found) if found.entry.type == "file" else found.entry
                assert known is not None
            cache.settle()

        plain = seconds(lambda: bare(str(root)))
        walk = seconds(lambda: sum(1 for _ in capture().found))
        seen = seconds(unchanged)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{files} files: bare {plain:.3f} s")
    print(f"walk       {walk:.3f} s, {walk / plain:.1f} x bare")
    print(f"unchanged  {seen:.3f} s, {seen / plain:.1f} x bare")
    print(f"memory     {peak:.0f} MB at most, the interpreter with it")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 50_000)
