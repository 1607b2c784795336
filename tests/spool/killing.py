"""Kill adding and delivering with SIGKILL at its n-th system event, for each n; what is left must be whole.

    python killing.py CONFIG EVERY

Three checkpoints, of which one gives up its bundle, are added and delivered by a child that dies at that
event. Then what waits is delivered, and the run must be what somebody who was never killed would have made.
"""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path

from e2e.killing import dies_at

from archiver.catalog import Catalog
from archiver.config import load
from archiver.errors import NoSuchRunError
from archiver.setup import Setup, open_setup
from archiver.spool import open_spool
from archiver.verify import verify
from spool.making import Failing, Hand, through


def prepared(setup: Setup, run: str, scratch: Path) -> list[tuple[object, bytes, Path]]:
    """Sealed checkpoints that follow each other: making them is not what is killed here."""
    writer = Hand.of(setup, run)
    made = []
    for number in range(1, 4):
        record, sealed, path = writer.sealed(f"save {number}", keep=scratch)
        writer.went_on(record)
        made.append((record, sealed, path))
    return made


def work(setup: Setup, run: str, made: list[tuple[object, bytes, Path]]) -> None:
    spool = open_spool(setup).of(run)
    for record, sealed, path in made:
        spool.add(record, sealed, path, plain=True)  # type: ignore[arg-type]
    spool.add_effect(f"effects/{run}/{'a' * 32}.age", b"sealed")
    spool.deliver()
    spool.finish()


def look(setup: Setup, run: str) -> tuple[list[str], int]:
    """Deliver what is left; kinds of the records, and bundles that no record commits."""
    spool = open_spool(setup).of(run)
    waiting = [entry.seq for entry in spool.entries()]
    assert waiting == list(range(min(waiting, default=1), min(waiting, default=1) + len(waiting))), waiting
    store = Failing(setup.store)
    open_spool(through(setup, store)).of(run).deliver()
    assert len(set(store.created)) == len(store.created)
    assert spool.deliver().pending == 0
    assert spool.forks() == ()
    try:
        links = Catalog(setup).chain(run).links
    except NoSuchRunError:
        return [], 0
    assert all(found.ok or "effects/" in found.object for found in verify(setup, run, deep=True))
    named = {link.record.bundle.name for link in links if link.record.bundle}
    there = {info.name for info in setup.store.list(f"bundles/{run}/")}
    assert named <= there
    return [link.record.kind for link in links], len(there - named)


def main(config: Path, every: int) -> None:
    setup = open_setup(load(config), need="write")
    scratch = config.parent / "made"
    scratch.mkdir()
    (_, sealed, path) = prepared(setup, "probe", scratch)[0]
    limit = int((path.stat().st_size + len(sealed) + 1000) * 2.6)
    run = setup.settings.run.model_copy(update={"spool_limit": limit})
    setup = replace(setup, settings=setup.settings.model_copy(update={"run": run}))
    work(setup, "warm", prepared(setup, "warm", scratch))
    kinds, _ = look(setup, "warm")
    assert kinds == ["skipped", "checkpoint", "checkpoint"], kinds
    event, done, orphans = 1, False, 0
    while not done:
        name = f"r{event}"
        made = prepared(setup, name, scratch)
        done = not dies_at(event, lambda made=made, name=name: work(setup, name, made))  # type: ignore[misc]
        kinds, lost = look(setup, name)
        assert kinds == ["skipped", "checkpoint", "checkpoint"][: len(kinds)] or set(kinds) == {"checkpoint"}
        orphans += lost
        spool = open_spool(setup).of(name)
        spool.finish()
        print(json.dumps({"event": event, "kinds": kinds}), flush=True)
        event += every
    print(json.dumps({"events": event, "orphans": orphans}))
    shutil.rmtree(scratch)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
