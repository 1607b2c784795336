"""Kill a rekey with SIGKILL at its n-th system event, for each n, and look at what is left each time.

    python rekey_killing.py CONFIG TRANSCRIPT EVERY

For each n a run of two checkpoints is saved, a child is forked that rewrites it for another recipient, and an
audit hook kills it there: before it touches a file, or sends a piece of a request. What it leaves must verify
and restore, for whoever holds both identities; then the rekey is run again and must finish. Prints one JSON
line for each kill.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from archiver import age, catalog, layout
from archiver.archive import Given, Options, Source, archive
from archiver.config import load
from archiver.rekey import plan, rekey
from archiver.restore import restore
from archiver.setup import Setup, open_setup
from archiver.store import temp
from archiver.verify import verify

FILES = ("open", "os.", "fcntl.")
REQUESTS = ("http.client.send",)


def opened(config: Path, new: age.X25519Identity) -> Setup:
    """The store after a change of recipients; opened anew, so that no process uses another's connections."""
    setup = open_setup(load(config), need="write")
    return replace(setup, recipients=(new.recipient,), identities=(*setup.identities, new))


def save(config: Path, transcript: Path, run: str) -> None:
    setup = open_setup(load(config), need="write")
    for _ in range(2):
        archive(Source(paths=(transcript,)), setup, options=Options(given=Given(run_id=run)))


def killed_at(event: int, config: Path, new: age.X25519Identity, run: str) -> bool:
    """Fork, rekey and die at that event; False when it was done before."""
    child = os.fork()
    if child == 0:
        setup = opened(config, new)
        counted = FILES if setup.store.url.startswith("file:") else REQUESTS
        seen = 0

        def hook(name: str, _: object) -> None:
            nonlocal seen
            if name.startswith(counted):
                seen += 1
                if seen == event:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(hook)
        assert [done.error for done in rekey([run], setup, reason="killed")] == [None]
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL, status
        return True
    assert os.WEXITSTATUS(status) == 0, status
    return False


def remove_just_made(setup: Setup) -> None:
    """Unfinished objects of the dead: a store leaves those of the last hour alone, and looking at ever more
    of them would use up the events that the next child may do."""
    if setup.store.url.startswith("file:"):
        for path in (Path(setup.store.url.removeprefix("file://")) / temp.FOLDER).iterdir():
            path.unlink()


def check(setup: Setup, run: str) -> None:
    """Nothing that is left looks like damage or an attack, and everything restores."""
    broken = [finding for finding in verify(setup, run, deep=True) if not finding.ok]
    assert not broken, broken
    with tempfile.TemporaryDirectory() as folder:
        assert restore(run, setup, into=Path(folder) / "out").report.seq == 2


def main(config: Path, transcript: Path, every: int) -> None:
    new = age.generate()
    catalog.FOLDER_WORKERS = int(os.environ.get("FOLDER_WORKERS", catalog.FOLDER_WORKERS))
    # Once here, so that no child spends events on imports.
    save(config, transcript, "warm")
    assert [done.rewritten for done in rekey(["warm"], opened(config, new))] == [4]
    event, states = 1, set()
    while True:
        run = f"r{event}"
        save(config, transcript, run)
        finished = not killed_at(event, config, new, run)
        setup = opened(config, new)
        remove_just_made(setup)
        check(setup, run)
        left = plan(run, setup)
        states.add(left.fitting)
        notes = len(list(setup.store.list(layout.notes_prefix(run))))
        (again,) = rekey([run], setup)
        assert again.error is None
        assert again.rewritten == len(left.targets)
        check(replace(setup, identities=(new,)), run)
        print(json.dumps({"event": event, "rewritten": left.fitting, "notes": notes}))
        if finished:
            break
        event += every
    print(json.dumps({"events": event, "states": sorted(states)}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
