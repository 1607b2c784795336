"""Folders of this machine in which sweeps keep what they remember, and what may be wrong with them."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from archiver.errors import StoreDeniedError, StoreError, StoreFullError

_FULL: Final = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


def make_folder(path: Path) -> None:
    """Make a folder of this machine and its missing parents, mode 0700; raises as `translated`."""
    with translated(path):
        missing = [one for one in (path, *path.parents) if not one.exists()]
        for one in reversed(missing):
            one.mkdir(mode=0o700, exist_ok=True)


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Errors of the system and of the database as `StoreFullError`, `StoreDeniedError` or `StoreError`."""
    text = f"what is kept of sweeps in {path} cannot be read or written"
    other = "or name another folder with sweep.state"
    try:
        yield
    except sqlite3.OperationalError as error:
        if "full" in str(error) or "disk I/O" in str(error):
            raise StoreFullError(f"{text}: {error}", remedy=f"free disk space there, {other}") from error
        raise StoreError(f"{text}: {error}", remedy=f"check who may write there, {other}") from error
    except sqlite3.Error as error:
        raise StoreError(
            f"{text}: {error}", remedy=f"remove it; the next sweep makes it anew, {other}"
        ) from error
    except PermissionError as error:
        raise StoreDeniedError(
            f"{text}: {error.strerror}", remedy=f"check who may write there, {other}"
        ) from error
    except OSError as error:
        full = error.errno in _FULL
        kind, remedy = (StoreFullError, "free disk space") if full else (StoreError, "look at what lies")
        raise kind(f"{text}: {error.strerror or error}", remedy=f"{remedy} there, {other}") from error
