"""Whom objects are sealed to: what the configuration names, and what headers say."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from archiver import layout
from archiver.age import KmsIdentity, KmsRecipient
from archiver.age.context import BindableRecipient
from archiver.catalog import Catalog, Entry
from archiver.errors import (
    ArchiverError,
    ConfigError,
    KeyUnavailableError,
    NoSuchRunError,
    ObjectNotFoundError,
    StoreError,
)
from archiver.parallel import in_order
from archiver.signed import Seal, seal_of

if TYPE_CHECKING:
    from archiver.age import Identity, Recipient
    from archiver.setup import Setup

Way = Literal["here", "kms", "offline"]


@dataclass(frozen=True, slots=True)
class Configured:
    """A recipient of the configuration."""

    fingerprint: str
    kind: str
    text: str
    """As the configuration names it: `age1…`, `age1pq1…` or an ARN."""
    way: Way
    """What opens it: an identity of this configuration, KMS, or one that is kept elsewhere (break-glass)."""
    opens: bool
    """Whether an own identity, or KMS as it is configured here, opens what is sealed to it."""
    break_glass: bool = False
    """Whether it is for emergencies only, by `keys.break_glass`."""


@dataclass(frozen=True, slots=True)
class Sealed:
    """Whom one object is sealed to."""

    name: str
    recipients: tuple[str, ...]
    """Fingerprints in its header."""
    authentic: bool
    """Whether an own identity opened it; else anybody may have written its header."""
    mine: tuple[str, ...]
    """Those of them that own identities belong to."""


@dataclass(frozen=True, slots=True)
class RunSealed:
    """Whom the newest objects of a run are sealed to, and what is to be said of that."""

    run: str
    seq: int
    objects: tuple[Sealed, ...] = ()
    remarks: tuple[str, ...] = ()
    error: ArchiverError | None = None
    """Why the newest record, or its bundle, could not be looked at."""


def configured(
    recipients: Iterable[Recipient], identities: Iterable[Identity], emergency: Collection[str] = ()
) -> tuple[Configured, ...]:
    """The recipients that the next save seals to, as these identities see them.

    `emergency` has the fingerprints of those that are for emergencies only.
    """
    mine = tuple(identities)
    return tuple(
        Configured(
            one.fingerprint,
            one.kind,
            str(one),
            _way(one, mine),
            any(_opens(identity, one) for identity in mine),
            one.fingerprint in emergency,
        )
        for one in recipients
    )


def _way(recipient: Recipient, identities: tuple[Identity, ...]) -> Way:
    if isinstance(recipient, BindableRecipient):
        return "kms"
    return "here" if any(_opens(identity, recipient) for identity in identities) else "offline"


def _opens(identity: Identity, recipient: Recipient) -> bool:
    """Whether the identity belongs to the recipient; that of a KMS key also to replicas of the key."""
    if isinstance(identity, KmsIdentity) and isinstance(recipient, KmsRecipient):
        return identity.arn.family == recipient.arn.family
    return identity.fingerprint == recipient.fingerprint


def to_seal_to(setup: Setup) -> frozenset[str]:
    """Fingerprints of the configured recipients.

    `ConfigError` where there are none, or where no own identity belongs to one of them: nobody locks a store
    away from himself.
    """
    known = configured(setup.recipients, setup.identities)
    found = frozenset(one.fingerprint for one in known)
    if not found:
        raise ConfigError(
            "no recipient is configured, so there is nobody to seal to",
            remedy="name them as keys.recipients in archiver.toml",
        )
    if not any(one.opens for one in known):
        raise ConfigError(
            f"none of your identities would open what is sealed to {', '.join(sorted(found))}",
            remedy="add a recipient whose identity you have to keys.recipients, or name the identity file of "
            "one too, with --identity or in keys.identities",
        )
    return found


def fits(seal: Seal, setup: Setup) -> bool:
    """Whether a header is for the recipients that the configuration expects.

    Where the configuration names none, those of the identities must be among them: a restorer with one key
    need not know the others.
    """
    expected = {recipient.fingerprint for recipient in setup.recipients}
    if setup.settings.keys.recipients:
        return seal.is_for(expected)
    return expected.issubset(seal.recipients)


def of_runs(setup: Setup, run: str | None = None) -> Iterator[RunSealed]:
    """The newest record and its bundle of each run, or of one; `NoSuchRunError` if that is not there.

    Raises the store's errors; what is wrong with one run comes with it.
    """
    catalog = Catalog(setup)
    if run is not None:
        numbers = catalog.numbers(run)
        if not numbers:
            raise NoSuchRunError(f"the store has no run {run!r}", remedy="`archiver list` shows the runs")
        found: Iterable[tuple[str, int]] = [(run, numbers[-1])]
    else:
        found = catalog.newest_numbers()
    return in_order(lambda one: _look(*one, catalog, setup), found, workers=catalog.workers)


def _look(run: str, seq: int, catalog: Catalog, setup: Setup) -> RunSealed:
    name = layout.record_name(run, seq)
    try:
        entry = catalog.read(run, seq)
    except KeyUnavailableError as error:
        hinted = Sealed(name, error.fingerprints, False, ())
        # That no identity opens it is an answer; that KMS did not give one is an error.
        failure = None if type(error) is KeyUnavailableError else error.with_traceback(None)
        return RunSealed(run, seq, (hinted,), tuple(_unopened(error)), failure)
    except StoreError:
        raise
    except ArchiverError as error:
        return RunSealed(run, seq, error=error.with_traceback(None))
    seals = {name: entry.seal}
    failed: ArchiverError | None = None
    try:
        seals.update(_bundle(entry, setup))
    except StoreError:
        raise
    except ArchiverError as error:
        failed = error.with_traceback(None)
    own = _own(setup)
    objects = tuple(
        Sealed(name, seal.recipients, True, tuple(one for one in seal.recipients if one in own))
        for name, seal in seals.items()
    )
    remarks = _remarks(list(seals.values()), entry.record.missing_recipients, setup)
    return RunSealed(run, seq, objects, tuple(remarks), failed)


def _own(setup: Setup) -> set[str]:
    """Fingerprints of what own identities open, as far as they and the configuration tell."""
    known = configured(setup.recipients, setup.identities)
    return {
        *(identity.fingerprint for identity in setup.identities),
        *(one.fingerprint for one in known if one.opens),
    }


def _bundle(entry: Entry, setup: Setup) -> Iterator[tuple[str, Seal]]:
    record, bundle = entry.record, entry.record.bundle
    if bundle is None:
        return
    identities = setup.identities_for(record.run, "bundle", record.task)
    try:
        with setup.store.open(bundle.name) as source:
            yield bundle.name, seal_of(source, identities, bundle.name, bundle.payload_sha256)
    except ObjectNotFoundError:
        return  # whether it may be gone is for `verify` to say


def _unopened(error: KeyUnavailableError) -> Iterator[str]:
    yield "none of your identities opens it"
    if len(error.fingerprints) == 1:
        yield "only one key opens it"


def _remarks(seals: list[Seal], missing: tuple[str, ...], setup: Setup) -> Iterator[str]:
    """What a responder should know before the day on which a key is gone."""
    known = configured(setup.recipients, setup.identities)
    offline = {one.fingerprint for one in known if one.way == "offline"}
    if any(len(seal.recipients) + seal.unnamed < 2 for seal in seals):
        yield "only one key opens it"
    if offline and any(offline.isdisjoint(seal.recipients) for seal in seals):
        yield "no break-glass recipient opens it"
    if any(seal.unnamed for seal in seals):
        yield "more keys open it than its header names"
    if not all(fits(seal, setup) for seal in seals):
        yield "sealed to other recipients than the configured ones"
    if any(seal.lacks(missing) for seal in seals):
        yield "sealed while KMS was away"
