"""Which files may go on with a run of the store: whoever writes an id into a file does not get its run.

Whoever writes the runs need not be who archives them, and an id is no secret.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from archiver.errors import RefusedError
from archiver.model import Record
from archiver.sweep.state import State, key_of

if TYPE_CHECKING:
    from archiver.sources import Found

HARNESSES: Final = frozenset({"claude-code", "codex"})
_ADOPT: Final = """
insert or ignore into owners select run, kind, key from runs
where run = ? and kind = ? and what in ('archived', 'begun') order by seq limit 1
"""
"""Of what was remembered by a release that did not know owners yet."""
_ANOTHER: Final = "give it an id of its own, or leave it out with `match` of the source"


def only(found: Found) -> frozenset[tuple[int, int]] | None:
    """Device and inode of all that may be read of the run: what was found; None for sessions of a harness."""
    if found.kind in HARNESSES:
        return None
    return frozenset((one.device, one.inode) for one in found.files)


def demand_kind(found: Found, run: str, last: Record) -> None:
    """`RefusedError` unless the newest checkpoint of the run was made of the same kind of source.

    What has none was saved by hand, or by an older release: a session of a harness may go on with it.
    """
    made_of = last.source.kind if last.source is not None else None
    if made_of == found.kind:
        return
    if made_of is None and found.kind in HARNESSES and last.dialect == found.kind:
        return
    by = f"a source of kind {made_of}" if made_of else "no source: it was saved by hand or by a program"
    raise RefusedError(
        f"{found.key}: it says that it is run {run}, which is in the store already and comes from {by}",
        remedy=_ANOTHER,
    )


def demand_own(found: Found, run: str, state: State) -> None:
    """`RefusedError` where another folder, or file of messages, was the first that was archived as this run.

    If there was none, it is this one from now on. Sessions of a harness may lie in several files.
    """
    if found.kind in HARNESSES:
        return
    own = key_of(found.key)
    state.do(_ADOPT, (run, found.kind))
    state.do("insert or ignore into owners values (?, ?, ?)", (run, found.kind, own))
    ((kind, key),) = state.do("select kind, key from owners where run = ?", (run,))
    if (kind, key) == (found.kind, own):
        return
    first = state.names.get(key, f"another place (kind {kind}), which this sweep did not find")
    raise RefusedError(
        f"{found.key}: it says that it is run {run}, which was first archived from {first}", remedy=_ANOTHER
    )
