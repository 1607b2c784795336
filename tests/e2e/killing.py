"""Kill a save with SIGKILL at its n-th system event, for each n, and look at what is left each time.

    python killing.py CONFIG TRANSCRIPT EVERY

A child is forked for each n; an audit hook counts what it does to files (open, link, rename, remove, mkdir
and whatever else Python audits) and kills it there. Prints one JSON line for each kill, and last the number
of events and the files that are left in scratch folders.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from archiver.archive import Given, Options, Source, archive
from archiver.config import load
from archiver.errors import NoSuchRunError
from archiver.restore import restore
from archiver.scratch import PREFIX
from archiver.setup import Setup, open_setup
from archiver.store import temp

COUNTED = ("open", "os.", "shutil.", "tempfile.", "fcntl.")


def save(setup: Setup, transcript: Path, number: int, run: str = "r") -> None:
    options = Options(given=Given(run_id=run, note=f"save {number}"))
    archive(Source(paths=(transcript,)), setup, options=options)


def dies_at(event: int, work: Callable[[], object]) -> bool:
    """Fork, work and die at that event; False when the work was done before."""
    child = os.fork()
    if child == 0:
        seen = 0

        def hook(name: str, _: object) -> None:
            nonlocal seen
            if name.startswith(COUNTED):
                seen += 1
                if seen == event:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(hook)
        work()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL, status
        return True
    assert os.WEXITSTATUS(status) == 0, status
    return False


def killed_at(event: int, setup: Setup, transcript: Path, number: int) -> bool:
    """Save and die at that event of it; False when the save was done before."""
    return dies_at(event, lambda: save(setup, transcript, number))


def newest(setup: Setup) -> str | None:
    """The note of the checkpoint that a restore gives now."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            restored = restore("r", setup, into=Path(folder) / "out")
        except NoSuchRunError:
            return None
        assert (restored.folder / "transcript").is_dir()
        return restored.checkpoint.note


def remove_just_made(setup: Setup) -> None:
    """Scratch folders of children that died before they marked them, and their unfinished objects: a save
    leaves those of the last ten minutes, and of the last hour, alone, and looking at ever more of them would
    use up the events that the next child may do."""
    for path in (Path(setup.store.url.removeprefix("file://")) / temp.FOLDER).glob("*"):
        path.unlink()
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(OSError):
            folder.rmdir()


def main(config: Path, transcript: Path, every: int) -> None:
    setup = open_setup(load(config), need="write")
    # Once here, so that no child spends events on imports and rules: what is left are the steps of a save.
    save(setup, transcript, 0, "warm")
    committed, event = 0, 1
    while True:
        done = not killed_at(event, setup, transcript, committed + 1)
        remove_just_made(setup)
        found = newest(setup)
        # Either nothing is seen of the save, or all of it: death may come after the commit point.
        before = f"save {committed}" if committed else None
        assert found in (before, f"save {committed + 1}"), (event, found, committed)
        if found == f"save {committed + 1}":
            committed += 1
        print(json.dumps({"event": event, "committed": committed}))
        if done:
            break
        event += every
    left = len(list(Path(tempfile.gettempdir()).glob(f"{PREFIX}*/[!.]*")))
    print(json.dumps({"events": event, "committed": committed, "left": left}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
