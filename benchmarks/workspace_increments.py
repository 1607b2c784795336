"""A run that saves its folder again and again: what an unchanged one costs, and one of which a part changed.

    python benchmarks/workspace_increments.py [FILES [MEGABYTES]]      50,000 and 1000 by default

Fifty files a folder, text of words. Prints seconds of the processor and bytes stored for the first save, for
one without a change, and for one with 1 % of the files rewritten, as ratios to a bare look at each file and
to zstd-3 of the bytes that changed; and resident memory.
"""

from __future__ import annotations

import os
import random
import resource
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import checkpoint
import workspace_walk
import zstandard

FILES, MEGABYTES = 50_000, 1000
PART = 0.01
_SETTLED = 2.5
"""Seconds after which a file is no young one."""


class Folder:
    """Files of about the same size, each with words of its own."""

    def __init__(self, root: Path, files: int, megabytes: float) -> None:
        self.root, self.files = root, files
        self._each = max(16, int(megabytes * 1e6 / files))
        chance = random.Random(5)  # noqa: S311 - a benchmark's filler
        words = (f"word{chance.randrange(10**5)}" for _ in range(max(40_000, self._each // 4)))
        self._text = " ".join(words).encode()
        for number in range(files):
            self.path(number).parent.mkdir(parents=True, exist_ok=True)
            self.path(number).write_bytes(self.content(number, 0))

    def path(self, number: int) -> Path:
        return self.root / f"part{number // 2500}" / f"module{number // 50}" / f"file{number}.txt"

    def content(self, number: int, version: int) -> bytes:
        start = (number * 7919 + version * 104_729) % (len(self._text) - self._each)
        return b"%d %d\n" % (number, version) + self._text[start : start + self._each]

    def change(self, version: int) -> bytes:
        """Rewrite a part of the files; gives their bytes."""
        chosen = random.Random(version).sample(range(self.files), max(1, int(self.files * PART)))  # noqa: S311
        made = []
        for number in sorted(chosen):
            made.append(self.content(number, version))
            self.path(number).write_bytes(made[-1])
        return b"".join(made)


def cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def main(files: int, megabytes: float) -> None:
    import archiver

    with tempfile.TemporaryDirectory(prefix="archiver-bench-") as name:
        place = Path(name)
        config = checkpoint.configured(place)
        with config.open("a", encoding="utf-8") as file:
            file.write("\n[workspace]\ncapture = true\n")
        folder = Folder(place / "work", files, megabytes)
        bundles = place / "store" / "bundles"
        messages = [{"role": "user", "content": "Go on."}]
        time.sleep(_SETTLED)
        with archiver.run("bench", policy="async", config=config, workspace=folder.root) as run:

            def save() -> tuple[float, float, int]:
                before = stored(bundles)
                started, used = time.perf_counter(), cpu()
                run.checkpoint(messages, force=True, phase="a step").wait(3600)
                run.flush(3600)
                return time.perf_counter() - started, cpu() - used, stored(bundles) - before

            first, first_memory = save(), memory()
            bare = workspace_walk.seconds(lambda: workspace_walk.bare(str(folder.root)))
            report("first save", first)
            unchanged = min(save() for _ in range(3))
            report("unchanged", unchanged)
            print(f"  {unchanged[1] / bare:.1f} x a bare look at each file ({bare:.2f} s)")
            changed = folder.change(1)
            time.sleep(_SETTLED)
            saved = save()
            report("1 % changed", saved)
            again, packed = zstd(changed)
            print(
                f"  {saved[1] / again:.1f} x zstd-3 of the {len(changed) / 1e6:.1f} MB that changed "
                f"({again:.2f} s), {saved[2] / packed:.2f} x its {packed / 1e6:.2f} MB"
            )
            print(f"memory: {first_memory:.0f} MB after the first save, {memory():.0f} MB at most")
            run.finish("succeeded")
            run.flush(3600)


def report(title: str, saved: tuple[float, float, int]) -> None:
    wall, used, size = saved
    print(f"{title}: {used:.2f} s of the processor ({wall:.2f} s), {size / 1e3:.0f} kB stored", flush=True)


def zstd(data: bytes) -> tuple[float, int]:
    """Seconds of the processor and bytes of it, as one stream."""
    used = cpu()
    size = len(zstandard.compress(data, 3))
    return max(cpu() - used, 1e-6), size


def stored(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) if folder.is_dir() else 0


def memory() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    os.environ.pop("ARCHIVER_CONFIG", None)
    main(
        int(sys.argv[1]) if len(sys.argv) > 1 else FILES,
        float(sys.argv[2]) if len(sys.argv) > 2 else MEGABYTES,
    )
