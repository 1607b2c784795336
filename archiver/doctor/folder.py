"""A store in a folder: what its file system does, how full it is, and who else can reach it."""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from archiver.config import Settings
from archiver.config.values import size_text
from archiver.doctor import memory, objects, server
from archiver.doctor.check import Check, failed, failure, ok, unknown, warning
from archiver.errors import ArchiverError, StoreFullError, StoreUnreachableError
from archiver.layout import DOCTOR_PROBES
from archiver.setup import fencing
from archiver.setup.probes import Probes, remover
from archiver.store import ObjectStore

_LITTLE: Final = 64 << 20
_OTHERS: Final = 0o077
_FILES: Final = 2000


def checks(settings: Settings, store: ObjectStore) -> Iterator[Check]:
    """Everything, in the order in which it builds on itself."""
    folder = Path(unquote(urlsplit(store.url).path))
    first = _there(folder, settings)
    yield first
    if first.verdict == "failure":
        return
    yield objects.store_id(store, settings)
    if os.access(folder, os.W_OK | os.X_OK):
        yield from _writing(settings, store)
    else:
        for name in ("fencing", "round trip", "class tags"):
            yield unknown(name, "this user may not write here, so it could not be tried")
    yield _space(folder, settings)
    yield _reached_by_others(folder)
    yield from memory.beside(settings, folder)
    yield objects.classes(store, lambda name: store.head(name).retention)
    yield from objects.left_over(store)


def _there(folder: Path, settings: Settings) -> Check:
    name = "store"
    try:
        status = folder.stat()
    except OSError as error:
        return failure(
            name,
            f"the folder {folder} cannot be looked at: {error.strerror}",
            "mount it, or correct store.url; where there never was a store, `archiver init FOLDER "
            "--config FILE` makes one, and FILE, a new configuration"
            if settings.store.url
            else "no store is configured: run `archiver init`, or name the store in archiver.toml",
            StoreUnreachableError,
        )
    if not stat.S_ISDIR(status.st_mode):
        return failure(name, f"{folder} is no folder", "correct store.url", StoreUnreachableError)
    if not os.access(folder, os.R_OK | os.X_OK):
        return failure(
            name,
            f"this user may not look into {folder}",
            "check the owner and mode of the folder",
            StoreUnreachableError,
        )
    return ok(name, f"{folder} is there")


def _writing(settings: Settings, store: ObjectStore) -> Iterator[Check]:
    with Probes(DOCTOR_PROBES, remover(store, settings)) as probes:
        try:
            found = fencing.probe(store, probes)
        except ArchiverError as error:
            yield failed("fencing", error)  # a file system without hard links is told so
            return
        yield server.fencing(found, wanted=settings.store.fencing)
        name = probes.name()
        yield objects.round_trip(store, name)
        yield objects.tags(store, name, lambda name: store.head(name).retention)


def _space(folder: Path, settings: Settings) -> Check:
    name = "free space"
    status = os.statvfs(folder)
    free = status.f_bavail * status.f_frsize
    room = f"{free / 1e9:.1f} GB free"
    if free < _LITTLE or (status.f_files and not status.f_favail):
        what = room if free < _LITTLE else f"{room}, but no more files can be made"
        return failure(name, what, "free space, or move the store", StoreFullError)
    if free < settings.limits.bundle:
        return warning(
            name,
            f"{room}: less than the largest bundle that may be made ({size_text(settings.limits.bundle)})",
            "free space, or lower limits.bundle",
        )
    return ok(name, room)


def _reached_by_others(folder: Path) -> Check:
    """Sealed objects tell names, sizes and times; and whoever may write can remove them."""
    name = "other users"
    mode = stat.S_IMODE(folder.stat().st_mode)
    fix = f"`chmod -R go= {shlex.quote(str(folder))}`"
    if mode & 0o022:
        return warning(
            name, f"others may write into {folder} (mode {mode:04o}), so also remove what is there", fix
        )
    if not mode & _OTHERS:
        return ok(name, f"none can reach {folder} (mode {mode:04o})")
    open_files = [
        path for path in islice(_files(folder), _FILES) if stat.S_IMODE(path.stat().st_mode) & _OTHERS
    ]
    what = f"others may look into {folder} (mode {mode:04o}): run ids, sizes and times can be seen"
    if open_files:
        what += f"; {open_files[0].relative_to(folder)} can be read, which still is sealed"
    return warning(name, what, fix)


def _files(folder: Path) -> Iterator[Path]:
    for root, _, names in os.walk(folder):
        yield from (Path(root) / name for name in names)
