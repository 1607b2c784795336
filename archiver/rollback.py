"""What a chain means against what the witness has seen of it: is the store behind, or is it another one?

The witness is asked before the store is listed: what another process commits in between is then more than was
seen, never less.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final, Literal, Protocol

from archiver import clock, layout, records, retention
from archiver.catalog import Beginning, Catalog, Chain, Entry, Head
from archiver.errors import (
    ArchiverError,
    ForkError,
    MissingRecordError,
    NoSuchRunError,
    ObjectNotFoundError,
    RolledBackError,
)
from archiver.model import Record
from archiver.shellwords import run_word
from archiver.witness import Seen, fork, moment

if TYPE_CHECKING:
    from archiver.setup import Setup

ROLLBACK: Final = "rollback"
"""The word that `accept` takes for a store that is behind."""
KEPT: Final = timedelta(days=400)
"""How long a store keeps records; one that was made earlier may be gone."""
YOUNG: Final = timedelta(days=1)
"""How long it is said of a memory how old it is."""
MAX_STEPS: Final = 64
"""Records that are read to tie a chosen checkpoint to a later one that was seen."""


class Numbered(Protocol):
    """What has to be known of a record to commit it: a `Record`, or one that is sealed and not opened."""

    @property
    def run(self) -> str: ...
    @property
    def seq(self) -> int: ...
    @property
    def recorded_at(self) -> datetime: ...


@dataclass(frozen=True, slots=True)
class Standing:
    """Whether the store is as far as it was seen to be, for a report."""

    rollback: Literal["unverified", "verified"] = "unverified"
    text: str = ""
    """What the witness has seen, in words; empty where there is none."""
    warnings: tuple[str, ...] = ()
    missing: str = ""
    """What was seen and is not in the store any more, in words."""


@dataclass(frozen=True, slots=True)
class Sight:
    """What was seen of a run before the store is asked for it."""

    run: str
    setup: Setup
    seen: Seen | None

    def judge(
        self, chain: Chain, *, accept: Collection[str] = (), remember: bool = True, now: datetime
    ) -> Standing:
        """Compare a verified chain, and remember its end if that is further than what was seen.

        `RolledBackError` if the store is behind, unless "rollback" is accepted; `ForkError` if the record
        that was seen is another one now. Of a chain that ends before it, only what was compared counts as
        verified.
        """
        if self.setup.witness is None or self.setup.store_id is None:
            return Standing()
        seen = self.seen
        if seen is None:
            standing = Standing(text="first sight: nothing was remembered of this run")
        else:
            try:
                standing = self._compared(seen, chain)
            except (RolledBackError, ForkError) as error:
                if self._began_anew(chain.links[0].record, now):
                    standing = Standing(text=f"{_words(seen)}; it expired, and the run began anew")
                    if remember:
                        self._forget()
                elif ROLLBACK in accept and isinstance(error, RolledBackError):
                    return self._accepted(seen, chain)
                else:
                    raise
            if standing.rollback == "verified":
                standing = replace(standing, text=f"{_young(seen, now)}{standing.text}")
        return replace(standing, warnings=self._remember(chain.head, now)) if remember else standing

    def verified(self, beginning: Beginning, now: datetime) -> Standing:
        """The same of as much of a run as holds together; it is remembered where that is all of it."""
        if beginning.links:
            chain = Chain(self.run, beginning.links, beginning.newest)
            return self.judge(chain, remember=beginning.error is None, now=now)
        if self.seen is not None and beginning.newest < self.seen.seq and not self._expired(now):
            raise self.behind(self.seen, beginning.newest)
        return Standing()

    def gone(
        self, error: NoSuchRunError, newest: int, *, accept: Collection[str] = (), now: datetime
    ) -> ArchiverError:
        """What to raise where the store lacks the run (`newest` is 0) or the number that was asked for."""
        seen = self.seen
        if seen is None or newest >= seen.seq or (not newest and self._expired(now)):
            return error
        return error if newest and ROLLBACK in accept else self.behind(seen, newest)

    def vanished(self, now: datetime) -> RolledBackError | None:
        """The error of a store that has no record of the run; None where it may have none."""
        seen = self.seen
        return None if seen is None or self._expired(now) else self.behind(seen, 0)

    def glance(self, head: Head, now: datetime) -> RolledBackError | ForkError | None:
        """What is wrong with the newest record as far as it tells alone, without the chain before it."""
        seen, record = self.seen, head.record
        if seen is None or head.seq > seen.seq:
            return None
        if head.seq == seen.seq and (record is None or head.sha256 == seen.sha256):
            return None
        if record is not None and self._began_anew(record, now):
            return None
        return fork(self.run, seen, self._where()) if head.seq == seen.seq else self.behind(seen, head.seq)

    def demand(self, head: Entry | None, catalog: Catalog, now: datetime) -> None:
        """Refuse to write after a record that is not the one that was seen, and does not come after it.

        `RolledBackError` or `ForkError`: of a number used twice nobody could tell which record counts.
        """
        seen = self.seen
        if seen is None:
            return
        newest = head.record.seq if head else 0
        try:
            if head is None or newest < seen.seq:
                raise self.behind(seen, newest, writing=True)
            self._same(seen, head if newest == seen.seq else self._read(catalog, seen.seq))
        except (RolledBackError, ForkError):
            if not self._expired(now):
                raise
            if head is not None and not self._began_anew(self._read(catalog, 1).record, now):
                raise
            self._forget()

    def _compared(self, seen: Seen, chain: Chain) -> Standing:
        if chain.newest < seen.seq:
            raise self.behind(seen, chain.newest)
        if seen.seq > chain.head.record.seq:
            return self._beyond(seen, chain.head)
        self._same(seen, chain.links[seen.seq - 1])
        return Standing("verified", f"{_words(seen)}; it is in the store unchanged")

    def _beyond(self, seen: Seen, head: Entry) -> Standing:
        """Compare a record that was seen and lies beyond the checkpoint that is wanted, and tie the two."""
        catalog = Catalog(self.setup)
        try:
            link = self._read(catalog, seen.seq)
        except ArchiverError as error:
            return Standing(text=f"{_words(seen)}; it was not compared, because it cannot be read: {error}")
        self._same(seen, link)
        text = f"{_words(seen)}; it is in the store unchanged"
        if seen.seq - head.record.seq > MAX_STEPS:
            return Standing(text=f"{text}, but how this checkpoint leads to it was not looked at")
        for seq in range(seen.seq - 1, head.record.seq, -1):
            try:
                before = self._read(catalog, seq)
            except ArchiverError as error:
                return Standing(text=f"{text}, but the way from this checkpoint to it is broken: {error}")
            if link.record.previous != before.sha256:
                said = f"record {seq + 1} does not follow record {seq}"
                return Standing(text=f"{text}, but the way from this checkpoint to it is broken: {said}")
            link = before
        if link.record.previous != head.sha256:
            raise ForkError(
                f"run {self.run}: record {head.record.seq} is not the one that led to record {seen.seq}, "
                f"which was seen on {moment(seen.seen_at)} ({self._where()}) and is in the store",
                remedy="somebody signed another record of this number and put it in its place: look who "
                "could write with the writer's key, and for the object in a copy of the store",
            )
        return Standing("verified", text)

    def _read(self, catalog: Catalog, seq: int) -> Entry:
        try:
            return catalog.read(self.run, seq)
        except ObjectNotFoundError as error:
            raise MissingRecordError(
                f"run {self.run}: record {seq} is missing before the newest",
                remedy="look for it in a copy of the store",
            ) from error

    def _same(self, seen: Seen, entry: Entry) -> None:
        if entry.sha256 != seen.sha256:
            raise fork(self.run, seen, self._where())

    def _accepted(self, seen: Seen, chain: Chain) -> Standing:
        error = self.behind(seen, chain.newest)
        missing = f"{chain.newest + 1} to {seen.seq}" if seen.seq > chain.newest + 1 else f"{seen.seq}"
        warning = (
            f"THE STORE IS BEHIND: {error}. What came later is not here, the run may have gone on elsewhere, "
            "and a save after it is refused until the witness forgets the run"
        )
        return Standing(
            text=f"{_words(seen)}; it is not in the store: ROLLED BACK (accepted)",
            warnings=(warning,),
            missing=f"record {missing}, recorded up to {moment(seen.recorded_at)}, not in the store any more",
        )

    def behind(self, seen: Seen, newest: int, *, writing: bool = False) -> RolledBackError:
        """The error of a store whose newest record is that one."""
        has = f"its newest record is {newest}" if newest else "it has no record of this run"
        others = ""
        if writing:
            others = "or save under another --run-id; "
        elif newest:
            words = " ".join((f"--accept {ROLLBACK}", *self.setup.session.words()))
            others = f"`archiver restore {words} {run_word(self.run)}` takes what is there; "
        return RolledBackError(
            f"run {self.run}: the store was rolled back or its end removed: {has}, but record {seen.seq} was "
            f"seen on {moment(seen.seen_at)}, as {self._where()} remembers",
            remedy="look for the missing records in a copy of the store or among older versions of its "
            f"objects, and who could delete them; {others}if they were removed on purpose: "
            f"`archiver witness forget {self._named()}{run_word(self.run)}`",
        )

    def _named(self) -> str:
        """What tells `witness forget` whose memory is meant, where this call was told of another store."""
        session = self.setup.session
        words = session.words(("--config",))
        if session.words(("--store",)):
            words += (f"--store-id {self.setup.store_id}",)
        return "".join(f"{one} " for one in words)

    def _expired(self, now: datetime) -> bool:
        if self.seen is None or self.seen.recorded_at < retention.BEGINNING:
            return False
        end = self.seen.recorded_at + KEPT
        return now > end and clock.latest_sure(now, self.setup.store) > end

    def _began_anew(self, first: Record, now: datetime) -> bool:
        """Whether the records that were seen had their time, and this is a later run of the same id."""
        return self.seen is not None and self._expired(now) and first.recorded_at > self.seen.recorded_at

    def _forget(self) -> None:
        if self.setup.witness is not None and self.setup.store_id is not None:
            self.setup.witness.forget(self.setup.store_id, self.run)

    def _remember(self, head: Entry, now: datetime) -> tuple[str, ...]:
        if self.seen is not None and (self.seen.seq, self.seen.sha256) == (head.record.seq, head.sha256):
            return ()
        return _remember(self.setup, head.record, head.sha256, now)

    def _where(self) -> str:
        if self.setup.witness is None or self.setup.store_id is None:
            return "the witness"
        return self.setup.witness.where(self.setup.store_id, self.run)


def look(run: str, setup: Setup) -> Sight:
    """Ask the witness; to be done before the store is listed. Raises what `Witness.seen` raises."""
    if setup.witness is None or setup.store_id is None:
        return Sight(run, setup, None)
    return Sight(run, setup, setup.witness.seen(setup.store_id, run))


def refuse_used(record: Numbered, setup: Setup) -> None:
    """`RolledBackError` for a number that was seen and that the store has no record of: it is not free.

    Where the store has one, creating it fails by itself.
    """
    sight, seen = _used(record.run, record.seq, setup)
    if seen is not None:
        raise sight.behind(seen, record.seq - 1, writing=True)


def refuse_claim(run: str, seq: int, setup: Setup) -> None:
    """The same for a claim with this number, which no word that accepts a store behind allows."""
    sight, seen = _used(run, seq, setup)
    if seen is None:
        return
    behind = sight.behind(seen, seq - 1)
    error = RolledBackError(
        f"run {run} cannot be taken over while its store is behind: --accept {ROLLBACK} hands over what is "
        f"there, and --claim would use number {seq} again, of which nobody could then tell the record that "
        f"counts; record {seen.seq} was seen on {moment(seen.seen_at)}",
        remedy=f"leave out --claim to look at what is there; {behind.remedy}, and then claim it",
    )
    error.details = behind.details
    raise error


def _used(run: str, seq: int, setup: Setup) -> tuple[Sight, Seen | None]:
    """What was seen of the run, if that is this number or more and the store has no record of the number."""
    sight = look(run, setup)
    if sight.seen is None or sight.seen.seq < seq:
        return sight, None
    try:
        setup.store.head(layout.record_name(run, seq))
    except ObjectNotFoundError:
        return sight, sight.seen
    return sight, None


def committed(record: Record, setup: Setup) -> tuple[str, ...]:
    """Remember a record that was just created; whatever keeps that from being done is a warning."""
    return remember(record, records.body_sha256(record), setup)


def remember(record: Numbered, sha256: str, setup: Setup) -> tuple[str, ...]:
    """The same of one of which the digest of the body is known."""
    try:
        return _remember(setup, record, sha256, record.recorded_at)
    except ForkError as error:
        return (f"{error}: {error.remedy}",)


def _remember(setup: Setup, record: Numbered, sha256: str, now: datetime) -> tuple[str, ...]:
    if setup.witness is None or setup.store_id is None:
        return ()
    seen = Seen(seq=record.seq, sha256=sha256, recorded_at=record.recorded_at, seen_at=now)
    try:
        setup.witness.remember(setup.store_id, record.run, seen)
    except ForkError:
        raise
    except ArchiverError as error:
        return (f"record {record.seq} of run {record.run} is not remembered as seen: {error}",)
    return ()


def _young(seen: Seen, now: datetime) -> str:
    """What is remembered since a moment ago only is as much as a first sight, and people are told."""
    seconds = (now - seen.seen_at).total_seconds()
    if not 0 <= seconds < YOUNG.total_seconds():
        return ""
    for size, unit in ((3600, "hour"), (60, "minute"), (1, "second")):
        if seconds >= size:
            count = int(seconds // size)
            return f"first seen here {count} {unit}{'' if count == 1 else 's'} ago: "
    return "first seen here less than a second ago: "


def _words(seen: Seen) -> str:
    return f"record {seen.seq} was seen on {moment(seen.seen_at)}"
