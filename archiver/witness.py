"""What is remembered outside the store of the newest record of each run, so that a step back is noticed.

    <folder>/<store id>/<run>.json      one run, mode 0600; `<run>` as in names of objects
    <folder>/<store id>/.lock           held while a file is compared and replaced
    <folder>/<store id>/.new            a file while it is written

The store is not trusted with this: whoever can write to it could take the memory back with the rest.
"""

from __future__ import annotations

import fcntl
import os
import re
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Final, Literal, Protocol

from pydantic import Field, ValidationError

from archiver import jsonio, layout
from archiver.errors import (
    ArchiverError,
    ForkError,
    InvalidNameError,
    NotSerialisableError,
    UnsupportedSchemaError,
    WitnessError,
)
from archiver.model import Frozen
from archiver.model.base import Utc
from archiver.model.checkpoint import Digest
from archiver.scratch import fsync_folder
from archiver.shellwords import run_word

WITNESS_FORMAT: Final = 1
MAX_FILE: Final = 1 << 14
"""Bytes of the file of one run: one that is larger is none."""

_STORE_ID = re.compile(r"[0-9a-f]{32}")
_SUFFIX = ".json"
_PATIENCE: Final = 10.0
"""Seconds to wait for another process that holds the lock; it needs milliseconds unless it was stopped."""
_PAUSE: Final = 0.005
_FLAGS = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Seen(Frozen):
    """The newest record of a run that was verified here, and when that was."""

    seq: Annotated[int, Field(strict=True, ge=1, le=layout.MAX_SEQ)]
    sha256: Digest
    """Of the record's body, which stays the same when its header is rewritten."""
    recorded_at: Utc
    seen_at: Utc


@dataclass(frozen=True, slots=True)
class Remembered:
    """What is remembered of one run, or the error that keeps it from being read."""

    store: str
    run: str
    where: str
    seen: Seen | None = None
    error: ArchiverError | None = None


class Witness(Protocol):
    """A memory outside the store. Its methods may raise `WitnessError`: damage is never "not seen yet"."""

    def seen(self, store: str, run: str) -> Seen | None:
        """What is remembered of the run; None if it was never seen."""

    def remember(self, store: str, run: str, seen: Seen) -> None:
        """Remember a record that was verified, unless a later one is remembered already.

        `ForkError` if another record of the same number is.
        """

    def forget(self, store: str, run: str) -> bool:
        """Forget the run, also what cannot be read of it; False if nothing was remembered."""

    def where(self, store: str, run: str) -> str:
        """Where this is remembered, for a person."""

    def __iter__(self) -> Iterator[Remembered]:
        """All that is remembered, by store and run."""


class _File(Seen):
    """The form of a file."""

    format: Literal[1]
    store: str
    run: str


class FolderWitness:
    """A `Witness` in a folder of this machine; safe with several processes at once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def seen(self, store: str, run: str) -> Seen | None:
        """Read the file of the run; `WitnessError` if it is not what was written there."""
        path = self._path(store, run)
        data = _read(path)
        return None if data is None else _parsed(path, data, store, run)

    def remember(self, store: str, run: str, seen: Seen) -> None:
        """Write the file of the run, durably, if it does not hold a later record."""
        path = self._path(store, run)
        with _translated(path), _locked(path.parent):
            before = self.seen(store, run)
            if before is not None and before.seq >= seen.seq:
                if before.seq == seen.seq and before.sha256 != seen.sha256:
                    raise fork(run, before, str(path))
                return
            _write(path, _content(store, run, seen))

    def forget(self, store: str, run: str) -> bool:
        """Remove the file of the run, whatever it holds."""
        path = self._path(store, run)
        with _translated(path):
            if not os.path.lexists(path):
                return False
            with _locked(path.parent):
                try:
                    path.unlink()
                except FileNotFoundError:
                    return False
                fsync_folder(path.parent)
        return True

    def where(self, store: str, run: str) -> str:
        """The path of the run's file."""
        return str(self._path(store, run))

    def __iter__(self) -> Iterator[Remembered]:
        """All files, sorted; one that cannot be read comes with its error."""
        for store in _names(self._folder):
            if not _STORE_ID.fullmatch(store):
                continue
            for name in _names(self._folder / store):
                if not name.endswith(_SUFFIX):
                    continue
                try:
                    run = layout.decode_run(name.removesuffix(_SUFFIX))
                except InvalidNameError:
                    continue
                yield self._remembered(store, run)

    def _remembered(self, store: str, run: str) -> Remembered:
        where = self.where(store, run)
        try:
            return Remembered(store, run, where, seen=self.seen(store, run))
        except ArchiverError as error:
            return Remembered(store, run, where, error=error)

    def _path(self, store: str, run: str) -> Path:
        if not _STORE_ID.fullmatch(store):
            raise InvalidNameError(f"{store!r} is not 32 lower-case hex digits, as a store id needs")
        return self._folder / store / (layout.encode_run(run) + _SUFFIX)


def fork(run: str, seen: Seen, where: str) -> ForkError:
    """The error of a number that has another record than the one that was seen."""
    return ForkError(
        f"run {run}: record {seen.seq} is another than the one that was seen on {moment(seen.seen_at)}, as "
        f"{where} remembers: two records of this number were signed",
        remedy="look for the record that was seen in a copy of the store or among older versions of the "
        "object, and who could write with the writer's key; if the one in the store is right after all, "
        "`archiver witness forget` with the run's id",
    )


def moment(at: datetime) -> str:
    """A moment as messages have it."""
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _content(store: str, run: str, seen: Seen) -> bytes:
    document = {"format": WITNESS_FORMAT, "store": store, "run": run, **seen.document()}
    return jsonio.canonical(document) + b"\n"


def _parsed(path: Path, data: bytes, store: str, run: str) -> Seen:
    try:
        document = jsonio.loads(data)
    except ValueError as error:
        raise _torn(path, "it is not JSON") from error
    version = document.get("format") if isinstance(document, dict) else None
    if isinstance(version, int) and version > WITNESS_FORMAT:
        raise UnsupportedSchemaError(
            f"{path} has witness format {version}; this release reads {WITNESS_FORMAT}",
            remedy=f"install a checkpoint-archiver release that reads witness format {version}",
        )
    try:
        parsed = _File.model_validate(document)
    except ValidationError as error:
        first = error.errors()[0]
        raise _torn(path, f"{'.'.join(map(str, first['loc'])) or 'it'}: {first['msg']}") from error
    except NotSerialisableError as error:
        raise _torn(path, str(error)) from error
    if (parsed.store, parsed.run) != (store, run):
        raise _torn(path, f"it is about run {parsed.run!r} of store {parsed.store!r}")
    return Seen(seq=parsed.seq, sha256=parsed.sha256, recorded_at=parsed.recorded_at, seen_at=parsed.seen_at)


def _torn(path: Path, why: str) -> WitnessError:
    run = layout.decode_run(path.name.removesuffix(_SUFFIX))
    return WitnessError(
        f"what was remembered of run {run} in {path} cannot be read: {why}",
        remedy="bring the file back from a backup; or look yourself whether the store is as new as it should "
        f"be, and then `archiver witness forget --store-id {path.parent.name} {run_word(run)}` lets it be "
        "seen anew",
    )


def _read(path: Path) -> bytes | None:
    """The content of a plain file; None if there is none."""
    with _translated(path):
        try:
            handle = os.open(path, os.O_RDONLY | _FLAGS)
        except FileNotFoundError:
            return None
        try:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise _torn(path, "it is not a plain file")
            with os.fdopen(os.dup(handle), "rb") as file:
                data = file.read(MAX_FILE + 1)
        finally:
            os.close(handle)
    if len(data) > MAX_FILE:
        raise _torn(path, f"it has more than {MAX_FILE} bytes")
    return data


def _write(path: Path, data: bytes) -> None:
    """Replace the file durably. The lock is held, so a `.new` that is there is of somebody who died."""
    new = path.parent / ".new"
    new.unlink(missing_ok=True)
    handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FLAGS, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
    fsync_folder(path.parent)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Keep other processes from comparing and replacing meanwhile; the folder is made if it is missing."""
    _make(folder)
    handle = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT | _FLAGS, 0o600)
    try:
        deadline = time.monotonic() + _PATIENCE
        while not _lock(handle):
            if time.monotonic() > deadline:
                raise WitnessError(
                    f"another process has held {folder / '.lock'} for {_PATIENCE:.0f} seconds",
                    remedy="find the stopped process with `fuser` on that file and end or continue it",
                )
            time.sleep(_PAUSE)
        yield
    finally:
        with suppress(OSError):  # closing alone would leave the lock with a child that was forked meanwhile
            fcntl.flock(handle, fcntl.LOCK_UN)
        os.close(handle)


def _lock(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _make(folder: Path) -> None:
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    for path in reversed(missing):
        path.mkdir(mode=0o700, exist_ok=True)
        fsync_folder(path.parent)


def _names(folder: Path) -> list[str]:
    """Names in a folder, sorted; none where it is not there. Such as start with a dot are left out."""
    with _translated(folder):
        try:
            return sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))
        except FileNotFoundError:
            return []


@contextmanager
def _translated(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise WitnessError(
            f"what is remembered of runs outside the store cannot be read or written: {path}: "
            f"{error.strerror or error}",
            remedy="check owner and mode of the folder of trust.witness and those above it; with "
            "trust.use_witness = false nothing is remembered, and a step back of the store is not noticed",
        ) from error
