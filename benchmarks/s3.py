"""A save to SeaweedFS beside the same save into a folder plus a bare upload of the same bytes, and restores.

    python benchmarks/s3.py [MEGABYTES …]        100 and 500 by default

Every size and kind runs in a process of its own. The server runs on this machine: compare ratios.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import generate
import pipeline
from servers.seaweed import Seaweed

from archiver.archive import Archived, Options, Source, archive
from archiver.config import load
from archiver.restore import restore
from archiver.setup import Setup, initialise, open_setup

MEGA = 1e6
ROUNDS = 3
Result = TypeVar("Result")


def timed(work: Callable[[], Result]) -> tuple[float, Result]:
    started = time.perf_counter()
    result = work()
    return time.perf_counter() - started, result


def measure(megabytes: float, keep_full: bool) -> None:
    """One size: rounds of local save, bare upload, save to the server, and both restores."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="archiver-bench-")))
        for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"):
            os.environ[name] = str(folder / name.lower())
        source = folder / "session.jsonl"
        subprocess.run([sys.executable, generate.__file__, str(megabytes), str(source)], check=True)
        server = Seaweed(folder / "server")
        stack.callback(server.kill)
        server.start()
        os.environ.update(server.environment())
        bucket = server.make_bucket()
        here = _store(folder / "local.toml", str(folder / "store"))
        os.environ["ARCHIVER_STORE__ENDPOINT_URL"] = server.endpoint
        there = _store(folder / "s3.toml", f"s3://{bucket}/store")
        rows: dict[str, list[float]] = {}
        for number in range(ROUNDS):
            _round(folder / f"out-{number}", source, here, there, (server, bucket), keep_full, rows)
        _print(rows, source.stat().st_size / MEGA, keep_full)


def _store(config: Path, url: str) -> Setup:
    initialise(url, config, settings=load(), now=datetime.now(UTC))
    return open_setup(load(config), need="write")


def _round(
    out: Path,
    source: Path,
    here: Setup,
    there: Setup,
    place: tuple[Seaweed, str],
    keep_full: bool,
    rows: dict[str, list[float]],
) -> None:
    def save(setup: Setup) -> Archived:
        return archive(Source(paths=(source,)), setup, options=Options(keep_full=keep_full))

    def back(setup: Setup, done: Archived, name: str) -> None:
        restore(done.record.run, setup, into=out / name, accept=("age", "git_commit"))

    server, bucket = place
    local, done = timed(lambda: save(here))
    assert done.record.bundle is not None
    bundle = Path(here.store.url.removeprefix("file://")) / done.record.bundle.name
    client = server.client()
    upload, _ = timed(lambda: client.upload_file(str(bundle), bucket, f"bare-{out.name}"))
    remote, saved = timed(lambda: save(there))
    download, _ = timed(lambda: client.download_file(bucket, f"bare-{out.name}", str(out) + ".age"))
    local_back, _ = timed(lambda: back(here, done, "here"))
    remote_back, _ = timed(lambda: back(there, saved, "there"))
    Path(str(out) + ".age").unlink()
    for name, value in (
        ("stored MB", bundle.stat().st_size / MEGA),
        ("local save", local),
        ("bare upload", upload),
        ("save to S3", remote),
        ("save ratio", remote / (local + upload)),
        ("local restore", local_back),
        ("bare download", download),
        ("restore from S3", remote_back),
        ("restore ratio", remote_back / (local_back + download)),
    ):
        rows.setdefault(name, []).append(value)


def _print(rows: dict[str, list[float]], size: float, keep_full: bool) -> None:
    print(f"\n{size:.0f} MB transcript, {'kept full' if keep_full else 'compacted'}, {ROUNDS} rounds")
    for name, values in rows.items():
        middle = sorted(values)[len(values) // 2]
        print(f"{name:18} median {middle:8.2f}   from {min(values):8.2f} to {max(values):8.2f}")
    print(f"peak memory: {pipeline.peak():.0f} MB", flush=True)


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["--one"]:
        measure(float(arguments[1]), keep_full=arguments[2:] == ["full"])
        return
    for megabytes in arguments or ["100", "500"]:
        for kind in ([], ["full"]):
            subprocess.run([sys.executable, __file__, "--one", megabytes, *kind], check=True)


if __name__ == "__main__":
    main(sys.argv[1:])
