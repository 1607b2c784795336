"""Take a run over: the claim is its next record, so whoever wrote the run before cannot go on with it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from archiver import __version__, audit, layout, newest, records, retention, rollback
from archiver.errors import (
    AlreadyExistsError,
    ArchiverError,
    ChainError,
    ContextMismatchError,
    KeyUnavailableError,
    LimitExceededError,
    StaleWriterError,
    UntrustedWriterError,
)
from archiver.model import utc_text
from archiver.model.record import Decision, EffectCounts, Record, Sizes
from archiver.model.report import TakenOver
from archiver.shellwords import command

if TYPE_CHECKING:
    from archiver.age import Recipient
    from archiver.catalog import Catalog, Chain, Entry
    from archiver.setup import Setup


@dataclass(frozen=True, slots=True)
class End:
    """The end of a run as a restore saw it: what a claim follows, and what claims before it have said."""

    seq: int
    """The newest number."""
    sha256: str | None
    """Digest of the newest record; None where it cannot be read, so that nothing can follow it."""
    later: tuple[Entry, ...] = ()
    """Verified records after the restored checkpoint."""
    unread: str = ""
    """Why what came after the checkpoint does not count, where it cannot be read as a chain."""

    def taken_over(self, own: str | None = None) -> Iterator[TakenOver]:
        """Who took the run over since the checkpoint; `own` is the own signing key, as records name it."""
        for link in self.later:
            record = link.record
            if record.kind == "claim":
                mine = record.writer == own
                yield TakenOver(seq=record.seq, at=record.recorded_at, writer=link.writer, own=mine)

    def standing(self, record: Record, writer: str, own: str | None, *, behind: bool) -> dict[str, object]:
        """What a report says of the end of the run, where the checkpoint of `record` is restored.

        `writer` is the name of its writer, `own` the own signing key; `behind` says that later records were
        seen which the store does not have.
        """
        last = self.later[-1] if self.later else None
        newest = record if last is None else last.record
        return {
            "chain": f"verified up to {newest.seq}" if self.unread else "verified",
            "newest_writer": last.writer if last and not self.unread and last.writer != writer else "",
            "may_go_on": None if self.unread or behind else newest.writer == own,
            "taken_over": tuple(self.taken_over(own)),
            "next_seq": None if self.sha256 is None else self.seq + 1,
        }

    def decisions(self) -> Iterator[Decision]:
        """What they said of effects, oldest first, as far as it is still so.

        What was done stays done. What was not done may have been done by whoever took the run over, once they
        have saved a checkpoint: it is asked for again.
        """
        last = max((link.record.seq for link in self.later if link.record.bundle is not None), default=0)
        for link in self.later:
            for decision in link.record.decisions:
                if decision.outcome == "done" or link.record.seq > last:
                    yield decision

    def warnings(self) -> Iterator[str]:
        """What somebody who restores has to know of it."""
        for one in self.taken_over():
            yield f"the run was taken over by {one.writer} at {utc_text(one.at)} (record {one.seq})"
        more = sum(link.record.bundle is not None for link in self.later)
        if more:
            saves = "a later checkpoint" if more == 1 else f"{more} later checkpoints"
            yield (
                f"there {'is' if more == 1 else 'are'} {saves}: an effect that is proposed in this one, or "
                "not in it at all, may have happened since"
            )
        if self.unread:
            yield (
                "what came after this checkpoint does not hold together, so decisions made there do not "
                f"count: {self.unread}"
            )


def end_of(chain: Chain, record: Record, catalog: Catalog) -> End:
    """The end of the run of which `chain` holds the records that were looked at.

    Records after those are read too, because a decision that was made is not asked for again. Where they do
    not hold together they count for nothing, and the restore goes on without them.
    """
    unread = ""
    if chain.head.record.seq != chain.newest:
        try:
            chain = catalog.chain(chain.run)
        except ArchiverError as error:
            unread = str(error)
    later = tuple(link for link in chain.links if link.record.seq > record.seq)
    if not unread:
        return End(chain.newest, chain.head.sha256, later)
    return End(chain.newest, _newest_digest(chain, catalog), later, unread)


def _newest_digest(chain: Chain, catalog: Catalog) -> str | None:
    try:
        return catalog.read(chain.run, chain.newest).sha256
    except ArchiverError:
        return None


def check_possible(run: str, end: End, setup: Setup, now: datetime) -> None:
    """Refuse what could not be claimed, before anything is opened for it.

    Raises `KeyUnavailableError` without a signing key, `UntrustedWriterError` for one whose records no
    restorer would believe, `ChainError` where the newest record cannot be followed, `LimitExceededError`.
    """
    _demand_own_key(run, setup, now)
    setup.require_store_id()
    rollback.refuse_claim(run, end.seq + 1, setup)
    if end.sha256 is None:
        raise ChainError(
            f"run {run} cannot be taken over: its newest record, {end.seq}, cannot be read, so nothing can "
            "follow it",
            remedy="restore that record from a copy of the store, or go on under another run id",
        )
    if end.seq >= layout.MAX_SEQ:
        raise LimitExceededError(
            f"run {run} has used its last number, {layout.MAX_SEQ}", remedy="go on under another run id"
        )


def _demand_own_key(run: str, setup: Setup, now: datetime) -> None:
    """Refuse a claim that nobody could sign, or that no restorer would believe."""
    if setup.signing_key is None:
        raise KeyUnavailableError(
            f"run {run} cannot be taken over: there is no signing key to sign the claim with",
            remedy="`archiver keygen --into FOLDER` makes one, and FOLDER/writers.toml has the entry that "
            "belongs into the writers.toml of everybody who restores; then name it with --signing-key "
            "FOLDER/signing.pem",
        )
    own = setup.signing_key.public
    try:
        setup.writers.judge(own, run, now)
    except UntrustedWriterError as error:
        listed = any(writer.key == own for writer in setup.writers.trusted)
        why = f"a restorer would say: {error}" if listed else "it is not in the list of trusted writers"
        raise UntrustedWriterError(
            f"run {run} cannot be taken over with the own signing key, {own}: {why}",
            remedy=f"{error.remedy or ''}".replace("if you know whose key this is", "to have it believed"),
        ) from error


def claim(
    record: Record,
    end: End,
    setup: Setup,
    *,
    effects: EffectCounts,
    decisions: tuple[Decision, ...] = (),
    now: datetime | None = None,
) -> tuple[Record, tuple[str, ...]]:
    """Commit the claim of a run that goes on from the checkpoint of `record`; returns it with warnings.

    Raises `StaleWriterError` when anybody has committed anything since the restore looked, what
    `check_possible` raises, `RolledBackError` where a number would be used again, and `AuditError`.
    """
    now = now or datetime.now(UTC)
    check_possible(record.run, end, setup, now)
    if record.store != setup.require_store_id():
        raise ContextMismatchError(f"run {record.run} belongs to store {record.store}, not to this one")
    reached = setup.seal_to(record.run, record.task, "record")
    made = record.model_copy(
        update={
            "kind": "claim",
            "seq": end.seq + 1,
            "previous": end.sha256,
            "recorded_at": now,
            "outcome": "running",
            "retention": retention.class_of("running"),
            "effects": effects,
            "sizes": Sizes(),
            "writer": setup.require_signing_key().public,
            "recipients": reached.fingerprints,
            "missing_recipients": reached.missing,
            "bundle": None,
            "decisions": decisions,
            "software": f"checkpoint-archiver {__version__}",
        }
    )
    made = Record.model_validate(made.document())
    sealed = _encoded(made, setup, reached.recipients)
    rollback.refuse_used(made, setup)
    said = audit.note(setup, "claim", run=made.run, seq=made.seq, detail={"checkpoint": record.seq})
    try:
        setup.store.create(layout.record_name(made.run, made.seq), [sealed], retention="record")
    except AlreadyExistsError as error:
        raise StaleWriterError(
            f"run {made.run} was not taken over: somebody else has committed record {made.seq} meanwhile",
            remedy=f"look who it was with `{_show(made.run, setup)}`, then restore again",
        ) from error
    return made, (*said, *rollback.committed(made, setup), *newest.leave_hint(made, setup))


def _show(run: str, setup: Setup) -> str:
    flags = setup.session.words(("--config", "--store", "--identity", "--writers"))
    return command("archiver show", run, flags)


def _encoded(record: Record, setup: Setup, recipients: Sequence[Recipient]) -> bytes:
    try:
        return records.encode(record, setup.require_signing_key(), recipients)
    except LimitExceededError as error:
        if record.decisions:
            error.remedy = (
                "give a shorter reason: it stands beside each decision. Where there are thousands of them: "
                "restore with --accept effects, and save what you found out as a run of another id"
            )
        raise
