"""What this machine keeps and every restore needs: the memory of runs and the audit file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from archiver.audit import journal, reading
from archiver.config import Settings
from archiver.doctor.check import Check, failed, failure, ok, warning
from archiver.errors import ArchiverError, AuditError, DamagedError, WitnessError
from archiver.setup import contents, keys
from archiver.setup.witnesses import witness_of
from archiver.spool import listing
from archiver.spool.spool import place
from archiver.store import ObjectStore
from archiver.witness import moment

_FEW = 3


def checks(settings: Settings, store: ObjectStore) -> Iterator[Check]:
    """Whether the memory of this store's runs can be read, the audit file written, and nothing waits."""
    yield from _witness(settings, store)
    yield _audit(settings)
    yield from _spool(settings, store)


def _witness(settings: Settings, store: ObjectStore) -> Iterator[Check]:
    name = "witness"
    witness, doubts = witness_of(settings, store.url)
    if witness is None:
        said = "; ".join(doubts) or "trust.use_witness is false: nothing is remembered of runs"
        yield warning(name, said, "without a memory a step back of the store is not noticed")
        return
    try:
        mine = settings.store.id or contents.store_id(store)
    except ArchiverError:
        return  # the check of the id says so
    try:
        known = [one for one in witness if one.store == mine]
    except ArchiverError as error:
        yield failed(name, error)
        return
    broken = [one.error for one in known if one.error is not None]
    yield from (failed(name, one) for one in broken[:_FEW])
    if len(broken) > _FEW:
        more = f"{len(broken) - _FEW} more cannot be read"
        yield failure(name, more, "`archiver witness list` has them", WitnessError)
    if not broken:
        runs = f"{len(known)} run{'' if len(known) == 1 else 's'}"
        yield ok(name, f"remembers {runs} of this store, and all of it can be read")


def _spool(settings: Settings, store: ObjectStore) -> Iterator[Check]:
    name = "spool"
    try:
        mine = settings.store.id or contents.store_id(store)
    except ArchiverError:
        return  # as above
    try:
        found = list(listing.listed(place(settings), mine))
    except ArchiverError as error:
        yield failed(name, error)
        return
    waiting = [one for one in found if one.waits]
    forks = [one for one in found if one.state == "fork"]
    said = []
    if waiting:
        oldest = min(one.at for one in waiting)
        said.append(f"{len(waiting)} sealed on this machine and not in the store, since {moment(oldest)}")
    if forks:
        lost = "1 lost its" if len(forks) == 1 else f"{len(forks)} lost their"
        said.append(f"{lost} number to another writer, kept as fork{'' if len(forks) == 1 else 's'}")
    if said:
        does = ["`archiver sync --list` shows it"]
        if waiting:
            does.append("`archiver sync` delivers what waits, and so does its run")
        if forks:
            does.append("a fork is never delivered: look whether it is needed, then --drop-fork removes it")
        yield warning(name, "; ".join(said), "; ".join(does))
    else:
        yield ok(name, "nothing waits on this machine for the store")


def _audit(settings: Settings) -> Check:
    name = "audit file"
    try:
        path = journal.place(settings)
        lines = list(reading.read(path))
    except ArchiverError as error:
        return failed(name, error)
    if not _writable(path):
        return failure(
            name,
            f"this user cannot write {path}, so nothing is restored or opened",
            "check owner and mode of the file and of the folders above it, or name another one as audit.file",
            AuditError,
        )
    broken = [line for line in lines if line.state == "broken"]
    if broken:
        return failure(
            name,
            f"{path}, line {broken[0].number}: {broken[0].said}",
            "`archiver audit verify` has all of it; compare with copies of the file",
            DamagedError,
        )
    return ok(name, f"can be written, and its lines follow each other ({len(lines)})")


def _writable(path: Path) -> bool:
    if os.path.lexists(path):
        return os.access(path, os.W_OK)
    there = next((folder for folder in path.parents if os.path.lexists(folder)), Path("/"))
    return there.is_dir() and os.access(there, os.W_OK | os.X_OK)


def beside(settings: Settings, folder: Path) -> Iterator[Check]:
    """Whether what opens the store in this folder lies on the same file system."""
    name = "key beside store"
    try:
        device = folder.stat().st_dev
        near = [path for path in keys.identity_files(settings) if path.stat().st_dev == device]
    except (OSError, ArchiverError):
        return  # other checks say so
    if near:
        yield warning(
            name,
            f"{near[0]} lies on the file system of the store: whoever reads both reads all that is saved",
            "keep the identity elsewhere, and its recipient alone here, as keys.recipients; or weigh it: a "
            "disk that is encrypted, and nobody else on this machine",
        )
