"""What the local file and the store say of runs, as one list."""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Final

from archiver import layout
from archiver.audit import entries, reading
from archiver.errors import ArchiverError, KeyUnavailableError
from archiver.model.audit import Act, AuditEntry, AuditLine

if TYPE_CHECKING:
    from pathlib import Path

    from archiver.setup import Setup

MOST: Final = 1000
"""Audit objects of one place in the store that are read."""


@dataclass(frozen=True, slots=True)
class Seen:
    """Something that was done, and where it stands."""

    act: Act
    line: int | None = None
    """The number of its line in the local file."""
    object: str | None = None
    signer: str | None = None
    """Name of the trusted key that signed the object; None for an unknown one."""


@dataclass(frozen=True, slots=True)
class Said:
    """What is wrong with an audit object, or that it cannot be looked at."""

    object: str
    note: str
    error: ArchiverError | None = None


def local(path: Path, run: str | None, newest: int | None = None) -> Iterator[Seen]:
    """The lines about a run, or about all; of a file of any size no more than the newest are held."""
    lines = (
        Seen(read.line, line=read.number)
        for read in reading.read(path)
        if read.line is not None and run in (None, read.line.run)
    )
    return lines if newest is None else iter(heapq.nlargest(newest, lines, key=lambda one: one.act.at))


def stored(setup: Setup, run: str, newest: int | None) -> Iterator[Seen | Said]:
    """What the store has of a run, the newest first: its own objects, and those of looks at several runs."""
    own = islice(entries.of(setup, run), MOST if newest is None else newest)
    yield from map(_seen, own)
    for found in islice(entries.of(setup, layout.SEVERAL_RUNS), MOST):
        if found.entry is not None and _names(found.entry, run):
            yield _seen(found)


def everything(
    setup: Setup, path: Path, *, actions: Collection[str], since: datetime | None, run: str | None = None
) -> Iterator[Seen | Said]:
    """What was done with all runs of the store (or one), each once: the lines here, then objects besides.

    Of objects whose action is another one nothing is told; what is held are digests of lines with `actions`.
    """

    def wanted(act: Act) -> bool:
        return act.action in actions and (since is None or act.at >= since)

    known: set[bytes] = set()
    for one in local(path, run):
        if _store(one.act) == setup.store_id and wanted(one.act):
            known.add(_digest(one.act))
            yield one
    for found in entries.everywhere(setup, since) if run is None else entries.of(setup, run):
        entry = found.entry
        if entry is None or (wanted(entry) and _digest(entry) not in known):
            yield _seen(found)


def findings(setup: Setup, run: str) -> Iterator[Said]:
    """What is to be said of the newest audit objects that lie under a run, good or bad."""
    for found in islice(entries.of(setup, run), MOST):
        seen = _seen(found)
        if isinstance(seen, Said):
            yield seen
            continue
        by = seen.signer or "somebody who is not in the list of trusted keys"
        loud = " with a BREAK-GLASS identity" if seen.act.break_glass else ""
        yield Said(found.name, f"{by} signed: {seen.act.action}{loud} by {seen.act.who}")


def merged(lines: Iterator[Seen], objects: Iterator[Seen]) -> list[Seen]:
    """Both as one list, the oldest first; what stands in both places is one."""
    found = {_key(one.act): one for one in lines}
    for one in objects:
        known = found.get(_key(one.act))
        found[_key(one.act)] = one if known is None else replace(known, object=one.object, signer=one.signer)
    return sorted(found.values(), key=lambda one: one.act.at)


def _seen(found: entries.Found) -> Seen | Said:
    if found.entry is not None:
        return Seen(found.entry, object=found.name, signer=found.signer)
    if isinstance(found.error, KeyUnavailableError):
        return Said(found.name, "sealed to keys that are not here: not opened")
    return Said(found.name, str(found.error), found.error)


def _names(entry: AuditEntry, run: str) -> bool:
    named = entry.detail.get("run_ids")
    return run in entry.opened or (isinstance(named, list) and run in named)


def _digest(act: Act) -> bytes:
    return hashlib.sha256(repr(_key(act)).encode("utf-8", "backslashreplace")).digest()


def _key(act: Act) -> tuple[object, ...]:
    return act.at, act.action, act.run, act.seq, act.who, act.uid, act.command, act.why, _store(act)


def _store(act: Act) -> str | None:
    return act.store if isinstance(act, AuditLine | AuditEntry) else None
