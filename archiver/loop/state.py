"""What a run is at this moment: values that nobody outside can change, and the checkpoint made of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from archiver.loop.pieces import Array
from archiver.model import (
    Budget,
    Checkpoint,
    Effect,
    Environment,
    Evidence,
    Items,
    Outcome,
    Plan,
    Spend,
    SubtaskResult,
    Transcript,
    TranscriptPart,
    Workspace,
)
from archiver.transcripts import detect
from archiver.transcripts.places import at

MAX_EVIDENCE: Final = 50
"""The newest pieces of evidence that a checkpoint carries."""
ITEMS_TO_LOOK_AT: Final = 200
"""Messages that tell the dialect: the first so many that are more than text, and of others before those."""
_PLAIN: Final = {"role", "content"}
_PART: Final = TranscriptPart(name="messages.jsonl")


@dataclass(slots=True)
class Told:
    """Which messages told the dialect: while they are the same, no other is looked at."""

    _last: tuple[Array, int, TranscriptPart, str, str] | None = None
    """The messages, bytes of those that told, what the dialect depends on besides, and the dialect."""

    def dialect(self, array: Array, main: TranscriptPart, before: str) -> str:
        """The dialect of the messages, whatever comes after enough of them have told; for any thread."""
        last = self._last
        if last is not None and last[2] is main and last[3] == before and array.begins_like(last[0], last[1]):
            self._last = (array, *last[1:])
            return last[4]
        seen: list[Any] = []
        plain = other = 0
        for stop, piece in array.pieces():
            for _, item in piece:
                if quiet := _is_plain(item):
                    plain += 1
                else:
                    other += 1
                if (plain if quiet else other) <= ITEMS_TO_LOOK_AT:
                    seen.append(item)
            if other >= ITEMS_TO_LOOK_AT:
                found = _found(seen, main, before)
                self._last = array, min(stop, len(array.data)), main, before, found
                return found
        return _found(seen, main, before)


@dataclass(slots=True)
class State:
    """Everything but the effects, which the ledger knows."""

    run_id: str
    task_id: str
    created_at: datetime
    objective: str = ""
    user_id: str | None = None
    dialect: str | None = None
    """That of the messages, as the loop says; None where it is found out."""
    before: str = detect.OPAQUE
    """The dialect in which the run was saved before it was resumed."""
    phase: str = ""
    note: str = ""
    outcome: Outcome = "running"
    plan: Plan = field(default_factory=Plan)
    results: dict[str, SubtaskResult] = field(default_factory=dict)
    evidence: tuple[Evidence, ...] = ()
    spend: Spend = field(default_factory=Spend)
    budget: Budget | None = None
    workspace: Workspace = field(default_factory=Workspace)
    environment: Environment = field(default_factory=Environment)
    turn: int = 0
    messages: bytes = b"[]"
    """One JSON array."""
    main: TranscriptPart = _PART
    """The form of the file that they lie in, without them."""
    others: tuple[TranscriptPart, ...] = ()
    """Further files of the transcript that the run was resumed with."""
    told: Told = field(default_factory=Told)
    """Which of the messages told the dialect last."""
    since: float = field(default_factory=time.monotonic)
    """When this process began to work on it, on the clock that only goes forward."""

    @classmethod
    def of(cls, checkpoint: Checkpoint) -> State:
        """The state in which a run goes on; the items of the first part are read, and held as bytes.

        Its summary is not kept: it tells of the conversation as it was, and is made anew of what it becomes.
        """
        main, others = _main(checkpoint.transcript.parts)
        return cls(
            run_id=checkpoint.run_id,
            task_id=checkpoint.task_id,
            created_at=checkpoint.created_at,
            objective=checkpoint.objective,
            user_id=checkpoint.user_id,
            before=checkpoint.transcript.dialect,
            phase=checkpoint.phase,
            # The note of a run that died says how; it goes on with one of its own.
            note="" if checkpoint.outcome in ("failed", "cancelled", "crashed") else checkpoint.note,
            outcome="succeeded" if checkpoint.outcome == "succeeded" else "running",
            plan=checkpoint.plan,
            results={result.key: result for result in checkpoint.results},
            evidence=checkpoint.evidence,
            spend=checkpoint.spend,
            budget=checkpoint.budget,
            workspace=checkpoint.workspace,
            environment=checkpoint.environment.model_copy(update={"probes": {}}),
            turn=checkpoint.turn,
            messages=b"[%b]" % b",".join(main.items.lines()),
            main=main.model_copy(update={"items": Items.of(()), "segments": ()}),
            others=tuple(map(_in_memory, others)),
        )

    def spent(self) -> Spend:
        """What was used so far, the seconds up to now."""
        seconds = self.spend.seconds + time.monotonic() - self.since
        return self.spend.model_copy(update={"seconds": seconds})

    def maker(self, effects: tuple[Effect, ...]) -> Callable[[], Checkpoint]:
        """Makes the checkpoint of this moment, at any later one and in any thread."""
        values: dict[str, Any] = {
            "run_id": self.run_id,
            "task_id": self.task_id,
            "user_id": self.user_id,
            "objective": self.objective,
            "iteration": self.spend.iterations,
            "turn": self.turn,
            "phase": self.phase,
            "outcome": self.outcome,
            "note": self.note,
            "created_at": self.created_at,
            "checkpoint_at": max(datetime.now(UTC), self.created_at),
            "spend": self.spent(),
            "budget": self.budget,
            "plan": self.plan,
            "results": tuple(self.results.values()),
            "evidence": self.evidence,
            "effects": effects,
            "workspace": self.workspace,
            "environment": self.environment,
        }
        messages, dialect, before, main, others, told = (
            self.messages,
            self.dialect,
            self.before,
            self.main,
            self.others,
            self.told,
        )

        def make() -> Checkpoint:
            found = dialect or told.dialect(Array(messages), main, before)
            return Checkpoint(**values, transcript=_transcript(messages, found, main, others))

        return make


@dataclass(frozen=True, slots=True)
class Said:
    """What one call of `checkpoint` says, in the words of a checkpoint; None where it says nothing of it."""

    messages: bytes | None
    plan: Plan | None
    evidence: tuple[Evidence, ...]
    phase: str | None
    note: str | None
    milestone: str
    waiting: bool
    force: bool

    def change(self, state: State) -> bool:
        """Change the state accordingly; whether the phase is another one than before."""
        moved = self.phase is not None and self.phase != state.phase
        if self.messages is not None:
            state.messages = self.messages
            state.turn += 1
        state.phase = state.phase if self.phase is None else self.phase
        state.note = state.note if self.note is None else self.note
        state.plan = state.plan if self.plan is None else self.plan
        state.evidence = (*state.evidence, *self.evidence)[-MAX_EVIDENCE:]
        return moved


def _transcript(
    messages: bytes, dialect: str, main: TranscriptPart, others: tuple[TranscriptPart, ...]
) -> Transcript:
    if messages == b"[]" and not others:
        return Transcript()
    array = Array(messages)
    filled = main.model_copy(update={"items": Items.of_growing(array, size=array.size)})
    return Transcript(dialect=dialect, parts=(filled, *others))


def _found(seen: list[Any], main: TranscriptPart, before: str) -> str:
    """The dialect that the messages show now, else the one they were in before.

    It is looked for each time: a conversation that has only begun is in nobody's format yet, and read in a
    wrong one it would lose results of tools when it is mended.
    """
    if main.nested_at:
        return before
    found = (
        detect.of_messages(seen, at(main.header, main.items_at[:-1]))
        if main.items_at
        else detect.of_lines(seen)
    )
    return before if found == detect.OPAQUE else found


def _is_plain(item: Any) -> bool:
    """Whether the message says only who said what: then it tells little of the dialect."""
    return isinstance(item, dict) and item.keys() == _PLAIN and isinstance(item["content"], str)


def _main(parts: tuple[TranscriptPart, ...]) -> tuple[TranscriptPart, tuple[TranscriptPart, ...]]:
    """The file of the conversation, and the others; one that is no JSON is no conversation to go on with."""
    if not parts or parts[0].items.raw:
        return _PART, parts
    return parts[0], parts[1:]


def _in_memory(part: TranscriptPart) -> TranscriptPart:
    """The part without the file that its items lie in, which goes with the folder of the restore."""
    items = part.items
    held = Items.of_chunks(items.blocks()) if items.raw else Items.of_lines(items.lines())
    return part.model_copy(update={"items": held, "segments": ()})
