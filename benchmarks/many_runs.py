"""Fill a store with many small runs: `python benchmarks/many_runs.py CONFIG RUNS [CHECKPOINTS]`.

Records are signed, chained and sealed as a save does it; bundles are real and tiny. CONFIG is what
`archiver init` wrote. With `--newest-bundles` only the newest checkpoint of a run has its bundle in the
store, which is all that lists and plans look at.
"""

from __future__ import annotations

import argparse
import base64
import multiprocessing
import random
import secrets
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from archiver import age, layout, members, pack, records, retention
from archiver.config import load
from archiver.model import Checkpoint, RetentionClass, Sizes
from archiver.model.manifest import ManifestHead
from archiver.position import Position
from archiver.record_of import record_of
from archiver.redact import Redactor, new_key
from archiver.setup import Setup, open_setup

START = datetime(2026, 3, 2, tzinfo=UTC)
THREADS = 6
"""Puts at the same time, in each process."""


@dataclass(frozen=True, slots=True)
class Object:
    """What a save puts into the store."""

    name: str
    body: bytes
    retention: RetentionClass


class Maker:
    """Makes the objects of whole runs."""

    def __init__(self, setup: Setup, checkpoints: int, *, all_bundles: bool = True) -> None:
        self._setup = setup
        self._checkpoints = checkpoints
        self._all_bundles = all_bundles
        self._key = new_key()
        self._redactor = Redactor.load(key=self._key)

    def run(self, number: int) -> Iterator[Object]:
        """The objects of one run in the order of a save: bundle, record and hint of each checkpoint."""
        place = Position(name_of(number), redaction_key=self._key)
        for seq in range(1, self._checkpoints + 1):
            checkpoint = _checkpoint(number, seq, last=seq == self._checkpoints)
            bundle, body = self._bundle(checkpoint, place)
            if self._all_bundles or seq == self._checkpoints:
                yield bundle
            name = layout.record_name(place.run, seq)
            yield Object(name, body, "record")
            yield Object(layout.index_name(checkpoint.checkpoint_at, place.run, seq), b"", "record")
            place = Position(place.run, seq + 1, self._digest, redaction_key=self._key)

    def _bundle(self, checkpoint: Checkpoint, place: Position) -> tuple[Object, bytes]:
        """The sealed bundle, and the record that commits it."""
        setup, pieces = self._setup, list[bytes]()
        redacted = self._redactor.checkpoint(checkpoint)
        complete = redacted.derive(
            lambda value: (*members.of_state(value), members.of_receipt(self._redactor.receipt()))
        )
        head = ManifestHead(
            run=place.run,
            seq=place.seq,
            schema_version=checkpoint.schema_version,
            redaction_key=base64.b64encode(self._key).decode(),
        )
        sealer = age.seal(setup.recipients_for(place.run, checkpoint.task_id, "bundle"), pieces.append)
        packed = pack.pack(complete, head, sealer.write, limits=setup.settings.limits, threads=1)
        sealed = sealer.close()
        body = b"".join(pieces)
        name = layout.bundle_name(place.run, place.seq, secrets.token_hex(8))
        record = record_of(
            redacted.value,
            place,
            setup,
            bundle=packed.ref(name, sealed),
            sizes=Sizes(raw=packed.unpacked, compacted=packed.unpacked, stored=len(body)),
            receipt=self._redactor.receipt(),
            recipients=sealed.fingerprints,
            recorded_at=checkpoint.checkpoint_at,
            software="benchmarks/many_runs.py",
        )
        self._digest = records.body_sha256(record)
        recipients = setup.recipients_for(record.run, record.task, "record")
        return (
            Object(name, body, retention.class_of(checkpoint.outcome)),
            records.encode(record, setup.require_signing_key(), recipients),
        )


def name_of(number: int) -> str:
    """The id of a run; ids and times are not in one order."""
    return f"run-{random.Random(number).randrange(16**8):08x}-{number:05d}"  # noqa: S311 - only spread


def _checkpoint(number: int, seq: int, *, last: bool) -> Checkpoint:
    at = START + timedelta(minutes=number, seconds=seq)
    return Checkpoint(
        run_id=name_of(number),
        task_id=f"task-{number % 97}",
        objective="Make the parser's tests pass again and explain in the changelog what was wrong",
        phase="testing",
        note=f"step {seq}: 31 of 40 tests pass",
        turn=seq * 7,
        outcome=("failed" if number % 5 == 0 else "succeeded") if last else "running",
        created_at=START + timedelta(minutes=number),
        checkpoint_at=at,
    )


def fill(
    setup: Setup, numbers: range, checkpoints: int, *, all_bundles: bool = True, threads: int = THREADS
) -> None:
    """Put the runs of these numbers into the store."""
    maker = Maker(setup, checkpoints, all_bundles=all_bundles)

    def put(made: list[Object]) -> None:
        for one in made:
            setup.store.create(one.name, [one.body] if one.body else [], retention=one.retention)

    with ThreadPoolExecutor(threads) as pool:
        waiting = []
        for number in numbers:
            waiting.append(pool.submit(put, list(maker.run(number))))
            if len(waiting) > 4 * threads:
                waiting.pop(0).result()
        for one in waiting:
            one.result()


def _fill_part(config: Path, numbers: range, checkpoints: int, all_bundles: bool) -> None:
    fill(open_setup(load(config), need="write"), numbers, checkpoints, all_bundles=all_bundles)


def fill_in_processes(
    config: Path, runs: int, checkpoints: int, *, all_bundles: bool, processes: int
) -> None:
    """The same by several processes, each with a share of the runs."""
    context = multiprocessing.get_context("spawn")
    work = [
        context.Process(
            target=_fill_part, args=(config, range(at, runs, processes), checkpoints, all_bundles)
        )
        for at in range(processes)
    ]
    for one in work:
        one.start()
    for one in work:
        one.join()
    if any(one.exitcode for one in work):
        raise SystemExit("a process that filled the store has failed")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("config", type=Path)
    parser.add_argument("runs", type=int)
    parser.add_argument("checkpoints", type=int, nargs="?", default=10)
    parser.add_argument("--newest-bundles", action="store_true")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    started = time.perf_counter()
    fill_in_processes(
        options.config,
        options.runs,
        options.checkpoints,
        all_bundles=not options.newest_bundles,
        processes=options.processes,
    )
    seconds = time.perf_counter() - started
    rate = options.runs * options.checkpoints / seconds
    print(f"{options.runs} runs of {options.checkpoints} checkpoints in {seconds:.0f} s, {rate:.0f} a second")


if __name__ == "__main__":
    sys.exit(main())
