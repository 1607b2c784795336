"""The S3 store alone, beside boto3 alone with the same bytes on the same server, and the memory it takes.

    python benchmarks/store.py [MEBIBYTES …]        64 and 512 by default

The server runs on this machine, and takes most of it: compare ratios within one line.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from servers.seaweed import Seaweed

from archiver.aws.options import AwsOptions
from archiver.store import Remote, S3Options, open_store
from archiver.store.counted import Counted, counted
from archiver.store.s3.download import RANGE

ROUNDS = 3
PARALLEL = 8
BLOCK = os.urandom(1 << 20)


def blocks(megabytes: int) -> Iterator[bytes]:
    return (BLOCK for _ in range(megabytes))


def read_all(file: Any) -> None:
    while file.read(1 << 20):
        pass


def bare_ranges(client: Any, bucket: str, key: str, size: int, into: Path) -> None:
    """What a download can be at best: ranges of the same size, by as many threads, into a file."""
    handle = os.open(into, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)

    def fetch(start: int) -> None:
        wanted = f"bytes={start}-{min(start + RANGE, size) - 1}"
        os.pwrite(handle, client.get_object(Bucket=bucket, Key=key, Range=wanted)["Body"].read(), start)

    with ThreadPoolExecutor(PARALLEL) as pool:
        list(pool.map(fetch, range(0, size, RANGE)))
    os.close(handle)


def measure(megabytes: int, folder: Path, server: Seaweed) -> None:
    bucket, client = server.make_bucket(), server.client(max_pool_connections=PARALLEL)
    aws = AwsOptions(endpoint_url=server.endpoint, parallel=PARALLEL)
    store = counted(open_store(f"s3://{bucket}/store", options=S3Options(aws)))
    store.create("warm", [b"up"], retention="live")
    before = peak()
    store.create("first", blocks(megabytes), retention="live")
    print(f"\n{megabytes} MiB: a create took {peak() - before} MiB of memory")
    rows: dict[str, list[float]] = {}
    for number in range(ROUNDS):
        for name, work in _round(store, client, bucket, f"object-{number}", megabytes, folder / "out"):
            started = time.perf_counter()
            work()
            rows.setdefault(name, []).append(megabytes / (time.perf_counter() - started))
            (folder / "out").unlink(missing_ok=True)
    _print(rows, store)


def _round(
    store: Counted, client: Any, bucket: str, name: str, megabytes: int, out: Path
) -> Iterator[tuple[str, Callable[[], object]]]:
    size = megabytes << 20
    assert isinstance(store, Remote)
    yield "create", lambda: store.create(name, blocks(megabytes), retention="live")
    data = BLOCK * megabytes
    yield "bare put", lambda: client.put_object(Bucket=bucket, Key=name, Body=data)
    yield "bare get", lambda: read_all(client.get_object(Bucket=bucket, Key=name)["Body"])
    yield "open", lambda: _open(store, name)
    yield "bare ranges", lambda: bare_ranges(client, bucket, name, size, out)
    yield "download", lambda: store.download(name, out, limit=size)


def _open(store: Counted, name: str) -> None:
    with store.open(name) as file:
        read_all(file)


def _print(rows: dict[str, list[float]], store: Counted) -> None:
    middle = {name: sorted(values)[len(values) // 2] for name, values in rows.items()}
    for mine, bare in (("create", "bare put"), ("open", "bare get"), ("download", "bare ranges")):
        print(
            f"{mine:9} {middle[mine]:6.0f} MiB/s   {bare:11} {middle[bare]:6.0f} MiB/s   "
            f"ratio {middle[mine] / middle[bare]:.2f}"
        )
    for verb, count in store.counts.items():
        print(f"{verb:9} {count.calls} calls, {count.bytes >> 20} MiB, {count.seconds:.1f} s")


def peak() -> int:
    """MiB that this process had at most so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


def main(arguments: list[str]) -> None:
    if arguments[:1] != ["--one"]:
        for megabytes in arguments or ["64", "512"]:
            subprocess.run([sys.executable, __file__, "--one", megabytes], check=True)
        return
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="archiver-bench-")))
        server = Seaweed(folder / "server")
        stack.callback(server.kill)
        os.environ.update(server.start().environment())
        measure(int(arguments[1]), folder, server)


if __name__ == "__main__":
    main(sys.argv[1:])
