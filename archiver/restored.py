"""What a restore gives to a program: the state, what was found, and the way to go on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from archiver import deciding, gate, taking_over
from archiver.deciding import Outcome
from archiver.gate import Effects
from archiver.model import Checkpoint
from archiver.model.report import Blocker, RestoreReport
from archiver.taking_over import Check, Planned, Resumed

if TYPE_CHECKING:
    from archiver.setup import Setup


@dataclass(frozen=True, slots=True)
class Restored:
    """A checkpoint that was verified, migrated and repaired, and the folder it was handed over in."""

    state: Checkpoint
    report: RestoreReport
    folder: Path
    _plan: Planned = field(repr=False)
    _setup: Setup = field(repr=False)

    @property
    def checkpoint(self) -> Checkpoint:
        """The state by the name of its model."""
        return self.state

    @property
    def blockers(self) -> tuple[Blocker, ...]:
        """What stands against going on: what was not accepted, and effects that nobody has decided on."""
        return (*self.report.blockers, *gate.blockers_of(self.state))

    @property
    def next_seq(self) -> int | None:
        """The number that the next record of the run has; None where nothing can follow its end."""
        return self.report.next_seq

    @property
    def claim(self) -> int | None:
        """The number of the claim by which this restore took the run over."""
        return self.report.claimed

    @property
    def effects(self) -> Effects:
        """The effects, to be asked before each call that acts on something outside."""
        return Effects(self.state.effects, {one.effect: one for one in self.report.decisions})

    def resume(
        self,
        *,
        resolve: Mapping[str, Outcome] | None = None,
        because: str = "",
        check: Check | None = None,
        now: datetime | None = None,
    ) -> Resumed:
        """Take the run over before anything acts: commit a claim with the own key under the next number.

        `resolve` says of effects by key or name what somebody found out, `because` how; `check` is asked
        about each effect that is undecided still. Raises `NeedsDecisionError` while any is left,
        `StaleWriterError` where anybody has written to the run since the restore looked, and what
        `claiming.check_possible` and `deciding` raise. A restore that has claimed the run already does not
        claim it again.
        """
        if self.report.claimed is not None:
            deciding.check_names(deciding.by_name(resolve or {}), (), self.report.decisions)
            return Resumed(self.state, self.report.claimed, self.report.decisions)
        return taking_over.resume(
            self.state,
            self.report,
            self._plan,
            self._setup,
            resolve=resolve or {},
            because=because,
            check=check,
            now=now or datetime.now(UTC),
        )
