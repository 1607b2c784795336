"""Kill a hold, release, removal, erasure or expiry with SIGKILL at its n-th file event, and look each time.

    python removing_killing.py ACTION,… CONFIG TRANSCRIPT EVERY

For each n (every EVERY-th) a run is saved, a child is forked that does ACTION with it, and an audit hook
kills it there. What it leaves must explain itself; then the same is done again and must finish. Prints one
JSON line for each action.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from starting_over import Beginning

from archiver import catalog, expiring, holding, inventory, layout
from archiver.archive import Given, Options, Source, archive
from archiver.config import load
from archiver.notes import Notes
from archiver.removing import erase, remove
from archiver.setup import Setup, open_setup
from archiver.verify import verify

FILES = ("open", "os.", "fcntl.")
ALL = ("bundle", "effect", "audit", "index", "note", "record")
NOW = datetime.now(UTC)


def opened(config: Path) -> Setup:
    return open_setup(load(config), need="write")


def save(config: Path, transcript: Path, run: str, days: int) -> None:
    """Two checkpoints and an effect."""
    setup = opened(config)
    at = NOW - timedelta(days=days)
    for _ in range(2):
        given = Given(run_id=run, outcome="succeeded")
        archive(Source(paths=(transcript,)), setup, options=Options(given=given), now=lambda: at)
    root = Path(setup.store.url.removeprefix("file://"))
    for name in names(setup, run, "bundle", "record", "index"):
        os.utime(root / name, (at.timestamp(), at.timestamp()))


def names(setup: Setup, run: str, *kinds: str) -> list[str]:
    return [one.name for one in inventory.of_run(setup.store, run, kinds)]  # type: ignore[arg-type]


def tags(setup: Setup, run: str) -> set[str | None]:
    kinds = ("bundle", "record", "effect", "audit")
    return {inventory.class_of(setup.store, one) for one in inventory.of_run(setup.store, run, kinds)}


def expire(run: str, setup: Setup) -> object:
    return expiring.expire(setup)


def no_error(setup: Setup, run: str) -> None:
    broken = [one for one in verify(setup) if one.error is not None]
    assert not broken, broken


def whole_or_tombstone(setup: Setup, run: str) -> None:
    """A run that can be erased again: as it was, or with its tombstone."""
    no_error(setup, run)
    if Notes(setup).tombstone(run) is None:
        assert (len(names(setup, run, "bundle")), len(names(setup, run, "record"))) == (2, 2)


def nothing_but_notes(setup: Setup, run: str) -> None:
    assert {layout.parse(name).kind for name in names(setup, run, *ALL)} == {"note"}
    assert {one.note.kind for one in Notes(setup).of(run)} == {"erase"}
    no_error(setup, run)


def all_held(setup: Setup, run: str) -> None:
    assert tags(setup, run) == {"hold"}
    assert [one.note.kind for one in Notes(setup).of(run)] == ["hold"]


def none_held(setup: Setup, run: str) -> None:
    assert tags(setup, run) == {"success", "record"}
    assert Notes(setup).standing(run).held is None


def no_bundles(setup: Setup, run: str) -> None:
    assert (names(setup, run, "bundle", "effect"), len(names(setup, run, "record"))) == ([], 2)
    no_error(setup, run)


Act = Callable[[str, Setup], object]
Look = Callable[[Setup, str], None]
ACTIONS: dict[str, tuple[int, Act, Look, Look]] = {
    "hold": (0, lambda run, setup: holding.hold(run, setup, reason="x"), no_error, all_held),
    "release": (0, holding.release, no_error, none_held),
    "rm": (0, remove, no_error, no_bundles),
    "erase": (0, erase, whole_or_tombstone, nothing_but_notes),
    "expire": (100, expire, no_error, no_bundles),
}


def killed_at(event: int, config: Path, run: str, act: Act) -> bool:
    """Fork, act and die at that event; False when it was done before."""
    child = os.fork()
    if child == 0:
        setup = opened(config)
        seen = 0

        def hook(name: str, _: object) -> None:
            nonlocal seen
            if name.startswith(FILES):
                seen += 1
                if seen == event:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(hook)
        act(run, setup)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL, status
        return True
    assert os.WEXITSTATUS(status) == 0, status
    return False


def main(action: str, config: Path, transcript: Path, every: int, beginning: Beginning) -> None:
    days, act, left, done = ACTIONS[action]
    event, states = 1, set()
    while True:
        run = f"{action}-{event}"
        save(config, transcript, run, days)
        if action == "release":
            holding.hold(run, opened(config), reason="x")
        finished = not killed_at(event, config, run, act)
        setup = opened(config)
        left(setup, run)
        states.add((len(names(setup, run, *ALL)), len(tags(setup, run))))
        act(run, setup)
        done(opened(config), run)
        beginning.again()
        if finished:
            break
        event += every
    print(json.dumps({"action": action, "events": event, "states": sorted(states)}))


if __name__ == "__main__":
    catalog.FOLDER_WORKERS = 1
    config, transcript = Path(sys.argv[2]), Path(sys.argv[3])
    save(config, transcript, "today", 0)
    save(config, transcript, "the day before yesterday", 2)  # a clock that is far ahead writes today's, too
    beginning = Beginning(config)
    for word in sys.argv[1].split(","):
        main(word, config, transcript, int(sys.argv[4]), beginning)
