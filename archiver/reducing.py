"""What of a checkpoint goes into its bundle: what an earlier one has not, and what limits have room for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from archiver import members
from archiver.compact import Compacted, Marks, Summarise, SummaryFacts, fit
from archiver.epochs import Based, Reason, pays
from archiver.model import Checkpoint, Member
from archiver.model.limits import Limits
from archiver.pack import Base, Kept
from archiver.redact import Redactor
from archiver.scratch import Scratch

InBundle = Callable[[Base | None, bool], tuple[tuple[Member, ...], Kept]]
"""What a bundle holds of a workspace, and keeps of its base; or no file, where all of them are to be read."""


@dataclass(frozen=True, slots=True)
class Reduced:
    """A compacted checkpoint with its workspace, what its bundle is based on, and what it keeps of that."""

    compacted: Compacted
    based: Based | Reason
    kept: Kept = Kept()  # noqa: RUF009 - frozen and without state
    pressed: bool = False
    """Whether there was more than the bundle has room for."""
    over: bool = False
    """Whether there still is."""


def reduced(
    compact: Callable[[Marks | None], Compacted],
    workspace: InBundle | None,
    based: Based | Reason,
    fitting: Callable[[Reduced], Reduced],
) -> Reduced:
    """The checkpoint as `compact` makes it, with its workspace, as `fitting` leaves it.

    It is based on nothing, where it would not be much smaller for it, or has no room.
    """

    base = based.base if isinstance(based, Based) else None
    tree, kept = workspace(base, False) if workspace is not None else ((), Kept())
    if isinstance(based, Based):
        compacted = compact(based.marks)
        found = fitting(Reduced(_with(compacted, tree), based, kept))
        if workspace is not None and kept.paths and found.pressed:
            # What is kept without a look cannot be left out, and something smaller would have to go for it.
            tree, kept = workspace(base, True)
            found = fitting(Reduced(_with(compacted, tree), based, kept))
        # After the limits: what is never carried is no reason to send all of the rest again. And where there
        # is no room, old turns may be shortened that the base has whole.
        if not found.over and pays(_members(found.compacted), based.base.table, kept.size):
            return found
        based = "size"
        if workspace is not None and kept.paths:
            tree, kept = workspace(None, False)
    return fitting(Reduced(_with(compact(None), tree), based))


def _with(compacted: Compacted, more: tuple[Member, ...]) -> Compacted:
    if not more:
        return compacted
    return replace(compacted, members=compacted.members.derive(lambda members: (*members, *more)))


def fitted(found: Reduced, limits: Limits, redactor: Redactor, scratch: Scratch, *, full: bool) -> Reduced:
    """No more than limits have room for; the receipt names the rest. `full`: the run has met its limit."""
    kept = found.kept

    def others(checkpoint: Checkpoint) -> int:
        state = (*members.of_state(checkpoint), members.of_receipt(redactor.receipt()))
        return sum(member.size for member in state)

    room = {"members": limits.members - len(kept.paths), "bundle": limits.bundle - kept.size}
    left = limits.model_copy(update={name: max(1, size) for name, size in room.items()})
    held = found.based.base.table if isinstance(found.based, Based) else ()
    fitting = fit(found.compacted, left, scratch, others=others, full=full, held=held)
    redactor.note_cuts(fitting.cuts)
    return replace(found, compacted=fitting.compacted, pressed=fitting.pressed, over=fitting.over)


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
