"""The notes of administrators: which headers of a run were rewritten, for whom, and how old the objects are.

A rewritten object looks new to the store. A note says when it was written in truth, for exactly one payload
under one name; so a writer who is distrusted since is still judged by the time of writing. Notes are signed
before the headers change, and read only where something does not fit.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from archiver import jsonio, layout, signed
from archiver.errors import (
    ArchiverError,
    ContextMismatchError,
    InvalidNameError,
    KeyUnavailableError,
    LimitExceededError,
    ObjectNotFoundError,
    RecordError,
    StoreError,
    UntrustedWriterError,
)
from archiver.model import utc_text
from archiver.model.note import NOTE_FORMAT, Note, NoteKind, Rekeyed
from archiver.retention import Standing

if TYPE_CHECKING:
    from archiver.age import Identity, Recipient
    from archiver.records import Link
    from archiver.setup import Setup
    from archiver.sign import SigningKey
    from archiver.store import ObjectInfo

PAYLOAD_TYPE = "application/vnd.checkpoint-archiver.note.v1+json"
MAX_NOTE = 2 << 20
"""Bytes a sealed note may have, on write and on read."""
MAX_NOTES = 1000
"""Notes of one run that are looked at."""

_FORM = signed.Form("note", PAYLOAD_TYPE, NOTE_FORMAT, Note, MAX_NOTE)
_PART = 512 << 10
"""Bytes that the objects of one note may take, so that its recipients have room too."""
_KEPT = 128
"""Runs whose notes are kept in memory: more than are read at the same time."""


@dataclass(frozen=True, slots=True)
class Believed:
    """A note that is authentic, about this run of this store, and signed by a trusted administrator."""

    name: str
    note: Note
    administrator: str
    """Name of the administrator, from the list of trusted keys."""
    objects: Mapping[tuple[str, str], Rekeyed]
    """What it says, by name and payload digest."""
    stored: datetime
    """When the store got it."""


@dataclass(frozen=True, slots=True)
class Examined:
    """A note of a run, or the error that keeps it from being believed."""

    name: str
    believed: Believed | None = None
    error: ArchiverError | None = None
    stored: datetime | None = None
    """When the store got it."""


def encode(note: Note, key: SigningKey, recipients: Sequence[Recipient]) -> bytes:
    """Sign and seal a note; `LimitExceededError` past `MAX_NOTE` bytes."""
    sealed = signed.encode(_FORM, note, key, recipients)
    if len(sealed) > MAX_NOTE:
        raise LimitExceededError(
            f"a note on run {note.run} would have {len(sealed)} bytes, more than {MAX_NOTE}",
            remedy="seal to fewer recipients",
        )
    return sealed


def decode(sealed: bytes, identities: Sequence[Identity], *, name: str) -> Note:
    """Open, verify and only then parse the note that lies under `name`.

    Whether the key `by` is an administrator's is for the caller to judge. Raises what `signed.decode` does,
    or `ContextMismatchError` when an authentic note lies in another note's place.
    """
    opened = signed.decode(_FORM, sealed, identities, name)
    note, place = opened.document, layout.parse(name)
    if note.by != opened.public:
        raise RecordError(f"{name} names another administrator than the key that signed it")
    for one in note.objects:
        if not _is_sealed_object_of(one.name, note.run):
            raise RecordError(f"{name} speaks of an object that is none of its run")
    if place.run != note.run or layout.note_name(note.at, note.run, place.random or "") != name:
        raise ContextMismatchError(
            f"{name} is in truth a note on run {note.run} of {utc_text(note.at)}: it was moved or copied"
        )
    opened.demand_context(note.run, note.task, "note", name)
    return note


def parts(objects: Iterable[Rekeyed]) -> Iterator[tuple[Rekeyed, ...]]:
    """The objects in portions that fit into one note each."""
    portion: list[Rekeyed] = []
    size = 0
    for one in objects:
        length = len(jsonio.canonical(one.document()))
        if portion and size + length > _PART:
            yield tuple(portion)
            portion, size = [], 0
        portion.append(one)
        size += length
    if portion:
        yield tuple(portion)


@dataclass(slots=True)
class _Slot:
    """The notes of one run, read by one thread while the others wait."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    notes: tuple[Examined, ...] | None = None


class Notes:
    """Reads notes, each opened, its signature verified and its administrator judged before it counts."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._slots: dict[str, _Slot] = {}
        self._lock = threading.Lock()

    def examined(self, run: str) -> tuple[Examined, ...]:
        """Every note of the run, the newest first; one that is not to be believed comes with its error.

        Read once. Raises only what keeps the store from being read, and `LimitExceededError` for more than
        `MAX_NOTES`.
        """
        with self._lock:
            if run not in self._slots:
                while len(self._slots) >= _KEPT:
                    del self._slots[next(iter(self._slots))]
                self._slots[run] = _Slot()
            slot = self._slots[run]
        with slot.lock:
            if slot.notes is None:
                slot.notes = tuple(self._examine(run))
            return slot.notes

    def of(self, run: str) -> Iterator[Believed]:
        """The notes of the run that are to be believed, the newest first."""
        return (one.believed for one in self.examined(run) if one.believed is not None)

    def standing(self, run: str) -> Standing:
        """How long the run is kept, by what its believed notes say."""
        newest: dict[str, datetime] = {}
        holds: list[datetime] = []
        for one in self.of(run):
            newest.setdefault(one.note.kind, one.note.at)
            if one.note.kind == "hold" and "release" not in newest:
                # By a clock that is ahead, what was lost on hold would seem to have expired before it began.
                holds.append(min(one.note.at, one.stored))
        held = min(holds, default=None)
        released = newest.get("release") if held is None else None
        return Standing(held, newest.get("merged"), newest.get("remove"), newest.get("erase"), released)

    def lasting(self, run: str) -> tuple[Believed, ...]:
        """The believed notes that `standing` goes by: they are said again where others have to read them."""
        found: dict[str, Believed] = {}
        for one in self.of(run):
            kind = one.note.kind
            ended = kind == "hold" and "release" in found
            if kind == "rekey" or ended or (kind == "release" and "hold" in found):
                continue
            if kind == "hold" or kind not in found:
                found[kind] = one
        return tuple(found.values())

    def unread(self, run: str) -> Examined | None:
        """A note that may say something which is not known here, as that the run is on hold; the newest.

        One of a stranger says nothing. One that does not open here says nothing new where the run was rekeyed
        since: what stood then was repeated.
        """
        rekeyed = [one for one in self.of(run) if one.note.kind == "rekey"]
        wrong = (one for one in self.examined(run) if _says_something(one.error))
        return next((one for one in wrong if not _repeated(one, rekeyed)), None)

    def newest(self, run: str, kind: NoteKind, seq: int = 0) -> Believed | None:
        """The newest believed note of that kind; with `seq`, of those that were signed when it was there."""
        fitting = (one for one in self.of(run) if one.note.kind == kind and (one.note.last or 0) >= seq)
        return next(fitting, None)

    def tombstone(self, run: str) -> Believed | None:
        """The note that says that all of the run was erased.

        None also where the notes cannot be read: what nobody can be believed in explains nothing.
        """
        try:
            return self.newest(run, "erase")
        except ArchiverError:
            return None

    def explains(self, run: str, name: str, seal: signed.Seal) -> Believed | None:
        """The newest note that says that this payload under this name got the header it has."""
        fitting = (
            one
            for one in self.of(run)
            if seal.is_for(one.note.recipients) and (name, seal.payload_sha256) in one.objects
        )
        return next(fitting, None)

    def written(self, run: str, name: str, payload_sha256: str, modified: datetime) -> datetime:
        """When the object was written in truth: `modified` is when the store got its present header."""
        found = (one.objects.get((name, payload_sha256)) for one in self.of(run))
        return min([modified, *(said.written for said in found if said is not None)])

    def judge(self, link: Link, info: ObjectInfo) -> str:
        """The name of the writer of a record, trusted for the run when the record was written.

        `UntrustedWriterError`. Notes are asked for only where the time matters and the one that the store
        gives is refused, or is that of a header rewritten since.
        """
        record, writers = link.record, self._setup.writers
        # Where KMS was away, the header does not say whether it is the first one: notes are asked.
        rekeyed = bool(record.missing_recipients) or not link.seal.is_for(record.recipients)
        try:
            name = writers.judge(record.writer, record.run, info.modified)
            if not rekeyed or not writers.is_timed(record.writer):
                return name
        except UntrustedWriterError:
            if not writers.is_timed(record.writer):
                raise
        written = self.written(record.run, info.name, link.seal.payload_sha256, info.modified)
        return writers.judge(record.writer, record.run, written)

    def _examine(self, run: str) -> Iterator[Examined]:
        for count, info in enumerate(self._setup.store.list(layout.notes_prefix(run)), start=1):
            if count > MAX_NOTES:
                raise LimitExceededError(
                    f"run {run} has more than {MAX_NOTES} notes, which no administrator writes",
                    remedy=f"look at {layout.notes_prefix(run)} and remove what strangers put there",
                )
            try:
                yield Examined(info.name, believed=self._read(info, run), stored=info.modified)
            except (InvalidNameError, ObjectNotFoundError):
                continue  # nobody's note, `verify` reports it as a stranger; or removed since it was listed
            except StoreError:
                raise
            except ArchiverError as error:
                yield Examined(info.name, error=error.with_traceback(None), stored=info.modified)

    def _read(self, info: ObjectInfo, run: str) -> Believed:
        layout.parse(info.name)
        sealed = self._setup.store.read(info.name, limit=MAX_NOTE)
        note = decode(sealed, self._setup.identities_for(run, "note"), name=info.name)
        administrator = self._setup.writers.judge_administrator(note.by, info.name, info.modified)
        expected = self._setup.store_id
        if expected is not None and note.store != expected:
            raise ContextMismatchError(f"{info.name} belongs to store {note.store}, not to {expected}")
        objects = {(one.name, one.payload_sha256): one for one in note.objects}
        return Believed(info.name, note, administrator, objects, info.modified)


def _says_something(error: ArchiverError | None) -> bool:
    return error is not None and not isinstance(error, (UntrustedWriterError, ContextMismatchError))


def _repeated(one: Examined, rekeyed: Sequence[Believed]) -> bool:
    """By the store's time too, for anybody can choose a name."""
    at, stored = layout.parse(one.name).at, one.stored
    if not isinstance(one.error, KeyUnavailableError) or at is None or stored is None:
        return False
    return any(at <= note.note.at and stored <= note.stored for note in rekeyed)


def _is_sealed_object_of(name: str, run: str) -> bool:
    try:
        parsed = layout.parse(name)
    except InvalidNameError:
        return False
    return parsed.run == run and parsed.kind in ("record", "bundle", "effect")
