"""Die at one event of each kind, each in a fork, and say what is left.

    python dying.py FOLDER

Prints a JSON object: for each case what the tale of the death says, the signal, and what is on the disk or
has arrived.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from archiver.store.local import LocalStore
from archiver.testing.events import Events, install
from archiver.testing.points import read

HERE, THERE = socket.socketpair()
DATA = b"0123456789"


def write(folder: Path) -> None:
    handle = os.open(folder / "written", os.O_WRONLY | os.O_CREAT, 0o600)
    os.write(handle, DATA)


def rename(folder: Path) -> None:
    (folder / "old").mkdir()
    (folder / "old").rename(folder / "new")


def sync(folder: Path) -> None:
    with (folder / "synced").open("wb") as file:
        file.write(DATA)
        file.flush()
        os.fsync(file.fileno())


def create(folder: Path) -> None:
    store = LocalStore(folder / "store")
    store.make()
    store.create("records/r/00000001.age", [DATA], retention="live")


def intend(folder: Path) -> None:
    LocalStore(folder / "store").create(f"effects/r/{'0' * 32}.age", [DATA, DATA], retention="live")


def send(folder: Path) -> None:
    HERE.sendall(DATA)


def in_a_fork(folder: Path) -> None:
    """What a child of the agent does is not the agent's; the second write is."""
    child = os.fork()
    if child == 0:
        write(folder)
        os._exit(0)
    os.waitpid(child, 0)
    write(folder)


CASES: dict[str, tuple[str, Callable[[Path], None]]] = {
    "write whole": ("write:1", write),
    "write half": ("write:2", write),
    "file": ("file:2", rename),
    "fsync before": ("fsync:1", sync),
    "fsync after": ("fsync:2", sync),
    "upload before": ("upload:1", create),
    "upload half": ("upload:2", create),
    "upload after": ("upload:3", create),
    "effect half": ("effect:2", intend),
    "effect is no upload": ("upload:1", intend),
    "send half": ("send:2", send),
    "send whole": ("send:3", send),
    "fork": ("write:1", in_a_fork),
    "not reached": ("write:3", write),
}


def main(folder: Path) -> None:
    said = {}
    for name, (point, work) in CASES.items():
        place = folder / name
        (place / "store").mkdir(parents=True)
        child = os.fork()
        if child == 0:
            tale = os.open(place / "tale", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            install(Events(read(point)[0], tale), remote=False)
            work(place)
            os._exit(0)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        said[name] = {"status": status, "tale": (place / "tale").read_text(encoding="utf-8"), **left(place)}
    print(json.dumps(said))


def left(place: Path) -> dict[str, Any]:
    THERE.setblocking(False)
    try:
        arrived = len(THERE.recv(100))
    except BlockingIOError:
        arrived = 0
    files = (path for path in place.rglob("*") if path.is_file() and path.name != "tale")
    names = sorted(str(path.relative_to(place)) for path in place.iterdir())
    return {"arrived": arrived, "sizes": sorted(path.stat().st_size for path in files), "names": names}


if __name__ == "__main__":
    main(Path(sys.argv[1]))
