"""Save and restore of large transcripts: each stage's speed beside zstd level 3 on the same bytes.

    python benchmarks/pipeline.py [MEGABYTES …]        100 and 500 by default

Every size runs in a process of its own on one core; it prints MB/s of the transcript's bytes for each
stage, their ratio to zstd level 3 alone in the same process, and the peak resident memory. Machines are
noisy: compare ratios.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import generate

MEGA = 1e6


class Stopwatch:
    """Keeps the seconds between one stage of the pipeline and the next."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._name, self._since = "", 0.0

    def stage(self, name: str, total: int | None = None) -> None:
        self.stop()
        self._name, self._since = name, time.perf_counter()

    def advance(self, count: int) -> None:
        """Only the stages' ends count here."""

    def stop(self) -> None:
        if self._name:
            spent = time.perf_counter() - self._since
            self.seconds[self._name] = self.seconds.get(self._name, 0.0) + spent
        self._name = ""


def zstd_alone(path: Path) -> float:
    """Seconds that zstd level 3 takes for the file, read in megabytes."""
    import zstandard

    compressor = zstandard.ZstdCompressor(level=3).compressobj()
    started = time.perf_counter()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            compressor.compress(block)
        compressor.flush()
    return time.perf_counter() - started


def measure(megabytes: float, keep_full: bool) -> None:
    """One size, in this process: save, restore, and zstd alone after both."""
    from archiver.archive import Options, Source, archive
    from archiver.config import load
    from archiver.restore import restore
    from archiver.setup import initialise, open_setup

    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="archiver-bench-")))
        for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"):
            os.environ[name] = str(folder / name.lower())
        source = folder / "session.jsonl"
        # In a child, so that what the generator uses does not count as memory of the save.
        subprocess.run([sys.executable, generate.__file__, str(megabytes), str(source)], check=True)
        config = folder / "archiver.toml"
        initialise(str(folder / "store"), config, settings=load(), now=datetime.now(UTC))
        setup = open_setup(load(config), need="write")
        size = source.stat().st_size / MEGA

        watch = Stopwatch()
        started = time.perf_counter()
        done = archive(Source(paths=(source,)), setup, options=Options(keep_full=keep_full), progress=watch)
        watch.stop()
        save = time.perf_counter() - started
        saved_memory = peak()

        again = Stopwatch()
        started = time.perf_counter()
        accept = ("age", "git_commit")
        restore(done.record.run, setup, into=folder / "out", accept=accept, progress=again)
        again.stop()
        back = time.perf_counter() - started
        memory = peak()
        zstd = zstd_alone(source)

        kind = "kept full" if keep_full else "compacted"
        sizes = done.record.sizes
        print(
            f"\n{size:.0f} MB transcript, {kind}: "
            f"{sizes.compacted / MEGA:.1f} MB packed, {sizes.stored / MEGA:.1f} MB stored"
        )
        row("zstd level 3 alone", size, zstd, zstd)
        row("save", size, save, zstd)
        for name, seconds in watch.seconds.items():
            row(f"  {name}", size, seconds, zstd)
        row("restore", size, back, zstd)
        for name, seconds in again.seconds.items():
            row(f"  {name}", size, seconds, zstd)
        print(f"peak memory: {saved_memory:.0f} MB after the save, {memory:.0f} MB after the restore")


def row(name: str, size: float, seconds: float, zstd: float) -> None:
    print(f"{name:24} {size / seconds:9.0f} MB/s   {zstd / seconds:6.2f} x zstd   {seconds:7.2f} s")


def peak() -> float:
    """The most resident memory of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["--one"]:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        measure(float(arguments[1]), keep_full=arguments[2:] == ["full"])
        return
    for megabytes in arguments or ["100", "500"]:
        for kind in ([], ["full"]):
            subprocess.run([sys.executable, __file__, "--one", megabytes, *kind], check=True)


if __name__ == "__main__":
    main(sys.argv[1:])
