"""The ledger of one run as its writer sees it: what was read, what it adds, what somebody decided."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from archiver import __version__, layout
from archiver.effect_names import name_of
from archiver.errors import AlreadyExistsError, ArchiverError, UsageError
from archiver.ledger import entries
from archiver.ledger.merging import Attempt, attempts_of, is_spent
from archiver.model.base import JsonValue
from archiver.model.effect_entry import EffectEnd, EffectEntry
from archiver.model.record import Decision
from archiver.parallel import in_time

if TYPE_CHECKING:
    from archiver.redact import Redactor
    from archiver.setup import Setup


@dataclass(frozen=True, slots=True)
class Sealed:
    """An intent or outcome, ready to be put."""

    entry: EffectEntry
    data: bytes

    @property
    def name(self) -> str:
        return layout.effect_name(self.entry.run, self.entry.id)


@dataclass(frozen=True, slots=True)
class Subject:
    """What an effect is, free of credentials; `secret_key` is its key as it was given, and is not stored."""

    secret_key: str
    key: str
    tool: str
    arguments: JsonValue
    replayable: bool


class Ledger:
    """Reads and writes the effect objects of one run; safe to share between threads.

    Without a `redactor` it only reads.
    """

    def __init__(
        self, setup: Setup, run: str, task: str, redactor: Callable[[], Redactor] | None = None
    ) -> None:
        self.run = run
        self._setup, self._task, self._redactor = setup, task, redactor
        self._entries: dict[str, EffectEntry] = {}
        self._attempts: dict[str, tuple[Attempt, ...]] | None = None
        self._lock = threading.Lock()
        self.loaded = False
        """Whether what the store has was read."""

    def load(self) -> tuple[EffectEntry, ...]:
        """Read all that the store has of the run; returns it, with what was added here.

        Fails closed: raises the error of an object that does not hold, is not where it belongs, or was signed
        by somebody who is not trusted; and the store's errors.
        """
        found = entries.known(self.run, self._setup)
        with self._lock:
            self._entries |= {one.id: one for one in found}
            self._attempts, self.loaded = None, True
            return tuple(self._entries.values())

    def load_in_time(self) -> tuple[EffectEntry, ...]:
        """The same within the patience of the settings: `StoreUnreachableError` after it."""
        return in_time(self.load, self._patience)

    @property
    def entries(self) -> tuple[EffectEntry, ...]:
        """What was read and added so far."""
        with self._lock:
            return tuple(self._entries.values())

    def attempts(self, key: str) -> tuple[Attempt, ...]:
        """The attempts at the effect with this key, free of credentials, that are known so far."""
        with self._lock:
            if self._attempts is None:
                self._attempts = attempts_of(self._entries.values())
            return self._attempts.get(key, ())

    def going_on(self, key: str) -> EffectEntry | None:
        """The newest attempt of which nobody has said how it ended."""
        return next((one.said for one in reversed(self.attempts(key)) if one.status is None), None)

    def subject(self, key: str, tool: str, arguments: JsonValue, *, replayable: bool) -> Subject:
        """The effect with its credentials replaced: the same is given for the same."""
        clean = self._clean({"key": key, "tool": tool, "arguments": arguments})
        return Subject(key, clean["key"], clean["tool"], clean["arguments"], replayable)

    def intent(self, subject: Subject) -> EffectEntry:
        """The intent of the next attempt; `LimitExceededError` for arguments that are too large."""
        number = 1 + max((one.said.attempt for one in self.attempts(subject.key)), default=0)
        store, writer = self._setup.require_store_id(), self._setup.require_signing_key()
        return self._drafted(
            {
                "part": "intent",
                "id": entries.intent_id(writer, store, self.run, subject.secret_key, number),
                "key": subject.key,
                "tool": subject.tool,
                "arguments": subject.arguments,
                "replayable": subject.replayable,
                "attempt": number,
            }
        )

    def outcome(
        self,
        attempt: EffectEntry,
        status: EffectEnd,
        *,
        result: JsonValue = None,
        reason: str = "",
        decision: Decision | None = None,
    ) -> EffectEntry:
        """The end of the attempt of this intent; raises as `intent`."""
        store, writer = self._setup.require_store_id(), self._setup.require_signing_key()
        intent = attempt.intent or attempt.id
        clean = self._clean({"result": result, "reason": reason})
        said = {} if decision is None else {"by": decision.by, "decided": decision.at}
        return self._drafted(
            {
                "part": "outcome",
                "id": entries.outcome_id(writer, store, self.run, intent),
                "key": attempt.key,
                "tool": attempt.tool,
                "arguments": attempt.arguments,
                "replayable": attempt.replayable,
                "attempt": attempt.attempt,
                "intent": intent,
                "begun": attempt.begun or attempt.at,
                "status": status,
                **clean,
                **said,
            }
        )

    def seal(self, entry: EffectEntry) -> Sealed:
        """Sign an entry and seal it to whom the settings name; raises what KMS answers."""
        setup = self._setup
        reached = setup.seal_to(self.run, self._task, "effect")
        recipients = {"recipients": reached.fingerprints, "missing_recipients": reached.missing}
        entry = entry.model_copy(update=recipients)
        return Sealed(entry, entries.encode(entry, setup.require_signing_key(), reached.recipients))

    def put(self, sealed: Sealed) -> None:
        """Create the object, within the patience of the settings: `StoreUnreachableError` after it.

        Raises `AlreadyExistsError` if another copy of this writer was first, and the store's errors.
        """
        create = self._setup.store.create
        in_time(lambda: create(sealed.name, [sealed.data], retention="record"), self._patience)
        self.note(sealed.entry)

    def stored(self, entry: str) -> EffectEntry | None:
        """What the store has under the id of one of the own entries; None where it cannot be read."""
        name = layout.effect_name(self.run, entry)
        try:
            sealed = self._setup.store.read(name, limit=entries.MAX_ENTRY)
            opened = entries.decode(sealed, self._setup.identities_for(self.run, "effect"), name=name)
        except ArchiverError:
            return None
        return opened.document

    def holds(self, sealed: Sealed) -> bool:
        """Whether the store has exactly these bytes: then an earlier put of them got there after all."""
        try:
            return self._setup.store.read(sealed.name, limit=entries.MAX_ENTRY) == sealed.data
        except ArchiverError:
            return False

    def note(self, entry: EffectEntry) -> None:
        """Count an entry as known, wherever it lies."""
        with self._lock:
            self._entries[entry.id] = entry
            self._attempts = None

    def settle(self, decisions: Iterable[Decision]) -> None:
        """Write down, as outcomes, what claims say of attempts whose outcome is not known.

        From then on a decision says nothing of attempts that come after. Raises the store's errors.
        """
        by_name = {decision.effect: decision for decision in decisions}
        for key in dict.fromkeys(one.key for one in self.entries):
            attempts, decision = self.attempts(key), by_name.get(name_of(key))
            if decision is None or is_spent(decision, attempts):
                continue
            for attempt in attempts:
                if attempt.status is None:
                    self._settle(attempt.said, decision)

    @property
    def _patience(self) -> float:
        return self._setup.settings.run.patience.total_seconds()

    def _settle(self, attempt: EffectEntry, decision: Decision) -> None:
        status: EffectEnd = "confirmed" if decision.outcome == "done" else "not-done"
        try:
            self.put(self.seal(self.outcome(attempt, status, reason=decision.reason, decision=decision)))
        except AlreadyExistsError:
            self.load()  # another copy knew how it ended, or settled it

    def _clean(self, value: dict[str, Any]) -> dict[str, Any]:
        if self._redactor is None:
            raise UsageError("this ledger was opened to be read", remedy="give it what redacts")
        clean: dict[str, Any] = self._redactor().alone(value)
        return clean

    def _drafted(self, document: dict[str, Any]) -> EffectEntry:
        entry = EffectEntry.model_validate(
            {
                **document,
                "store": self._setup.require_store_id(),
                "run": self.run,
                "task": self._task,
                "at": datetime.now(UTC),
                "writer": self._setup.require_signing_key().public,
                "recipients": (),
                "software": f"checkpoint-archiver {__version__}",
            }
        )
        entries.check_size(entry)
        return entry
