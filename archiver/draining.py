"""Checkpoints by the schema version they were saved in: what to drain before a release stops reading it."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from archiver import rollback
from archiver.catalog import Catalog, Head
from archiver.errors import ArchiverError, UsageError

if TYPE_CHECKING:
    from archiver.setup import Setup

_COMPARE: dict[str, Callable[[int, int], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
    "": operator.eq,
}
_WANTED = re.compile(r"\s*(<=?|>=?|=?)\s*([0-9]{1,7})\s*")


def versions(text: str) -> Callable[[int], bool]:
    """Whether a version is one of those that `text` means: `2`, `<2`, `<=2`, `>2`, `>=2`, `=2`.

    Raises `UsageError` for any other text.
    """
    match = _WANTED.fullmatch(text)
    if match is None:
        raise UsageError(
            f"{text!r} means no schema versions",
            remedy="write it as 2, '<2', '<=2', '>2' or '>=2', in quotes",
        )
    compare, number = _COMPARE[match[1]], int(match[2])
    return lambda version: compare(version, number)


def checkpoints(setup: Setup, wanted: Callable[[int], bool]) -> Iterator[Head]:
    """Every checkpoint of the store that was saved in a wanted version; a run that cannot be read, once.

    Reads all records of all runs, for the newest one does not say what those before it were saved in. A run
    of which more was seen than the store has is an error too: what is missing may be what is looked for.
    """
    catalog, now = Catalog(setup), datetime.now(UTC)
    for run, newest in catalog.newest_numbers():
        try:
            sight = rollback.look(run, setup)
            chain = catalog.chain(run)
            sight.judge(chain, remember=False, now=now)
        except ArchiverError as error:
            yield Head(run, newest, error=error.with_traceback(None))
            continue
        for link in chain.links:
            if link.record.bundle is not None and wanted(link.record.schema_version):
                yield Head(run, link.record.seq, record=link.record)
