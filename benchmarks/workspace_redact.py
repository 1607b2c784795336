"""Redaction of the files of a workspace beside zstd level 3 of the same bytes.

    python benchmarks/workspace_redact.py [--quick] [--files N]

Files of 20 kB, cut from the sources of Python's own library, each with a line of its own so that no two are
alike; 50,000 by default, which is 1 GB. They are made one by one and are no part of what is measured. Speeds
are MB (10^6 bytes) for each second of CPU, ratios are (CPU of zstd) / (CPU of redaction), in one process:

- `first time`: every file scanned, hashed, and held or written to the scratch folder;
- `secrets`: the same with a credential in every 500th file;
- `once more`: the search for a value that became known after all files were scanned;
- `last scan`: what the last scan of the members costs, of files that were scanned in the same save.

Machines are noisy: compare ratios.
"""

from __future__ import annotations

import argparse
import hashlib
import resource
import sysconfig
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import zstandard

SIZE = 20_000
MEGA = 1e6
EVERY = 500
SOURCES = 6_000_000
PATH = "src/part{:03}/file{:05}.py"


def sources() -> list[bytes]:
    """Pieces of source text of one size."""
    folder = Path(sysconfig.get_paths()["stdlib"])
    whole = b""
    for path in sorted(folder.glob("*.py")) + sorted(folder.glob("*/*.py")):
        text = path.read_bytes()
        whole += text if text.isascii() else b""
        if len(whole) > SOURCES:
            break
    return [whole[at : at + SIZE - 40] for at in range(0, len(whole) - SIZE, SIZE)]


def files(count: int, pieces: list[bytes], secret: Callable[[int], bytes]) -> Iterator[tuple[Any, bytes]]:
    for number in range(count):
        more = secret(number) if number % EVERY == EVERY // 2 else b""
        data = b"# file %08d of a workspace\n" % number + pieces[number % len(pieces)] + more
        yield SimpleNamespace(entry=SimpleNamespace(path=PATH.format(number % 100, number))), data


def nothing(_number: int) -> bytes:
    return b""


def credential(number: int) -> bytes:
    return b"\nTOKEN = 'ghp_" + hashlib.sha256(b"%d" % number).hexdigest()[:36].encode() + b"'\n"


class Timed:
    """Adds up the CPU time of calls."""

    def __init__(self) -> None:
        self.spent = 0.0

    def __call__(self, work: Callable[[], Any]) -> Any:
        started = time.process_time()
        made = work()
        self.spent += time.process_time() - started
        return made


def measure(name: str, count: int, finder: Any, secret: Callable[[int], bytes]) -> None:
    from archiver.model import Member, Receipt
    from archiver.redact import Carried, ExactValue, Redactor
    from archiver.redacted import vouch
    from archiver.scratch import Scratch

    pieces = sources()
    packed, redacted, again, last = Timed(), Timed(), Timed(), Timed()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    redactor = Redactor(finder, bytes(32), ())
    compressor = zstandard.ZstdCompressor(level=3)
    total = changed = 0
    with Scratch() as scratch:
        work = redactor.carried(scratch)
        held = []
        for found, data in files(count, pieces, secret):
            total += len(data)
            packed(lambda data=data: compressor.compress(data))
            made = redacted(lambda found=found, data=data: work.file(found, lambda: iter((data,))))
            if isinstance(made, Carried):
                held.append((found, made))
                changed += made.redacted
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        redactor.learn([ExactValue("LATE", hashlib.sha256(b"late").hexdigest())])
        held = again(lambda: [(found, work.again(found, made)) for found, made in held])
        members = tuple(
            Member(f"workspace/objects/{made.sha256}", made.source, made.size, made.sha256)
            for _, made in held
            if isinstance(made, Carried)
        )
        kept = last(lambda: redactor.members(vouch(members, Receipt()), scratch)).value
        assert len(kept) == len(members)
    megabytes = total / MEGA
    print(
        f"{name}: {count} files, {megabytes:.0f} MB, {changed} redacted, {memory / 1024:.0f} MiB more memory"
    )
    for what, timed in (
        ("zstd 3", packed),
        ("redaction", redacted),
        ("once more", again),
        ("last scan", last),
    ):
        speed, ratio = megabytes / timed.spent, packed.spent / timed.spent
        print(f"  {what:10} {timed.spent:7.2f} s   {speed:7.0f} MB/s   {ratio:6.2f} x zstd")


def main() -> None:
    from archiver.redact import rules
    from archiver.redact.finder import Finder

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="1,000 files")
    parser.add_argument("--files", type=int, help="how many files")
    options = parser.parse_args()
    count = options.files or (1_000 if options.quick else 50_000)
    finder = Finder.of(rules.load())
    measure("first time", count, finder, nothing)
    measure("secrets", count, finder, credential)


if __name__ == "__main__":
    main()
