"""What the tests of rekey share: runs, keys of other people, and things that are done to a store by hand."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from io import BytesIO
from pathlib import Path
from typing import Any

from archiver import age
from archiver.age import header as headers
from archiver.age import hints
from archiver.age.container import open_header
from archiver.age.feed import Feed
from archiver.archive import Given, Options, Source, archive
from archiver.model import Record
from archiver.rekey import Done, rekey
from archiver.setup import Setup
from archiver.store import ObjectInfo
from archiver.verify import Finding, verify
from archiver.writers import Administrator, Writer, Writers

RUN = "r"


def save(setup: Setup, path: Path, run: str = RUN) -> Record:
    return archive(Source(paths=(path,)), setup, options=Options(given=Given(run_id=run))).record


def at(setup: Setup, name: str) -> Path:
    return Path(setup.store.url.removeprefix("file://")) / name


def names(setup: Setup, *prefixes: str) -> list[str]:
    return [info.name for prefix in prefixes for info in setup.store.list(prefix)]


def sealed_objects(setup: Setup) -> dict[str, bytes]:
    """Everything that is sealed, notes aside."""
    prefixes = ("records/", "bundles/", "effects/")
    return {name: setup.store.read(name, limit=1 << 20) for name in names(setup, *prefixes)}


def payload_of(data: bytes) -> bytes:
    return data[len(age.read_header(BytesIO(data)).marshal()) :]


def keys_of(data: bytes) -> tuple[str, ...]:
    return age.hint(age.read_header(BytesIO(data)))


def to(setup: Setup, *identities: age.X25519Identity) -> Setup:
    """The configuration after a change of recipients: the old identities are still there."""
    settings = setup.settings
    chosen = tuple(str(identity.recipient) for identity in identities)
    settings = settings.model_copy(update={"keys": settings.keys.model_copy(update={"recipients": chosen})})
    return replace(
        setup,
        recipients=tuple(identity.recipient for identity in identities),
        identities=(*setup.identities, *identities),
        settings=settings,
    )


def only(setup: Setup, *identities: age.Identity) -> Setup:
    """The same, seen by somebody who has these identities alone."""
    return replace(setup, identities=identities)


def done(setup: Setup, run: str = RUN, **named: Any) -> Done:
    (found,) = rekey([run], setup, **named)
    if found.error is not None:
        raise found.error
    return found


def backdate(setup: Setup, moment: datetime, *prefixes: str) -> None:
    """Have the store say that these objects were written then."""
    for name in names(setup, *prefixes):
        os.utime(at(setup, name), (moment.timestamp(), moment.timestamp()))


def distrusting(setup: Setup, after: datetime, administrator: str | None, **named: Any) -> Setup:
    """The own key is distrusted as a writer since then; another is the administrator's."""
    key = setup.require_signing_key().public
    writer = Writer(name="ci", key=key, distrusted_after=after, **named)
    believed = (Administrator(name="ops", key=administrator),) if administrator else ()
    return replace(setup, writers=Writers((writer,), None, believed))


def with_stanzas(data: bytes, identity: age.Identity, *recipients: age.Recipient, hint: bool) -> bytes:
    """The object as somebody rewrites it who can open it: for these keys, with or without naming them."""
    old, file_key, *_ = open_header(Feed(BytesIO(data)), [identity], "object")
    added = [stanza for recipient in recipients for stanza in recipient.wrap(file_key)]
    if hint:
        stanzas = (hints.make([recipient.fingerprint for recipient in recipients]), *added)
    else:
        stanzas = (*old.stanzas, *added)
    return headers.make(tuple(stanzas), file_key).marshal() + payload_of(data)


def overwrite(path: Path, data: bytes) -> None:
    path.unlink(missing_ok=True)
    path.write_bytes(data)


def broken(setup: Setup, run: str | None = RUN, *, deep: bool = True) -> list[Finding]:
    return [finding for finding in verify(setup, run, deep=deep) if not finding.ok]


class Counting:
    """A store that remembers what was asked of it."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.calls: list[tuple[str, str]] = []

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        self.calls.append(("list", prefix))
        return iter(self._store.list(prefix))

    def __getattr__(self, verb: str) -> Any:
        inner = getattr(self._store, verb)
        if not callable(inner):
            return inner

        def asked(name: str, *args: Any, **named: Any) -> Any:
            self.calls.append((verb, name))
            return inner(name, *args, **named)

        return asked
