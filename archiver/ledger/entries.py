"""Intents and outcomes as objects: how they are called, sealed, opened, and whose are believed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from archiver import jsonio, layout, sign, signed
from archiver.catalog import FOLDER_WORKERS, demand_unchanged
from archiver.errors import (
    ArchiverError,
    ContextMismatchError,
    InvalidNameError,
    LimitExceededError,
    ObjectNotFoundError,
    RecordError,
    StoreError,
    UntrustedWriterError,
)
from archiver.history import Histories, Stored, opening
from archiver.model.effect_entry import EFFECT_FORMAT, EffectEntry
from archiver.notes import Notes
from archiver.parallel import in_order
from archiver.store import Remote

if TYPE_CHECKING:
    from archiver.age import Identity, Recipient
    from archiver.setup import Setup

PAYLOAD_TYPE = "application/vnd.checkpoint-archiver.effect.v1+json"
ID_TYPE = "application/vnd.checkpoint-archiver.effect-id.v1"
MAX_ENTRY = 1 << 20
"""Bytes a sealed intent or outcome may have, on write and on read."""
MAX_BODY = MAX_ENTRY - (128 << 10)
"""Bytes of what is signed, so that recipients have room too."""
MAX_ENTRIES = 100_000
"""Objects of one run that are read."""
MAX_BYTES = 256 << 20
"""Bytes that they may have together."""

_FORM = signed.Form("effect object", PAYLOAD_TYPE, EFFECT_FORMAT, EffectEntry, MAX_ENTRY)


@dataclass(frozen=True, slots=True)
class Found:
    """An object of the ledger, or the error that keeps it from being believed."""

    name: str
    entry: EffectEntry | None = None
    signer: str = ""
    """Name of its writer, from the list of trusted keys."""
    seal: signed.Seal | None = None
    error: ArchiverError | None = None
    remarks: tuple[str, ...] = ()
    doubted: bool = False
    """Whether its writer, who is distrusted since, signed it after that: an entry, and an error."""


def intent_id(key: sign.SigningKey, store: str, run: str, effect: str, attempt: int) -> str:
    """What the intent of this attempt is called: nobody without the key can tell, or tell what it is about.

    The same writer always gets the same, so the store refuses a second one.
    """
    return _id(key, [store, run, "intent", effect, attempt])


def outcome_id(key: sign.SigningKey, store: str, run: str, intent: str) -> str:
    """What this writer's outcome of an intent is called."""
    return _id(key, [store, run, "outcome", intent])


def _id(key: sign.SigningKey, parts: list[str | int]) -> str:
    return hashlib.sha256(key.sign(sign.pae(ID_TYPE, jsonio.canonical(parts)))).hexdigest()[:32]


def check_size(entry: EffectEntry) -> None:
    """`LimitExceededError` for an entry that would not fit into an object, whoever it is sealed to."""
    size = len(jsonio.canonical(entry.document()))
    if size > MAX_BODY:
        raise LimitExceededError(
            f"the {entry.part} of an effect of run {entry.run} would have {size} bytes, more than {MAX_BODY}",
            remedy="give what names the arguments or the result, such as a path or an id, not all of it",
        )


def encode(entry: EffectEntry, key: sign.SigningKey, recipients: Sequence[Recipient]) -> bytes:
    """Sign and seal; `LimitExceededError` past `MAX_ENTRY` bytes."""
    sealed = signed.encode(_FORM, entry, key, recipients)
    if len(sealed) > MAX_ENTRY:
        raise LimitExceededError(
            f"the {entry.part} of an effect of run {entry.run} would have {len(sealed)} bytes, more than "
            f"{MAX_ENTRY}",
            remedy="seal to fewer recipients",
        )
    return sealed


def decode(sealed: bytes, identities: Sequence[Identity], *, name: str) -> signed.Opened[EffectEntry]:
    """Open, verify and only then parse what lies under `name`; whether to trust its writer is the caller's.

    Raises what `signed.decode` does, or `ContextMismatchError` when it lies in another one's place.
    """
    opened = signed.decode(_FORM, sealed, identities, name)
    entry = opened.document
    if entry.writer != opened.public:
        raise RecordError(f"{name} names another writer than the key that signed it")
    if layout.effect_name(entry.run, entry.id) != name:
        raise ContextMismatchError(
            f"{name} is in truth the {entry.part} of an effect of run {entry.run}: it was moved or copied"
        )
    opened.demand_context(entry.run, entry.task, "effect", name)
    return opened


class Reading:
    """Reads the ledger of a run; each object is opened, verified and its writer judged before it counts.

    Where the store keeps versions the first of an object counts, and one that a delete marker hides is there.
    """

    def __init__(self, setup: Setup, notes: Notes | None = None) -> None:
        self._setup = setup
        self._histories = Histories(setup.store)
        self._notes = notes or Notes(setup)

    def of(self, run: str) -> Iterator[Found]:
        """All objects of the run, in the order of their names; one that does not hold with its error.

        Raises what keeps the store from being read, and `LimitExceededError` for more than is read.
        """
        objects = [
            stored
            for stored in self._histories.listed(layout.effects_prefix(run)).objects
            if _is_effect(stored.info.name) and not layout.is_probe(stored.info.name)
        ]
        size = sum(stored.info.size for stored in objects)
        if len(objects) > MAX_ENTRIES or size > MAX_BYTES:
            raise LimitExceededError(
                f"the ledger of run {run} has {len(objects)} objects of {size} bytes together; up to "
                f"{MAX_ENTRIES} of {MAX_BYTES} bytes are read",
                remedy="go on under another run id",
            )
        store = self._setup.store
        workers = min(len(objects), store.parallel if isinstance(store, Remote) else FOLDER_WORKERS)
        with closing(in_order(lambda one: self._look(run, one), objects, workers=workers)) as found:
            yield from (one for one in found if one is not None)

    def _look(self, run: str, stored: Stored) -> Found | None:
        name = stored.info.name
        try:
            return self._read(run, stored)
        except ObjectNotFoundError:
            return None  # a probe of somebody's, or removed since it was listed
        except StoreError:
            raise
        except ArchiverError as error:
            return Found(name, error=error.with_traceback(None))

    def _read(self, run: str, stored: Stored) -> Found:
        name = stored.info.name
        identities = self._setup.identities_for(run, "effect")
        read = self._histories.read(stored, MAX_ENTRY, opening(identities))
        opened = decode(read.sealed, identities, name=name)
        entry = opened.document
        expected = self._setup.store_id
        if expected is not None and entry.store != expected:
            raise ContextMismatchError(f"{name} belongs to store {entry.store}, not to {expected}")
        if self._setup.writers.distrusts(entry.writer) and not read.pinned:
            demand_unchanged(read.info, self._setup.store)
        try:
            signer = self._signer(entry, opened.seal, stored)
        except UntrustedWriterError as error:
            if not self._setup.writers.distrusts(entry.writer):
                raise
            return Found(name, entry, error=error.with_traceback(None), doubted=True)
        return Found(name, entry, signer, opened.seal, remarks=read.remarks)

    def _signer(self, entry: EffectEntry, seal: signed.Seal, stored: Stored) -> str:
        """The writer, trusted for the run when the store got the object, before any rekey of it."""
        writers, name, written = self._setup.writers, stored.info.name, stored.written
        if writers.is_timed(entry.writer):
            written = self._notes.written(entry.run, name, seal.payload_sha256, written)
        try:
            return writers.judge(entry.writer, entry.run, written)
        except UntrustedWriterError as error:
            error.args = (f"{name}: {error}",)
            raise


def known(run: str, setup: Setup) -> tuple[EffectEntry, ...]:
    """What the store has of a run; fails closed, as `demanded` does."""
    return demanded(Reading(setup).of(run))


def demanded(found: Iterator[Found]) -> tuple[EffectEntry, ...]:
    """The entries; or the error of the first that does not hold: it may say that somebody acted.

    What a writer signed after the time from which it is distrusted says only that something was begun: nobody
    knows whether it happened, and people decide.
    """
    entries = []
    for one in found:
        if one.entry is not None and one.doubted:
            entries.append(_as_begun(one.entry))
        elif one.error is not None:
            one.error.remedy = one.error.remedy or (
                "look at the object with `archiver verify`; what an effect object says is needed to know "
                "whether something was done, so nothing goes on without it"
            )
            raise one.error
        elif one.entry is not None:
            entries.append(one.entry)
    return tuple(entries)


def _as_begun(entry: EffectEntry) -> EffectEntry:
    """The intent alone of what an outcome says, and one that is not to be repeated without asking."""
    document = entry.document(exclude={"intent", "begun", "status", "result", "by", "decided", "reason"})
    begun = {"part": "intent", "id": entry.intent or entry.id, "at": entry.begun or entry.at}
    return EffectEntry.model_validate({**document, **begun, "replayable": False})


def _is_effect(name: str) -> bool:
    """One of another name is nobody's; `verify` reports it."""
    try:
        return layout.parse(name).kind == "effect"
    except InvalidNameError:
        return False
