"""Lists, plans and checks of many runs in SeaweedFS, beside bare GETs by the same client.

    python benchmarks/listing.py [RUNS [CHECKPOINTS]]      1000 runs of 10 by default
    python benchmarks/listing.py --config FILE             a store that was filled before (many_runs.py)

Prints the newest 50 in a new process; all runs as a ratio to parallel GETs of exactly their newest records,
in one process, by turns; the requests of one plan; and the peak memory of both lists. Machines are noisy and
the server runs on the same one: compare ratios.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import many_runs
from servers.seaweed import Seaweed
from servers.sent import counted

from archiver import layout
from archiver.aws import door
from archiver.catalog import Catalog
from archiver.config import load
from archiver.restore import plan
from archiver.setup import Setup, initialise, open_setup
from archiver.setup.remote import store_options

ROUNDS = 5
PROGRAM = "import resource, sys; from archiver.cli.program import run; sys.stdout = open('/dev/null', 'w')"
MEMORY = "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, file=sys.stderr)"


def seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def bare(setup: Setup, names: list[str]) -> Callable[[], None]:
    """GETs of these objects and nothing else, as many at a time as the store welcomes."""
    options = store_options(setup.settings).aws
    client = door.client("s3", options)
    bucket, _, prefix = setup.store.url.removeprefix("s3://").partition("/")

    def get(name: str) -> int:
        return len(client.get_object(Bucket=bucket, Key=f"{prefix}/{name}")["Body"].read())

    def work() -> None:
        with ThreadPoolExecutor(options.parallel) as pool:
            total = sum(pool.map(get, names))
        assert total > 0

    return work


def all_runs(config: Path) -> None:
    setup = open_setup(load(config), need="read")
    names = [layout.record_name(run, seq) for run, seq in Catalog(setup).newest_numbers()]
    listed = sum(1 for _ in setup.store.list(layout.RECORDS))
    get = bare(setup, names)
    get_seconds, list_seconds = [], []
    for _ in range(ROUNDS):
        get_seconds.append(seconds(get))
        list_seconds.append(seconds(lambda: check(Catalog(setup), len(names))))
    ratios = sorted(ours / theirs for ours, theirs in zip(list_seconds, get_seconds, strict=True))
    names_only = seconds(lambda: list(setup.store.list(layout.RECORDS)))
    print(f"all {len(names)} runs of {listed} records: best {min(list_seconds):.2f} s")
    print(f"  bare GETs of their newest records: best {min(get_seconds):.2f} s")
    print(f"  ratio of neighbours: median {ratios[ROUNDS // 2]:.2f}, {ratios[0]:.2f} to {ratios[-1]:.2f}")
    print(f"  the list of names alone: {names_only:.2f} s")
    run = names[len(names) // 2].split("/")[1]
    with counted() as sent:
        report = plan(run, open_setup(load(config), need="read"))
    print(f"plan of a run with {report.newest} checkpoints: {len(sent)} requests")


def check(catalog: Catalog, expected: int) -> None:
    assert sum(head.error is None for head in catalog.heads()) == expected


def command(config: Path, *words: str) -> tuple[float, int]:
    """A new process: seconds, and the most resident memory in MB."""
    script = f"{PROGRAM}; code = run('archiver', sys.argv[1:]); {MEMORY}; sys.exit(code)"
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", script, *words, "--config", str(config)],
        check=True,
        stderr=subprocess.PIPE,
        text=True,
    )
    return time.perf_counter() - started, int(done.stderr.splitlines()[-1])


def measure(config: Path) -> None:
    for words in (("list", "--newest", "50"), ("list",), ("list", "--json")):
        found = [command(config, *words) for _ in range(ROUNDS if "--newest" in words else 1)]
        print(
            f"archiver {' '.join(words)}: best {min(time for time, _ in found):.2f} s in a new process, "
            f"peak memory {max(memory for _, memory in found)} MB",
            flush=True,
        )
    all_runs(config)
    print(f"peak memory of this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MB")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", type=int, nargs="?", default=1000)
    parser.add_argument("checkpoints", type=int, nargs="?", default=10)
    parser.add_argument("--config", type=Path)
    options = parser.parse_args()
    if options.config is not None:
        measure(options.config)
        return
    with tempfile.TemporaryDirectory(prefix="archiver-bench-") as folder:
        server = Seaweed(Path(folder) / "server")
        try:
            server.start()
            os.environ.update(server.environment())
            os.environ["HOME"] = folder
            os.environ["ARCHIVER_STORE__ENDPOINT_URL"] = server.endpoint
            config = Path(folder) / "archiver.toml"
            url = f"s3://{server.make_bucket()}/store"
            initialise(url, config, settings=load(), now=datetime.now(UTC))
            many_runs.fill_in_processes(
                config, options.runs, options.checkpoints, all_bundles=False, processes=2
            )
            measure(config)
        finally:
            server.kill()


if __name__ == "__main__":
    main()
