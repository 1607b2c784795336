"""Stored bytes of a run that is saved at every step, with increments and without, against its last bundle.

    python benchmarks/increments.py [CHECKPOINTS [MEGABYTES]]      200 and 3.5 by default

Tool calls with their results, as much text at each step. Prints where the bytes are, by kind of object and of
an increment in the middle by member; seconds a save, restore and deep verify; and resident memory.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
import random

import checkpoint
import orjson
import zstandard

CHECKPOINTS, MEGABYTES = 200, 3.5
WANTED = 1.5
"""All stored bytes, as a multiple of the last bundle."""


def grown(checkpoints: int, megabytes: float) -> list[list[list[dict[str, Any]]]]:
    """What each step adds to the messages."""
    rng = random.Random(3)  # noqa: S311 - a benchmark's filler
    steps, number = [], 0
    for _ in range(checkpoints):
        new: list[list[dict[str, Any]]] = []
        size = 0
        while size < megabytes * 1e6 / checkpoints:
            new.append(checkpoint.turn(rng, number))
            number, size = number + 1, size + len(orjson.dumps(new[-1]))
        steps.append(new)
    return steps


def measure(full_every: int, checkpoints: int, megabytes: float) -> None:
    import archiver
    from archiver.catalog import Catalog
    from archiver.config import load
    from archiver.restore import restore
    from archiver.setup import open_setup
    from archiver.verify import verify

    steps = grown(checkpoints, megabytes)
    with tempfile.TemporaryDirectory(prefix="archiver-bench-") as name:
        folder = Path(name)
        config = checkpoint.configured(folder)
        with config.open("a", encoding="utf-8") as file:
            file.write(f"\n[run]\nfull_every = {full_every}\n")
        messages: list[dict[str, Any]] = [{"role": "user", "content": "Go on."}]
        times = []
        with archiver.run("bench", policy="async", config=config) as run:
            for step in steps:
                for turn in step:
                    messages += turn
                started = time.perf_counter()
                run.checkpoint(messages, force=True, phase="a step").wait(60)
                run.flush(60)
                times.append(time.perf_counter() - started)
            run.finish("succeeded")
        setup = open_setup(load(config), need="read")
        records = Catalog(setup).chain("bench").records
        report(f"full_every = {full_every}", records, folder / "store", times)
        one_by_one(records[len(records) // 2], folder / "store", setup)
        before = checkpoints - 1
        restored = seconds(lambda: restore("bench", setup, into=folder / "into", at=before))
        print(f"  restore of {before}: {restored:.2f} s")
        print(f"  verify --deep: {seconds(lambda: list(verify(setup, 'bench', deep=True))):.2f} s")
        print(f"  memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3:.0f} MB")
    whole = orjson.dumps(messages)
    print(
        f"  the messages: {len(whole) / 1e6:.2f} MB, {len(zstandard.compress(whole, 3)) / 1e3:.0f} kB as zstd"
    )


def report(title: str, records: Any, store: Path, times: list[float]) -> None:
    kinds: Counter[str] = Counter()
    for path in store.rglob("*"):
        if path.is_file():
            kinds[path.relative_to(store).parts[0] if not path.name.startswith(".") else "tags"] += (
                path.stat().st_size
            )
    last = next(
        record for record in reversed(records) if record.bundle is not None and not record.bundle.bases
    )
    total = kinds["bundles"] + kinds["records"]
    full = sum(1 for record in records if record.bundle is not None and not record.bundle.bases)
    print(f"\n{title}: {len(records)} records, {full} full bundles")
    print(
        f"  bundles {kinds['bundles'] / 1e6:.2f} MB, records {kinds['records'] / 1e6:.2f} MB; the last one "
        f"{last.sizes.stored / 1e3:.0f} kB: {total / last.sizes.stored:.2f} x (wanted: {WANTED})"
    )
    middle, late = (checkpoint.percentile(times, part) * 1e3 for part in (0.5, 0.95))
    print(f"  a save until it is stored: median {middle:.0f} ms, p95 {late:.0f} ms")


def one_by_one(record: Any, store: Path, setup: Any) -> None:
    """Where the bytes of one bundle are."""
    from archiver import age, pack

    data = (store / record.bundle.name).read_bytes()
    payload = record.bundle.payload_length
    with (
        (store / record.bundle.name).open("rb") as source,
        age.unseal(setup.identities_for("bench", "bundle", record.task), source) as opened,
    ):
        first = pack.read_first(opened, limits=setup.settings.limits)
    sealed_record = (store / "records" / "bench" / f"{record.seq:08d}.age").stat().st_size
    header = len(data) - payload
    print(f"  bundle {record.seq}: {len(data)} bytes, {header} of them header, {first.length} manifest")
    for member in first.manifest.members:
        print(f"    {member.path:28} {member.size:8} bytes")
    print(f"    its record {sealed_record} bytes")


def seconds(work: Any) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["--one"]:
        measure(int(arguments[1]), int(arguments[2]), float(arguments[3]))
        return
    checkpoints = arguments[0] if arguments else str(CHECKPOINTS)
    megabytes = arguments[1] if len(arguments) > 1 else str(MEGABYTES)
    for full_every in ("200", "1"):
        subprocess.run([sys.executable, __file__, "--one", full_every, checkpoints, megabytes], check=True)


if __name__ == "__main__":
    main(sys.argv[1:])
