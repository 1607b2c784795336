"""Carry a plan out: the note, then the headers that it covers."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from archiver import __version__, age, audit, layout, notes
from archiver.catalog import Catalog
from archiver.errors import (
    AlreadyExistsError,
    ArchiverError,
    DigestMismatchError,
    ObjectNotFoundError,
    RefusedError,
)
from archiver.model.note import MAX_REASON, Note, Rekeyed
from archiver.notes import Believed, Notes
from archiver.parallel import in_order
from archiver.progress import Progress, Silent
from archiver.recipients import to_seal_to
from archiver.redact import new_key
from archiver.rekey.planning import NEXT_FAILS_TOO, Plan, Target, plan
from archiver.rekey.repeating import repeat, to_repeat
from archiver.safetext import shorten

if TYPE_CHECKING:
    from archiver.setup import Setup

_SMALL = 4 << 20
"""Bytes of objects that are rewritten several at a time; stores take the parts of larger ones in parallel."""
_ATTEMPTS = 5
"""How often an object is tried that others rewrite at the same time."""


@dataclass(frozen=True, slots=True)
class Done:
    """What became of one run; with an `error`, what was done before it."""

    run: str
    rewritten: int = 0
    size: int = 0
    """Bytes that were written again."""
    fitting: int = 0
    """Objects that had the right header already."""
    gone: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    error: ArchiverError | None = None
    repeated: tuple[Believed, ...] = ()
    """Notes on how long it is kept that were put once more, for the new recipients."""


def rekey(
    runs: Iterable[str],
    setup: Setup,
    *,
    reason: str = "",
    progress: Progress | None = None,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Iterator[Done]:
    """Rewrite what has other recipients than the configuration, run by run.

    What is wrong with one run comes with it. Raises the store's errors and `KmsUnreachableError`, and before
    anything is done `KeyUnavailableError` without a signing key, `UntrustedWriterError` where nobody would
    believe its notes, and `ConfigError` where no own identity would open the result.
    """
    public = setup.require_signing_key().public
    setup.writers.judge_administrator(public, "a note of yours", now())
    to_seal_to(setup)
    said = shorten(setup.redactor(new_key()).text(reason), MAX_REASON)
    for run in runs:
        yield _Rewriting(run, setup, said, progress or Silent(), now).done()


class _Rewriting:
    """Carries out the plan of one run."""

    def __init__(
        self, run: str, setup: Setup, reason: str, progress: Progress, now: Callable[[], datetime]
    ) -> None:
        self._run = run
        self._setup = setup
        self._reason = reason
        self._progress = progress
        self._now = now
        self._wanted = to_seal_to(setup)
        self._sizes: list[int] = []
        self._notes: list[str] = []
        self._repeated: list[Believed] = []

    def done(self) -> Done:
        """Do it; an error of this run is part of what is returned."""
        found = Plan(self._run, "", (), 0, ())
        failure = None
        try:
            found = plan(self._run, self._setup)
            self._carry_out(found)
        except NEXT_FAILS_TOO:
            raise
        except ArchiverError as error:
            failure = error
        rewritten = [size for size in self._sizes if size]
        return Done(
            self._run,
            len(rewritten),
            sum(rewritten),
            found.fitting + len(self._sizes) - len(rewritten),
            found.gone,
            tuple(self._notes),
            failure,
            tuple(self._repeated),
        )

    def _carry_out(self, found: Plan) -> None:
        self._progress.stage("rewrite headers", found.size)
        workers = Catalog(self._setup).workers
        targets = {target.name: target for target in found.targets}
        self._write_down(found)
        self._repeat(found.repeats)
        for portion in notes.parts(_noted(target) for target in found.targets):
            self._put_note(found, portion)
            covered = [targets[one.name] for one in portion]
            small = [target for target in covered if target.size <= _SMALL]
            large = [target for target in covered if target.size > _SMALL]
            for batch, at_once in ((small, workers), (large, 1)):
                for size in in_order(lambda one: self._rewrite(one, found.task), batch, workers=at_once):
                    self._sizes.append(size)
        if found.repeats and not found.targets and not _is_erased(found):
            self._put_note(found, ())
        if self._notes:  # somebody may have put one for the old recipients between the look and the note
            self._repeat(to_repeat(self._run, Notes(self._setup), self._wanted))

    def _repeat(self, standing: Iterable[Believed]) -> None:
        """What is said of how long the run is kept, before anything can be opened with new keys alone."""
        for one in standing:
            self._notes.append(repeat(one, self._setup))
            self._repeated.append(one)

    def _write_down(self, found: Plan) -> None:
        """The audit line, before anything is changed; what is to be said of it waits for the end."""
        if not found.targets and not found.repeats:
            return
        setup = replace(self._setup, why=self._setup.why or self._reason)
        setup.session.tasks[found.run] = found.task
        keys = sorted({target.opened_by for target in found.targets})
        loud = next((key for key in keys if audit.is_break_glass(setup, key)), None)
        repeats = {"notes": len(found.repeats)} if found.repeats else {}
        detail = {
            **repeats,
            "objects": len(found.targets),
            "recipients": sorted(self._wanted),
            "identities": keys,
        }
        opened_by = loud or next(iter(keys), None)
        # Of a run that was erased nothing but its tombstone is to be in the store.
        local = _is_erased(found)
        said = audit.note(setup, "rekey", run=found.run, opened_by=opened_by, detail=detail, local=local)
        setup.session.warnings.extend(said)

    def _put_note(self, found: Plan, portion: tuple[Rekeyed, ...]) -> None:
        setup, key = self._setup, self._setup.require_signing_key()
        note = Note(
            store=setup.require_store_id(),
            run=found.run,
            task=found.task,
            at=self._now(),
            by=key.public,
            reason=self._reason,
            recipients=tuple(recipient.fingerprint for recipient in setup.recipients),
            objects=portion,
            software=f"checkpoint-archiver {__version__}",
        )
        name = layout.note_name(note.at, found.run, secrets.token_hex(8))
        sealed = notes.encode(note, key, setup.recipients_for(found.run, found.task, "note"))
        # What the own identities cannot open must not take the place of what they can.
        notes.decode(sealed, setup.identities_for(found.run, "note", found.task), name=name)
        setup.store.create(name, [sealed], retention="hold")
        self._notes.append(name)

    def _rewrite(self, target: Target, task: str) -> int:
        """Bytes that were written; 0 if somebody else did the same, or the object is gone meanwhile."""
        store = self._setup.store
        identities = self._setup.identities_for(self._run, target.kind, task)
        recipients = self._setup.recipients_for(self._run, task, target.kind)
        for _ in range(_ATTEMPTS):
            try:
                was = store.head(target.name)
                with store.open(target.name) as source:
                    made = age.rewrap(identities, recipients, source, name=target.name)
                    if frozenset(made.before) == self._wanted and not made.unnamed:
                        return 0
                    store.replace(target.name, self._blocks(made, target), was=was)
            except AlreadyExistsError:
                continue
            except ObjectNotFoundError:
                return 0
            return was.size
        raise RefusedError(
            f"{target.name} is rewritten by somebody else again and again",
            remedy="end the other rekey, then run it again: it goes on where this one stopped",
        )

    def _blocks(self, made: age.Rewrapped, target: Target) -> Iterator[bytes]:
        """The new object; its last bytes are given out only if the payload is the one that was signed."""
        held = b""
        for block in made.blocks():
            self._progress.advance(len(block))
            if held:
                yield held
            held = block
        if made.payload[0] != target.payload_sha256:
            raise DigestMismatchError(
                f"{target.name} does not hold what was signed; it was left as it is",
                remedy="look at it with `archiver verify --deep`; restore the object from another copy",
            )
        yield held


def _is_erased(found: Plan) -> bool:
    return any(one.note.kind == "erase" for one in found.repeats)


def _noted(target: Target) -> Rekeyed:
    return Rekeyed(
        name=target.name,
        payload_sha256=target.payload_sha256,
        before=target.before,
        written=target.written,
    )
