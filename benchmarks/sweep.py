"""A sweep of many small runs and of some large ones beside a bare parallel upload of the same files.

    python benchmarks/sweep.py [--quick] [--parallel N] [--small N] [--large N]

1,000 small runs and 20 of 50 MB, with --quick 40 and 2 of 5; into a folder and into SeaweedFS on this
machine: compare ratios. The bare upload copies each file as it is, with as many threads: into a synced file
of a folder, or as boto3 uploads files. The second sweep finds nothing new.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import generate
import pipeline
from servers.seaweed import Seaweed

from archiver.config import Settings, load
from archiver.config.sweeping import SourceSettings
from archiver.redact import new_key
from archiver.setup import Setup, initialise, open_setup
from archiver.sources import configured
from archiver.sweep.report import Report
from archiver.sweep.sweeping import Options, Sweep

MEGA = 1e6
OLD = 2 * 86_400
"""Seconds since the runs were written: what the world around them is today is not captured."""
TURNS = 6


def small(path: Path, number: int) -> None:
    """A session of a few kilobytes, of which no two are alike."""
    words = random.Random(number)  # noqa: S311 - contents, not keys
    run, lines = str(uuid.UUID(int=words.getrandbits(128))), []
    for turn in range(TURNS):
        text = " ".join(str(words.randrange(10**6)) for _ in range(60))
        common = {"sessionId": run, "timestamp": f"2026-01-02T03:{turn:02}:05.000Z", "uuid": f"{turn}"}
        answer = {"role": "assistant", "content": [{"type": "text", "text": text}], "stop_reason": "end_turn"}
        lines.append({"type": "user", "message": {"role": "user", "content": text}, **common})
        lines.append({"type": "assistant", "message": {**answer, "id": f"m{turn}"}, **common})
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def large(path: Path, number: int, template: Path) -> None:
    """The same session under other ids."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with template.open("rb") as source, path.open("wb") as target:
        for line in source:
            item = json.loads(line)
            if "sessionId" in item:
                item["sessionId"] = f"large-{number}"
            target.write(json.dumps(item).encode() + b"\n")


def age(folder: Path) -> None:
    at = time.time() - OLD
    for path in folder.rglob("*.jsonl"):
        os.utime(path, (at, at))


def swept(setup: Setup, folder: Path) -> tuple[float, Report]:
    sources = (SourceSettings(kind="claude-code", path=folder),)
    settings = setup.settings.model_copy(
        update={"sweep": setup.settings.sweep.model_copy(update={"sources": sources})}
    )
    began = time.perf_counter()
    work = Sweep(setup, configured(settings), Options())
    for _ in work:
        pass
    assert not work.report.errors, work.report.errors[:3]
    return time.perf_counter() - began, work.report


def bare(files: Sequence[Path], put: Callable[[Path], None], workers: int) -> float:
    began = time.perf_counter()
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(put, files))
    return time.perf_counter() - began


def into_folder(target: Path) -> Callable[[Path], None]:
    target.mkdir()

    def put(path: Path) -> None:
        with path.open("rb") as source, (target / path.name).open("xb") as file:
            while block := source.read(1 << 20):
                file.write(block)
            file.flush()
            os.fsync(file.fileno())

    return put


def measure(
    name: str, setup: Setup, folders: dict[str, Path], put: Callable[[Path], None], workers: int
) -> None:
    """Each folder of runs: bare, then swept; then all of them once more."""
    print(f"\n{name}")
    for what, folder in folders.items():
        files = list(folder.rglob("*.jsonl"))
        size = sum(path.stat().st_size for path in files) / MEGA
        alone = bare(files, put, workers)
        seconds, report = swept(setup, folder)
        assert report.total().archived == len(files), report.total()
        _row(f"{what}: bare upload", len(files), size, alone)
        _row(f"{what}: sweep", len(files), size, seconds)
        again, report = swept(setup, folder)
        assert report.total().unchanged == len(files), report.total()
        print(
            f"  {what}: sweep / bare upload {seconds / alone:6.2f}      second sweep {again:.2f} s, "
            f"{again / len(files) * 1000:.2f} s per 1,000 runs",
            flush=True,
        )


def _row(what: str, runs: int, size: float, seconds: float) -> None:
    print(
        f"  {what:24} {runs:5} runs {size:8.1f} MB {seconds:8.2f} s {runs / seconds * 60:9.0f} runs/min "
        f"{size / seconds:8.1f} MB/s",
        flush=True,
    )


def _store(config: Path, url: str, parallel: int) -> Setup:
    initialise(url, config, settings=load(), now=datetime.now(UTC))
    settings: Settings = load(config)
    changed = settings.sweep.model_copy(update={"parallel": parallel})
    setup = open_setup(settings.model_copy(update={"sweep": changed}), need="write")
    setup.redactor(new_key())  # rules are compiled once for a machine
    return setup


def main(arguments: list[str]) -> None:
    quick = "--quick" in arguments
    asked = dict(itertools.pairwise(arguments))
    parallel, megabytes = int(asked.get("--parallel", 2)), 5 if quick else 50
    many = int(asked.get("--small", 40 if quick else 1000))
    few = int(asked.get("--large", 2 if quick else 20))
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="archiver-bench-")))
        for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"):
            os.environ[name] = str(folder / name.lower())
        runs = {f"{many} small": folder / "small", f"{few} of {megabytes} MB": folder / "large"}
        smalls, larges = runs.values()
        runs = {what: place for (what, place), count in zip(runs.items(), (many, few), strict=True) if count}
        for number in range(many):
            small(smalls / "-p" / f"s{number}.jsonl", number)
        template = folder / "template.jsonl"
        subprocess.run([sys.executable, generate.__file__, str(megabytes), str(template)], check=True)
        for number in range(few):
            large(larges / "-p" / f"l{number}.jsonl", number, template)
        age(smalls)
        age(larges)
        print(f"{parallel} runs at a time")
        here = _store(folder / "local.toml", str(folder / "store"), parallel)
        measure("a folder", here, runs, into_folder(folder / "bare"), parallel)
        server = Seaweed(folder / "server")
        stack.callback(server.kill)
        server.start()
        os.environ.update(server.environment())
        bucket, client = server.make_bucket(), server.client()
        os.environ["ARCHIVER_STORE__ENDPOINT_URL"] = server.endpoint
        there = _store(folder / "s3.toml", f"s3://{bucket}/store", parallel)
        measure(
            "SeaweedFS",
            there,
            runs,
            lambda path: client.upload_file(str(path), bucket, f"bare/{path.name}"),
            parallel,
        )
        print(f"\npeak memory: {pipeline.peak():.0f} MB")


if __name__ == "__main__":
    main(sys.argv[1:])
