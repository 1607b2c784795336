"""What lies in the spool, without a store or a key: for people who look, and for the doctor."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Literal

from archiver import layout
from archiver.errors import ArchiverError, InvalidNameError
from archiver.spool import disk
from archiver.spool.entry import Entry
from archiver.spool.folder import RunFolder

_STORE_ID: Final = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class Listed:
    """One thing in the spool."""

    store: str
    run: str
    seq: int | None
    """None for an object of the effects ledger."""
    kind: str
    """`checkpoint`, `claim`, `skipped` or `effect`; empty where it cannot be read."""
    state: Literal["waiting", "sent", "delivered", "fork", "damaged"]
    size: int
    """Bytes on the disk."""
    at: datetime
    """When it was put there; where it cannot be read, when its folder changed last."""
    path: Path
    error: str = ""

    @property
    def waits(self) -> bool:
        """Whether it has still to be delivered."""
        return self.state in ("waiting", "sent", "damaged")


def listed(root: Path, store: str | None = None) -> Iterator[Listed]:
    """All that lies in the spools below `root`, or in that of one store; foreign files are passed over."""
    for folder in spools(root, store):
        with disk.translated(folder):
            names = disk.names(folder)
        for name in names:
            with suppress(InvalidNameError):
                run = layout.decode_run(name)
                yield from _of_run(RunFolder(folder / name, folder.name, run), folder.name)


def spools(root: Path, store: str | None = None) -> list[Path]:
    """The folders of stores."""
    with disk.translated(root):
        found = [root / name for name in disk.names(root) if _STORE_ID.fullmatch(name)]
        return [path for path in found if store in (None, path.name) and disk.is_folder(path)]


def drop_fork(one: Listed) -> None:
    """Remove a fork for good."""
    folder = RunFolder(one.path.parents[1], one.store, one.run)
    with folder.changing():
        folder.drop_fork(one.path)
        folder.tidy()


def _of_run(folder: RunFolder, store: str) -> Iterator[Listed]:
    if not folder.holds_something:
        return
    with folder.changing():
        for name in folder.effects():
            path = folder.effects_path / name
            about = path.stat()
            at = datetime.fromtimestamp(about.st_mtime, UTC)
            yield Listed(store, folder.run, None, "effect", "waiting", about.st_size, at, path)
        for seq in folder.numbers():
            try:
                yield _row(store, folder.entry(seq))
            except ArchiverError as error:
                path = folder.entry_path(seq)
                size, at = disk.size_of(path), datetime.fromtimestamp(path.stat().st_mtime, UTC)
                yield Listed(store, folder.run, seq, "", "damaged", size, at, path, str(error))
        for base in folder.bases():
            yield _row(store, base)
        for seq, path, entry in folder.forks():
            at = entry.at if entry else datetime.fromtimestamp(path.stat().st_mtime, UTC)
            kind = entry.kind if entry else ""
            yield Listed(store, folder.run, seq, kind, "fork", disk.size_of(path), at, path)


def _row(store: str, entry: Entry) -> Listed:
    size = disk.size_of(entry.folder)
    return Listed(store, entry.run, entry.seq, entry.kind, entry.state, size, entry.at, entry.folder)
