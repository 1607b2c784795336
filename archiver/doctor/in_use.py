"""Which keys open what was saved last, and what would be lost with each of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from archiver import newest, recipients
from archiver.config import Settings
from archiver.doctor import keys
from archiver.doctor.check import Check, ok, unknown, warning
from archiver.doctor.keys import Held
from archiver.errors import ArchiverError, UntrustedWriterError
from archiver.recipients import RunSealed
from archiver.setup import open_setup

LOOKED = 20
"""Runs whose newest record and bundle are looked at."""
NAME = "keys in use"
_FEW = 3


@dataclass(frozen=True, slots=True)
class _Sealed:
    """One run: whom each of the objects that were looked at is sealed to."""

    run: str
    objects: tuple[frozenset[str], ...]

    @property
    def keys(self) -> frozenset[str]:
        """Those that open any of it."""
        return frozenset.union(*self.objects)

    def is_lost_with(self, key: str) -> bool:
        """Whether some of it opens with that key alone."""
        return frozenset({key}) in self.objects


def checks(settings: Settings, held: Held) -> Iterator[Check]:
    """What the headers of the runs saved last name; nothing where nobody here can read them."""
    try:
        setup = open_setup(settings, "read")
        own = keys.own_identities(held)
        if own:  # KMS need not be asked for each run
            setup = replace(setup, identities=tuple(own))
        heads = newest.newest(setup, LOOKED).heads
        seen = [sealed for head in heads for sealed in recipients.of_runs(setup, head.run)]
    except ArchiverError as error:
        yield unknown(NAME, f"whom the runs saved last are sealed to cannot be read: {error}", error.remedy)
        return
    found = [_of(one) for one in seen if one.objects]
    if not found:
        yield _nothing_of(seen) if seen else ok(NAME, "no runs yet")
        return
    sealed_to = {recipient.fingerprint for recipient in held.recipients}
    here = {identity.fingerprint for identity in held.identities}
    yield from _judged(found, sealed_to, here)


def _nothing_of(seen: Sequence[RunSealed]) -> Check:
    """Why no header could be read of runs that are there."""
    strangers = [one.error for one in seen if isinstance(one.error, UntrustedWriterError)]
    if len(strangers) < len(seen):
        return unknown(NAME, f"of none of {_runs(len(seen))}, as none can be opened")
    signed = "it is signed" if len(seen) == 1 else "all are signed"
    return unknown(
        NAME,
        f"of none of {_runs(len(seen))}, as {signed} by somebody whose signatures are not believed here",
        strangers[0].remedy,
    )


def _of(one: RunSealed) -> _Sealed:
    return _Sealed(one.run, tuple(frozenset(found.recipients) for found in one.objects))


def _judged(found: Sequence[_Sealed], sealed_to: set[str], here: set[str]) -> Iterator[Check]:
    in_use = sorted({key for one in found for key in one.keys})
    troubles = False
    for key in in_use:
        of = [one for one in found if key in one.keys]
        if key in sealed_to:
            continue
        troubles = True
        if key in here:
            needed = [one for one in of if any(sealed_to.isdisjoint(each) for each in one.objects)]
            yield _retired(key, needed, len(of))
        else:
            yield _stranger(key, of, [one for one in of if one.is_lost_with(key)])
    if not troubles:
        yield ok(NAME, f"{_runs(len(found))} saved last open with {'; '.join(_kept(found, in_use))}")


def _kept(found: Sequence[_Sealed], in_use: Sequence[str]) -> Iterator[str]:
    for key in in_use:
        of = sum(key in one.keys for one in found)
        lost = sum(one.is_lost_with(key) for one in found)
        what = f"without it {_runs(lost)} would be lost" if lost else "others open all of them too"
        yield f"{key}, {_runs(of)} ({what})"


def _retired(key: str, needed: Sequence[_Sealed], of: int) -> Check:
    if not needed:
        return warning(
            NAME,
            f"{key}, whose identity is here and is no recipient any more, still opens {_runs(of)} of those "
            "saved last; nothing would be lost with it",
            "`archiver rekey --all` takes it out of their headers, where that is meant",
        )
    return warning(
        NAME,
        f"{key}, whose identity is here and is no recipient any more, is still needed: without it "
        f"{_runs(len(needed))} of those saved last would be lost ({_named(needed)})",
        "keep its identity; `archiver rekey --all` seals what is stored to the recipients of today",
    )


def _stranger(key: str, of: Sequence[_Sealed], lost: Sequence[_Sealed]) -> Check:
    what = (
        f"without it {_runs(len(lost))} would be lost ({_named(lost)})"
        if lost
        else "whoever holds it opens them"
    )
    return warning(
        NAME,
        f"{_runs(len(of))} of those saved last {'are' if len(of) > 1 else 'is'} sealed to {key}, which is no "
        f"recipient and no identity here: {what}",
        "find out whose it is: add it to keys.recipients, or `archiver rekey --all` seals to those of today",
    )


def _named(found: Sequence[_Sealed]) -> str:
    return ", ".join(one.run for one in found[:_FEW]) + (", …" if len(found) > _FEW else "")


def _runs(count: int) -> str:
    return f"{count} run{'' if count == 1 else 's'}"
