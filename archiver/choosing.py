"""Which checkpoint of a run is restored, and what is lost by taking it.

An older checkpoint than the newest is taken only when somebody asks for it. Where the newest one is damaged,
the error says how to ask, and what it would cost.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final

from archiver import noting, rollback
from archiver.catalog import Beginning, Catalog, Chain
from archiver.errors import (
    ArchiverError,
    BundleExpiredError,
    DamagedError,
    KmsDeniedError,
    KmsUnreachableError,
    NoSuchRunError,
    StoreError,
    UnsupportedSchemaError,
    UsageError,
)
from archiver.gone import newest_whole
from archiver.model import Record
from archiver.rollback import Standing
from archiver.safetext import shorten
from archiver.shellwords import run_word
from archiver.witness import moment

if TYPE_CHECKING:
    from archiver.setup import Setup

MAX_LOST: Final = 20
"""Later checkpoints that a report tells of one by one."""
MAX_ADVISED: Final = 3
"""The same in the remedy of an error."""
_MAX_NOTE: Final = 120

_ELSEWHERE = (StoreError, KmsDeniedError, KmsUnreachableError, UnsupportedSchemaError)
"""What keeps a record from being read without saying that it is damaged."""
_BROKEN = (DamagedError, BundleExpiredError)
_NO_CHECKPOINT: Final = {
    "claim": "a claim and holds no checkpoint",
    "skipped": "a skipped checkpoint: its bundle was given up before it came into the store",
}


@dataclass(frozen=True, slots=True)
class Choice:
    """The records that were verified, the chosen one of them, and how the store stands to the witness."""

    chain: Chain
    record: Record
    standing: Standing


def find(
    run: str,
    setup: Setup,
    *,
    at: int | None = None,
    previous: bool = False,
    accept: Collection[str] = (),
    remember: bool = True,
    now: datetime,
) -> Choice:
    """The checkpoint that is asked for: the newest, number `at`, or the newest whole one before the newest.

    `remember` has the witness remember what was verified; not where a restore follows that compares again.
    Raises what `Catalog.chain` and `Sight.judge` raise; where the chain is broken, with the way to an older
    checkpoint as remedy.
    """
    if previous and at is not None:
        raise UsageError(
            "--at names one checkpoint and --previous another", remedy="leave one of the two out"
        )
    sight = rollback.look(run, setup)
    catalog = Catalog(setup)
    with _explaining(run, catalog):
        try:
            beginning = catalog.beginning(run, at)
        except NoSuchRunError as error:
            newest = max(catalog.numbers(run), default=0)
            raise sight.gone(error, newest, accept=accept, now=now) from None
        chain = _chain(beginning, setup, previous)
        standing = sight.judge(chain, accept=accept, remember=remember, now=now)
        return Choice(chain, _before(chain, setup) if previous else choose(chain, at), standing)


@contextmanager
def _explaining(run: str, catalog: Catalog) -> Iterator[None]:
    """Of an erased run, say that instead of what is missing; notes are read only where something is."""
    try:
        yield
    except (DamagedError, NoSuchRunError) as error:
        tombstone = catalog.notes.tombstone(run)
        if tombstone is None:
            raise
        raise noting.erased(run, tombstone) from error


def choose(chain: Chain, at: int | None) -> Record:
    """The numbered checkpoint, or else the newest record that has a bundle."""
    if at is not None:
        record = chain.head.record
        if record.bundle is None:
            raise NoSuchRunError(
                f"record {at} of run {chain.run} is {_NO_CHECKPOINT[record.kind]}",
                remedy="choose another number with --at",
            )
        return record
    for link in reversed(chain.links):
        if link.record.bundle is not None:
            return link.record
    raise NoSuchRunError(f"run {chain.run} has no checkpoint yet, only records without a bundle")


@contextmanager
def advising(record: Record, setup: Setup) -> Iterator[None]:
    """Where the bundle turns out to be damaged or gone, say how to ask for an older checkpoint."""
    try:
        yield
    except _BROKEN as error:
        _advise(error, record.run, record.seq, setup)
        raise


def lost(
    chain: Chain, record: Record, setup: Setup, limit: int = MAX_LOST, told: str = ""
) -> tuple[str, ...]:
    """What came after the checkpoint, a line for each later one; of many, the first and the last.

    `told` is what was said before of why a record cannot be read.
    """
    catalog = Catalog(setup)
    known = {link.record.seq: link.record for link in chain.links if link.record.seq > record.seq}
    later = [
        seq
        for seq in (known if chain.newest == chain.head.record.seq else catalog.numbers(chain.run))
        if seq > record.seq and (seq not in known or known[seq].bundle is not None)
    ]
    first = later if len(later) <= limit else later[: (limit + 1) // 2]
    last = later[len(later) - (limit - len(first)) :] if len(first) < len(later) else []
    more = len(later) - len(first) - len(last)
    between = (f"{more} more",) if more else ()
    said: set[str] = {told} if told else set()
    begin = tuple(_lines(first, known, record, catalog, said))
    return (*begin, *between, *_lines(last, known, record, catalog, said))


def _lines(
    numbers: list[int], known: dict[int, Record], record: Record, catalog: Catalog, said: set[str]
) -> Iterator[str]:
    """A line a number; records that were not verified with the chain are read for it.

    Why one cannot be read is not said again where it was `said`, or is the same but for the number.
    """
    unreachable: StoreError | None = None
    for seq in numbers:
        if seq in known:
            yield _line(known[seq], record)
            continue
        try:
            if unreachable is not None:
                raise unreachable
            later = catalog.read(record.run, seq).record
        except ArchiverError as error:
            unreachable = error if isinstance(error, StoreError) else None
            why = _numberless(str(error), seq)
            because = "" if any(why in _numberless(one, seq) for one in said) else f": {_short(error)}"
            said.add(why)
            yield f"record {seq}, which cannot be read{because}"
            continue
        if later.bundle is not None:
            yield _line(later, record)


def _short(error: ArchiverError) -> str:
    return shorten(str(error), 2 * _MAX_NOTE)


def _numberless(text: str, seq: int) -> str:
    """A message without the number of the record that it is about."""
    return text.replace(f"{seq:08d}", "…").replace(f"record {seq}", "record …")


def _line(later: Record, record: Record) -> str:
    """What the later checkpoint had beyond the chosen one."""
    words = [f"checkpoint {later.seq} of {moment(later.recorded_at)}"]
    if later.phase:
        words.append(f"phase {shorten(later.phase, _MAX_NOTE)}")
    if later.note:
        words.append(f"note: {shorten(later.note, _MAX_NOTE)}")
    more = [_counted(later.turn - record.turn, "turn")]
    spent, before = later.spend, record.spend
    tokens = spent.tokens_in + spent.tokens_out - before.tokens_in - before.tokens_out
    more.append(_counted(tokens, "token"))
    if spent.currency == before.currency and spent.cost > before.cost:
        more.append(f"{spent.cost - before.cost:.2f} {spent.currency}")
    said = ", ".join(word for word in more if word)
    return ", ".join(words) + (f" ({said} after checkpoint {record.seq})" if said else "")


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}" if number > 0 else ""


def _chain(beginning: Beginning, setup: Setup, previous: bool) -> Chain:
    """The chain as far as it may be used: one that is broken only where an older checkpoint is asked for."""
    error = beginning.error
    if error is not None and not (previous and beginning.links and not isinstance(error, _ELSEWHERE)):
        if not isinstance(error, _ELSEWHERE):
            _advise(error, beginning.run, len(beginning.links) + 1, setup)
        raise error
    return Chain(beginning.run, beginning.links, beginning.newest, beginning.remarks)


def _before(chain: Chain, setup: Setup) -> Record:
    """The newest whole checkpoint before the newest; what a broken chain ends at counts as the newest."""
    checkpoints = [one for one in chain.records if one.bundle is not None]
    if chain.head.record.seq == chain.newest:
        checkpoints = checkpoints[:-1]
    found = newest_whole(checkpoints, setup)
    if found is None:
        raise NoSuchRunError(
            f"run {chain.run} has no whole checkpoint before its newest",
            remedy="look for its objects in a copy of the store or among their older versions",
        )
    return found


def _advise(error: ArchiverError, run: str, damaged: int, setup: Setup) -> None:
    """Add the exact command for the newest whole checkpoint before the damaged number, and its price."""
    try:
        beginning = Catalog(setup).beginning(run)
        links = [link for link in beginning.links if link.record.seq < damaged]
        without = error.details.get("base")
        found = newest_whole(
            [link.record for link in links], setup, without=without if isinstance(without, int) else None
        )
        if found is None:
            return
        price = lost(
            Chain(run, beginning.links, beginning.newest, beginning.remarks),
            found,
            setup,
            MAX_ADVISED,
            str(error),
        )
    except ArchiverError:  # what is wrong is said already; this only says what else could be done
        return
    words = " ".join((f"--at {found.seq}", *setup.session.words()))
    command = f"`archiver restore {words} {run_word(run)}`"
    cost = f"lost by that: {'; '.join(price)}"
    usual = "" if error.remedy in (None, DamagedError.usual_remedy) else error.remedy
    if usual and command in usual:
        error.remedy = f"{usual}; {cost}"
        return
    advice = f"{command} takes checkpoint {found.seq}, the newest before it that is whole; {cost}"
    error.remedy = f"{usual}; or {advice}" if usual else f"{advice}. Or bring the object back from a copy"
