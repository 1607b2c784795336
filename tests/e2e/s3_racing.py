"""Processes that commit the same number at the same moment.

    python s3_racing.py CONFIG TRANSCRIPT ROUNDS WRITERS

In each round every writer saves run `r` up to its record, and then all create theirs at once. Prints one JSON
line a round: what every writer was told.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from pathlib import Path
from typing import Any

from archiver import archive as archiving
from archiver.archive import Given, Options, Source, archive
from archiver.config import load
from archiver.errors import ArchiverError
from archiver.setup import Setup, open_setup

commit = archiving.commit


class Signals:
    """Pipes that all writers share: each takes one byte, so that one write lets all of them go."""

    def __init__(self) -> None:
        self.start, self.ready, self.go = os.pipe(), os.pipe(), os.pipe()

    def of_writer(self) -> None:
        """Keep only the writer's ends."""
        for end in (self.start[1], self.ready[0], self.go[1]):
            os.close(end)

    def gate(self, *arguments: Any, **named: Any) -> Any:
        """Commit the record, but only when all are there."""
        os.write(self.ready[1], b".")
        os.read(self.go[0], 1)
        return commit(*arguments, **named)


def write(setup: Setup, transcript: Path, note: str) -> dict[str, Any]:
    """One save, and how it ended."""
    options = Options(given=Given(run_id="r", note=note))
    try:
        record = archive(Source(paths=(transcript,)), setup, options=options).record
    except ArchiverError as error:
        return {"note": note, "error": type(error).__name__, "text": str(error)}
    assert record.bundle is not None
    return {"note": note, "seq": record.seq, "bundle": record.bundle.name}


def writer(config: Path, transcript: Path, me: int, signals: Signals, answer: int) -> None:
    """Take part in rounds until there are no more."""
    signals.of_writer()
    archiving.commit = signals.gate
    setup = open_setup(load(config), need="write")
    number = 0
    while os.read(signals.start[0], 1):
        number += 1
        told = write(setup, transcript, f"{number}-{me}")
        os.write(answer, json.dumps(told).encode() + b"\n")


def fork(config: Path, transcript: Path, me: int, signals: Signals) -> int:
    """Start a writer; gives the pipe of its answers."""
    read, answer = os.pipe()
    if os.fork():
        os.close(answer)
        return read
    code = 70
    try:
        writer(config, transcript, me, signals, answer)
        code = 0
    except BaseException:
        traceback.print_exc()
        raise
    finally:
        os._exit(code)


def main(config: Path, transcript: Path, rounds: int, writers: int) -> None:
    # Once here, so that the writers need not load rules and libraries each.
    options = Options(given=Given(run_id="warm"))
    archive(Source(paths=(transcript,)), open_setup(load(config), need="write"), options=options)
    signals = Signals()
    answers = [os.fdopen(fork(config, transcript, me, signals)) for me in range(writers)]
    for _ in range(rounds):
        os.write(signals.start[1], b"." * writers)
        for _ in range(writers):
            os.read(signals.ready[0], 1)
        os.write(signals.go[1], b"." * writers)
        print(json.dumps([json.loads(answer.readline()) for answer in answers]), flush=True)
        sys.stdin.readline()
    os.close(signals.start[1])
    for _ in range(writers):
        assert os.wait()[1] == 0


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
