"""What of a checkpoint goes into its bundle: what an earlier one has not, and what limits have room for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from archiver import members
from archiver.compact import Compacted, Marks, Summarise, SummaryFacts, fit
from archiver.epochs import Based, Reason, pays
from archiver.model import Checkpoint, Member
from archiver.model.limits import Limits
from archiver.redact import Redactor
from archiver.scratch import Scratch


def reduced(
    compact: Callable[[Marks | None], Compacted], workspace: tuple[Member, ...], based: Based | Reason
) -> tuple[Compacted, Based | Reason]:
    """The checkpoint as `compact` makes it, with its workspace, and what its bundle is based on.

    That is nothing, where it would not be much smaller for it.
    """

    def made(marks: Marks | None) -> Compacted:
        found = compact(marks)
        more = found.members.derive(lambda members: (*members, *workspace))
        return replace(found, members=more) if workspace else found

    if not isinstance(based, Based):
        return made(None), based
    compacted = made(based.marks)
    if pays(_members(compacted), based.base.table):
        return compacted, based
    return made(None), "size"


def fitted(
    compacted: Compacted,
    limits: Limits,
    redactor: Redactor,
    scratch: Scratch,
    *,
    full: bool,
    based: Based | Reason = "unacknowledged",
) -> Compacted:
    """No more than limits have room for; the receipt names the rest. `full`: the run has met its limit."""
    held = based.base.table if isinstance(based, Based) else ()

    def others(checkpoint: Checkpoint) -> int:
        state = (*members.of_state(checkpoint), members.of_receipt(redactor.receipt()))
        return sum(member.size for member in state)

    found = fit(compacted, limits, scratch, others=others, full=full, held=held)
    redactor.note_cuts(found.cuts)
    return found.compacted


def once(summarise: Summarise | None) -> Summarise | None:
    """A summary of the caller's, which may cost as much as a call of a model, asked for once."""
    if summarise is None:
        return None
    made: list[str] = []

    def summary(facts: SummaryFacts) -> str:
        if not made:
            made.append(summarise(facts))
        return made[0]

    return summary


def _members(compacted: Compacted) -> Iterator[Member]:
    """What will be packed, but for the receipt, as it is before the last scan."""
    yield from members.of_state(compacted.checkpoint.value)
    yield from compacted.members.value
