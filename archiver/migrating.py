"""Old checkpoints in today's schema: of a file of documents, or of the newest checkpoint of a stored run.

Always on a copy. What was there stays as it is: of a file the result is another file, of a run it is the next
checkpoint.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from archiver import jsonio, members, saved
from archiver.archive import Archived, Options, Source, archive
from archiver.catalog import Catalog
from archiver.choosing import choose
from archiver.errors import AlreadyExistsError, InputNotFoundError
from archiver.migrate import migrate, version_of
from archiver.model import SCHEMA_VERSION, Record
from archiver.progress import Progress, Silent
from archiver.rows import documents, read_rows
from archiver.scratch import Scratch

if TYPE_CHECKING:
    from archiver.setup import Setup

MAX_LINE = 200
"""Characters of a line of a difference; a message can be long."""


@dataclass(frozen=True, slots=True)
class Change:
    """What became of one document: where it stands, its version before, the steps, and both as text."""

    where: str
    version: int
    steps: tuple[str, ...]
    before: dict[str, Any]
    after: dict[str, Any]

    def difference(self) -> Iterator[str]:
        """The two as a unified difference of their JSON, long lines cut; nothing where they are the same."""
        old, new = (jsonio.pretty(one).decode().splitlines() for one in (self.before, self.after))
        names = (f"{self.where} (version {self.version})", f"{self.where} (version {SCHEMA_VERSION})")
        for line in difflib.unified_diff(old, new, *names, n=1, lineterm=""):
            yield line if len(line) <= MAX_LINE else f"{line[: MAX_LINE - 1]}…"


def of_file(path: Path) -> Iterator[Change]:
    """The change of each document of a file of JSON or JSON lines, all read and valid before the first comes.

    Raises what `rows.read_rows` does: nothing is migrated of a file that cannot be migrated whole.
    """
    for _ in read_rows(path):
        pass
    for number, document in enumerate(documents(path), start=1):
        after, steps = migrate(document)
        yield Change(f"{path}, document {number}", version_of(document), steps, document, after)


def write_file(path: Path, into: Path) -> tuple[int, int]:
    """Write the documents of `path` as JSON lines of the current schema into the new file `into`.

    Returns how many there are and how many were older. Raises `AlreadyExistsError` for a file that is there.
    """
    if into.exists() or into.is_symlink():
        raise AlreadyExistsError(
            f"{into} exists; nothing is written over", remedy="choose another file with --into"
        )
    count = older = 0
    try:
        with Scratch(into.absolute().parent) as scratch:
            draft = scratch.path / "migrated"
            with draft.open("xb") as file:
                for change in of_file(path):
                    file.write(jsonio.dumps(change.after) + b"\n")
                    count += 1
                    older += bool(change.steps)
                file.flush()
                os.fsync(file.fileno())
            os.link(draft, into)
    except FileExistsError as error:
        raise AlreadyExistsError(
            f"{into} came into being meanwhile", remedy="choose another --into"
        ) from error
    except OSError as error:
        raise InputNotFoundError(
            f"{into} cannot be written: {error.strerror}", remedy="choose another file with --into"
        ) from error
    return count, older


def of_run(
    run: str, setup: Setup, *, at: int | None = None, progress: Progress | None = None
) -> tuple[Record, Change]:
    """The change of the run's newest checkpoint, or the numbered one; nothing is written.

    Raises what reading a checkpoint does.
    """
    chain = Catalog(setup).chain(run, upto=at)
    record = choose(chain, at)
    with Scratch() as scratch:
        found = saved.fetch(record, setup, scratch.path / "bundle", progress or Silent(), chain.records)
        state = found.checkpoint.document(exclude=members.ITEMS) if found.steps else found.document
        where = f"run {record.run}, checkpoint {record.seq}"
        return record, Change(where, record.schema_version, found.steps, found.document, state)


def save_run(run: str, setup: Setup, *, progress: Progress | None = None) -> Archived | None:
    """Save the newest checkpoint of the run anew, in the current schema; None where it is in that already.

    The old one stays under its number. Raises what reading and saving a checkpoint do, and
    `StaleWriterError` where anything was committed meanwhile: the old checkpoint must not follow that.
    """
    chain = Catalog(setup).chain(run)
    record = choose(chain, None)
    if record.schema_version == SCHEMA_VERSION:
        return None
    with Scratch() as scratch:
        found = saved.fetch(record, setup, scratch.path / "bundle", progress or Silent(), chain.records)
        options = Options(capture=False, after=chain.newest)
        return archive(Source(checkpoint=found.checkpoint), setup, options=options, progress=progress)


__all__ = ["Change", "of_file", "of_run", "save_run", "write_file"]
