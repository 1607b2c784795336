"""Redaction beside zstd level 3: speed, threads, hostile inputs, re-use and memory.

    python benchmarks/redact.py [--quick] [PART …]    speed, threads, hostile, reuse, memory, start: else all

Transcripts are the claude_code and codex files below ARCHIVER_SHARED (../shared beside the repository by
default), each once, as they are and with secrets planted; without them, generated sessions. Speeds are MB
(10^6 bytes) for each second of CPU. Decoded leaves are the UTF-8 bytes of all string values of all items, as
JSON decoding gives them, without keys, numbers and punctuation; raw bytes are those of the lines. The ratio
to zstd is (CPU of zstd level 3 on the same bytes) / (CPU of redaction), in the same process; `once more`: in
a process that has seen these texts before, as a loop that saves again and again has. Reading and parsing are
no part of it. Machines are noisy: compare ratios.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
import generate
import hostile

REPOSITORY = Path(__file__).parent.parent
SHARED = Path(os.environ.get("ARCHIVER_SHARED") or REPOSITORY.parent / "shared")
MEGA = 1e6
BLOCK = 1 << 20
PARTS = ("speed", "threads", "hostile", "reuse", "memory", "start")


def sessions(quick: bool, folder: Path) -> list[Path]:
    """The handed files, or generated ones where there are none."""
    found = [
        path
        for name in ("claude_code", "codex")
        for path in sorted((SHARED / "transcripts" / name).rglob("*"))
        if path.is_file()
    ]
    if found:
        return found[:4] if quick else found
    made = []
    for seed in range(2 if quick else 8):
        made.append(folder / f"generated-{seed}.jsonl")
        generate.write(made[-1], 1 if quick else 3, seed)
    return made


def texts(value: Any) -> Iterator[str]:
    """The decoded string leaves of a value, keys left out."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from texts(item)


def planted(lines: list[bytes], every: int = 40) -> list[bytes]:
    """The same lines with a credential put into one in so many, so that there is something to replace."""
    rng = hostile.rng_of(7)
    out = []
    for number, line in enumerate(lines):
        more = b""
        if number % every == 0 and line.startswith(b"{"):
            text = json.dumps(f"set it: export GH_TOKEN={hostile.secret(rng)}\n")
            more = b'{"planted":' + text.encode() + b","
        out.append(more + line[1:] if more else line)
    return out


class Corpus:
    """Transcripts in memory, read and parsed already."""

    def __init__(self, files: list[Path]) -> None:
        from archiver.transcripts.reader import read

        self.read: list[tuple[Any, list[list[bytes]]]] = []
        for path in files:
            transcript = read([path]).transcript
            parts = [list(part.items.lines()) for part in transcript.parts if not part.items.raw]
            self.read.append((transcript, parts))
        self.leaves = [
            "\n".join(text for lines in parts for line in lines for text in texts(json.loads(line))).encode(
                "utf-8", "surrogatepass"
            )
            for _, parts in self.read
        ]
        self.raw = [b"\n".join(line for lines in parts for line in lines) for _, parts in self.read]

    def transcripts(self, change: Callable[[list[bytes]], list[bytes]] = list) -> list[Any]:
        return [
            of_blocks(transcript, [as_blocks(change(lines)) for lines in parts])
            for transcript, parts in self.read
        ]


def as_blocks(lines: list[bytes]) -> list[bytes]:
    """Lines in blocks of about a megabyte, as readers give them."""
    blocks: list[bytes] = []
    held: list[bytes] = []
    size = 0
    for line in lines:
        held.append(line)
        size += len(line)
        if size >= BLOCK:
            blocks.append(b"\n".join((*held, b"")))
            held, size = [], 0
    return [*blocks, b"\n".join((*held, b""))] if held else blocks


def of_blocks(transcript: Any, parts: list[list[bytes]]) -> Any:
    """A transcript of these blocks, which lie in memory."""
    from archiver.model import Items

    def items(blocks: list[bytes]) -> Items:
        count = sum(block.count(b"\n") for block in blocks)
        return Items(lambda: iter(blocks), count=count, size=sum(map(len, blocks)))

    lined = [part for part in transcript.parts if not part.items.raw]
    made = tuple(
        part.model_copy(update={"items": items(blocks)}) for part, blocks in zip(lined, parts, strict=True)
    )
    return transcript.model_copy(update={"parts": made})


def redact(finder: Any, transcripts: list[Any], names: Any = None) -> int:
    """Redact each as a save does; gives the number of findings."""
    from archiver.redact import Redactor
    from archiver.scratch import Scratch

    found = 0
    with Scratch() as scratch:
        for transcript in transcripts:
            redactor = Redactor(finder, bytes(32), (), names=names)
            redactor.transcript(transcript, scratch)
            found += sum(finding.count for finding in redactor.receipt().findings)
    return found


def cpu(work: Callable[[], object], rounds: int) -> float:
    """The best CPU time of several rounds, in seconds."""
    spent = []
    for _ in range(rounds):
        started = time.process_time()
        work()
        spent.append(time.process_time() - started)
    return min(spent)


def zstd(datas: list[bytes]) -> Callable[[], object]:
    import zstandard

    return lambda: [zstandard.ZstdCompressor(level=3).compress(data) for data in datas]


def load_finder() -> Any:
    from archiver.redact import rules
    from archiver.redact.finder import Finder

    return Finder(rules.load())


def speed(corpus: Corpus, finder: Any, quick: bool) -> None:
    from archiver.redact.glance import vain_by

    rounds = 2 if quick else 5
    raw, leaves = sum(map(len, corpus.raw)) / MEGA, sum(map(len, corpus.leaves)) / MEGA
    print(f"{len(corpus.read)} transcripts: {raw:.1f} MB raw, {leaves:.1f} MB of decoded leaves")
    z_raw, z_leaves = cpu(zstd(corpus.raw), rounds), cpu(zstd(corpus.leaves), rounds)
    print(f"{'zstd level 3':28} {leaves / z_leaves:7.0f} MB/s leaves   {raw / z_raw:7.0f} MB/s raw")
    for name, change, again in (
        ("redact, as found", list, False),
        ("redact, once more", list, True),
        ("redact, secrets planted", planted, False),
    ):
        transcripts = corpus.transcripts(change)
        found = redact(finder, transcripts)

        def work(given: list[Any] = transcripts, again: bool = again) -> None:
            if not again:
                vain_by.cache_clear()  # what a process has seen before costs less
            redact(finder, given)

        spent = cpu(work, rounds)
        print(
            f"{name:28} {leaves / spent:7.0f} MB/s leaves   {raw / spent:7.0f} MB/s raw   "
            f"{z_leaves / spent:5.2f} x zstd on leaves   {z_raw / spent:5.2f} x on raw   {found} findings"
        )


def threads(corpus: Corpus, finder: Any, quick: bool) -> None:
    """Wall time: all transcripts in one thread, and dealt to two; redactors of their own, rules shared."""
    given = corpus.transcripts() * (1 if quick else 3)
    halves: list[list[Any]] = [[], []]
    for transcript in sorted(given, key=size_of, reverse=True):
        min(halves, key=lambda half: sum(map(size_of, half))).append(transcript)
    ratios = []
    for _ in range(1 if quick else 5):
        started = time.perf_counter()
        redact(finder, given)
        one = time.perf_counter() - started
        started = time.perf_counter()
        both = [threading.Thread(target=redact, args=(finder, half)) for half in halves]
        for thread in both:
            thread.start()
        for thread in both:
            thread.join()
        ratios.append(one / (time.perf_counter() - started))
    print(f"two threads: {statistics.median(ratios):.2f} x the speed of one (wall time, median)")


def size_of(transcript: Any) -> int:
    return sum(part.items.size for part in transcript.parts)


def hostile_inputs(finder: Any, quick: bool) -> None:
    """MB/s of CPU on lines and texts made to be slow."""
    from archiver.redact.exact import ExactMatcher
    from archiver.redact.ledger import Ledger
    from archiver.redact.scrub import Scrubber, never

    size = 200_000 if quick else 2_000_000
    for name, text in hostile.inputs(size):
        speeds = []
        for block in (text, hostile.one_leaf(text), hostile.many_leaves(text)):
            scrubber = Scrubber(finder, ExactMatcher(()), Ledger(bytes(32)))
            started = time.process_time()
            if block is text:
                scrubber.text(block, "here")
            else:
                scrubber.lines(block, 1, "here", never, len)
            speeds.append(len(block) / MEGA / (time.process_time() - started))
        print(f"{name:28} text {speeds[0]:7.1f}   one leaf {speeds[1]:7.1f}   lines {speeds[2]:7.1f} MB/s")


def reuse(corpus: Corpus, finder: Any, quick: bool) -> None:
    """CPU of a second save, with 2 % appended, to that of the first and to one that keeps nothing."""
    from archiver.redact.reuse import Names

    transcript, parts = max(corpus.read, key=lambda read: sum(map(len, read[1][0])) if read[1] else 0)
    lines: list[bytes] = []
    size = copy = 0
    while size < (4 if quick else 100) * MEGA:
        # So that every copy is content of its own.
        more = [line.replace(b'"uuid":"', b'"uuid":"%d' % copy) for line in parts[0]]
        lines, size, copy = lines + more, size + sum(map(len, more)), copy + 1
    for name, change in (("no secret", list), ("a secret every 2,000 lines", lambda x: planted(x, 2_000))):
        grown = change(lines)
        given = [
            of_blocks(transcript, [as_blocks(part), *([] for _ in parts[1:])])
            for part in (grown[: len(grown) * 50 // 51], grown)
        ]
        names = Names(bytes(32))
        plain, first, second = (
            cpu(partial(redact, finder, [one], known), 1)
            for one, known in ((given[0], None), (given[0], names), (given[1], names))
        )
        print(
            f"re-use, {size / MEGA:.0f} MB, {name}: first {first:.2f} s (keeping nothing {plain:.2f} s), "
            f"second {second:.2f} s, {100 * second / first:.0f} % of the first"
        )


def start(folder: Path) -> None:
    """Seconds from the start of a process to its first redaction, and what it took to load."""
    code = (
        "import sys, time; began = time.process_time()\n"
        "from archiver.redact import Redactor; imported = time.process_time()\n"
        "made = Redactor.load(bytes(32)); loaded = time.process_time()\n"
        "made.text('token=x'); print(imported - began, loaded - imported, time.process_time())"
    )
    for name in ("compiled anew", "from the cache"):
        environment = {**os.environ, "XDG_CACHE_HOME": str(folder)}
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
        imported, loaded, total = map(float, done.stdout.split())
        print(
            f"start, {name}: {total:.2f} s CPU until the first redaction, "
            f"{imported:.2f} s of it imports, {loaded:.2f} s rules and engine"
        )


def memory(quick: bool) -> None:
    """Peak resident memory over that of a process with the engine loaded, each in a process of its own."""
    sizes = (4,) if quick else (10, 100, 500)
    for kind in ("session", "long lines", "long leaves", "text", "findings"):
        row = []
        for megabytes in sizes:
            command = [sys.executable, __file__, "--peak", kind, str(megabytes)]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            row.append(f"{megabytes} MB: {float(done.stdout):6.0f}")
        print(f"memory over baseline, {kind:11} {'   '.join(row)} MB")


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["--peak"]:
        hostile.peak(arguments[1], int(arguments[2]), load_finder)
        return
    quick = "--quick" in arguments
    wanted = [name for name in arguments if name in PARTS] or PARTS
    if "memory" in wanted:
        memory(quick)  # first: a process inherits the peak of the one that started it
    with tempfile.TemporaryDirectory(prefix="archiver-bench-") as name:
        folder = Path(name)
        finder = load_finder()
        print(f"{len(finder.rules.rules)} rules, {len(finder.rules.expressions)} expressions")
        if {"speed", "threads", "reuse"}.intersection(wanted):
            corpus = Corpus(sessions(quick, folder))
            if "speed" in wanted:
                speed(corpus, finder, quick)
            if "threads" in wanted:
                threads(corpus, finder, quick)
            if "reuse" in wanted:
                reuse(corpus, finder, quick)
        if "hostile" in wanted:
            hostile_inputs(finder, quick)
        if "start" in wanted:
            start(folder)


if __name__ == "__main__":
    main(sys.argv[1:])
