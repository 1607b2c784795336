"""Is there room on this machine for what waits for the store, and for what sweeps remember?"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from archiver.config import Settings, state_home
from archiver.config.values import size_text
from archiver.doctor.check import Check, failed, ok, unknown, warning
from archiver.errors import ArchiverError
from archiver.spool import disk
from archiver.spool.spool import place

NEEDED: Final = 64 << 20
"""Bytes that what sweeps remember may need: some hundred for each run."""


def checks(settings: Settings) -> Iterator[Check]:
    """A line for the folder of the spool, and one for that of sweeps."""
    try:
        spool = place(settings)
        state = settings.sweep.state or state_home() / "sweep"
    except ArchiverError as error:
        yield failed("room for the spool", error)
        return
    yield _room("room for the spool", spool, settings.run.spool_limit, "run.spool", "run.spool_limit")
    yield _room("room for sweeps", state, NEEDED, "sweep.state", None)


def _room(name: str, folder: Path, wanted: int, key: str, limit: str | None) -> Check:
    """Whether as much fits as may come; what lies there already is a part of that."""
    try:
        there = next(path for path in (folder, *folder.parents) if path.is_dir())
        status = os.statvfs(there)
        used = disk.size_of(folder) if limit and folder.is_dir() else 0
    except OSError as error:
        return unknown(name, f"{folder} cannot be looked at: {error.strerror}")
    free = status.f_bavail * status.f_frsize
    text = f"{free / 1e9:.1f} GB free"
    other = f"name a folder on another disk with {key}"
    if status.f_files and not status.f_favail:
        return warning(
            name, f"{text} for {folder}, but no more files can be made", f"remove files, or {other}"
        )
    if free + used < wanted:
        lower = f", lower {limit}" if limit else ""
        may = f"{limit} lets it hold {size_text(wanted)}" if limit else f"{size_text(wanted)} may be needed"
        return warning(name, f"{text} for {folder}, and {may}", f"free space{lower}, or {other}")
    return ok(name, text)
