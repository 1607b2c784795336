"""One sweep of a store at a time on one machine; many machines need no lock."""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

from archiver.errors import StoreError, SweepRunningError
from archiver.model import utc_text
from archiver.sweep.disk import make_folder, translated
from archiver.sweep.state import folder

if TYPE_CHECKING:
    from archiver.setup import Setup

FILE_NAME: Final = "lock"
_PAUSE: Final = 0.2


@contextmanager
def alone(setup: Setup, wait: timedelta = timedelta()) -> Iterator[None]:
    """Hold the lock of the configured store; `SweepRunningError` if another process holds it after `wait`.

    It goes with the process, however that ends.
    """
    path = folder(setup.settings, setup.require_store_id()) / FILE_NAME
    make_folder(path.parent)
    with translated(path):
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        _take(handle, path, time.monotonic() + wait.total_seconds())
        _sign(handle)
        yield
        with suppress(OSError):
            os.ftruncate(handle, 0)
    finally:
        with suppress(OSError):  # closing alone would leave the lock with a child that was forked meanwhile
            fcntl.flock(handle, fcntl.LOCK_UN)
        os.close(handle)


def _take(handle: int, path: Path, until: float) -> None:
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= until:
                raise _running(path) from None
            time.sleep(_PAUSE)
        except OSError as error:  # a file system that has no locks
            raise StoreError(
                f"the lock of sweeps, {path}, cannot be taken: {error.strerror or error}",
                remedy="name a folder on a local disk with sweep.state",
            ) from error
        else:
            return


def _sign(handle: int) -> None:
    """Say who holds it, for those who find it held; a full disk keeps nobody from sweeping."""
    with suppress(OSError):
        os.ftruncate(handle, 0)
        os.pwrite(handle, json.dumps({"pid": os.getpid(), "since": utc_text(datetime.now(UTC))}).encode(), 0)


def _running(path: Path) -> SweepRunningError:
    pid, since = 0, ""
    with suppress(OSError, ValueError, TypeError, AttributeError):
        said = json.loads(path.read_bytes()[:4096])
        pid, since = int(said.get("pid", 0)), str(said.get("since", ""))[:40]
    who = f"process {pid}" if pid else "another process"
    error = SweepRunningError(
        f"a sweep of this store is at work on this machine: {who}{f', since {since}' if since else ''}",
        pid=pid,
        remedy="let it end, or wait for it with --wait; a process that hangs can be ended at any time: what "
        "it has saved stays, and the next sweep goes on",
    )
    error.details |= {"pid": pid or None, "since": since or None}
    return error
