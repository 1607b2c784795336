"""Which files on this machine a run of the store was made of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from archiver.audit.cleaning import Clean
from archiver.errors import ArchiverError
from archiver.sources import Found, configured
from archiver.sweep import bounded
from archiver.sweep.state import key_of, read_state

if TYPE_CHECKING:
    from archiver.setup import Setup


def whence(run: str, setup: Setup) -> Iterator[tuple[str, str]]:
    """Kind and path of each, free of credentials; the path is empty where no source has it any more.

    Goes through all sources, as what is remembered of a path is its digest.
    """
    state, clean = read_state(setup), Clean(setup).whole
    rows: list[tuple[str, bytes]] = state.do("select kind, key from runs where run = ?", (run,))
    state.close()
    left = set(rows)
    for source in configured(setup.settings):
        try:
            for found in bounded.bounded(source.find(), bounded.PATIENCE):
                if not isinstance(found, Found):
                    continue
                name = (found.kind, key_of(found.key))
                if name in left or found.run_id == run:
                    left.discard(name)
                    yield found.kind, clean(found.key)
        except ArchiverError as error:
            yield source.kind, clean(f"{source.path} (not looked through: {error})")
    for kind, _ in sorted(left):
        yield kind, ""
