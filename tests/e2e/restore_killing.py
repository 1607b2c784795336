"""Kill a restore that claims with SIGKILL at its n-th system event, for each n, and look at what is left.

    python restore_killing.py CONFIG RUN FOLDER EVERY

As `killing.py`, for a restore into a new folder below FOLDER each time. Prints one JSON line for each kill:
how many records the run had then, and whether the folder was there; last the number of events.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

from archiver.catalog import Catalog
from archiver.config import load
from archiver.restore import restore
from archiver.setup import Setup, open_setup
from archiver.verify import verify
from e2e.killing import dies_at


def go(setup: Setup, run: str, into: Path) -> None:
    restore(run, setup, into=into, claim=True)


def killed_at(event: int, setup: Setup, run: str, into: Path) -> bool:
    """Restore and die at that event of it; False when the restore was done before."""
    return dies_at(event, lambda: go(setup, run, into))


def look(setup: Setup, run: str, into: Path, before: int) -> tuple[int, bool]:
    """The folder is there whole or not at all, and only if its claim is; records are whole."""
    seq = Catalog(setup).numbers(run)[-1]
    assert seq in (before, before + 1)
    there = into.exists()
    if there:
        assert json.loads((into / "report.json").read_text(encoding="utf-8"))["claimed"] == before + 1 == seq
        assert (into / "REPORT.md").is_file()
        assert any((into / "transcript").iterdir())
    bad = [(found.object, found.error) for found in verify(setup, run) if not found.ok]
    assert not bad, bad
    return seq, there


def main(config: Path, run: str, folder: Path, every: int) -> None:
    setup = replace(open_setup(load(config), need="write"), why="")
    go(setup, run, folder / "warm")
    seq, event = Catalog(setup).numbers(run)[-1], 1
    while True:
        into = folder / f"at-{event}"
        done = not killed_at(event, setup, run, into)
        seq, there = look(setup, run, into, seq)
        print(json.dumps({"event": event, "seq": seq, "there": there}))
        if done:
            break
        event += every
    go(setup, run, folder / "last")
    print(json.dumps({"events": event, "left": [path.name for path in folder.glob(".*scratch*/[!.]*")]}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]))
