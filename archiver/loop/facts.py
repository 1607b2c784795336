"""What is known of a run at each moment: as it was said or saved last."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from archiver import jsonio
from archiver.loop import given
from archiver.loop.left import Left, left_of
from archiver.loop.state import State
from archiver.model import Evidence, JsonValue, Outcome, Plan, Spend

if TYPE_CHECKING:
    from archiver.loop.saving import Saver
    from archiver.loop.writer import Writer


class Facts:
    """What a loop can ask of its run."""

    _saver: Saver
    _writer: Writer

    @property
    def _state(self) -> State:
        return self._saver.state

    @property
    def id(self) -> str:
        """The id of the run."""
        return self._state.run_id

    @property
    def task(self) -> str:
        """What the run is about, in a name."""
        return self._state.task_id

    @property
    def outcome(self) -> Outcome:
        """How the run ended, or `running`."""
        return self._state.outcome

    @property
    def finished(self) -> bool:
        """Whether the run has ended: here, or before, if it was opened again after it had succeeded."""
        return self._saver.ended is not None

    @property
    def messages(self) -> list[Any]:
        """The conversation as it was saved or given last; a new list each time."""
        messages: list[Any] = jsonio.exact(self._state.messages)
        return messages

    @property
    def phase(self) -> str:
        """Where the run is, as it was said last."""
        return self._state.phase

    @property
    def note(self) -> str:
        """What was said of that."""
        return self._state.note

    @property
    def plan(self) -> Plan:
        """What is done, what is left, and what waits for a person, as it was said last."""
        return self._state.plan

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """What proved the state good, as it was said last."""
        return self._state.evidence

    @property
    def results(self) -> dict[str, JsonValue]:
        """Recorded outputs of completed steps, by key."""
        return {key: given.json_of(one.output) for key, one in self._state.results.items()}

    @property
    def spent(self) -> Spend:
        """What the run has used so far, over all its resumes."""
        return self._state.spent()

    @property
    def left(self) -> Left:
        """What is left of the budget."""
        return left_of(self._state.budget, self._state.spent())

    @property
    def seq(self) -> int:
        """The number of the newest record that this process knows of; 0 where there is none."""
        return self._writer.place.seq - 1
