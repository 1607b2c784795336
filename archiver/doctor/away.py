"""Was something saved while KMS was away, and is still not sealed to its key?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from archiver import newest
from archiver.age.context import BindableIdentity, BindableRecipient
from archiver.config import Settings
from archiver.doctor.check import Check, ok, unknown, warning
from archiver.doctor.keys import Held
from archiver.errors import ArchiverError
from archiver.setup import open_setup

LOOKED = 20
"""Runs whose newest record is read."""


def checks(settings: Settings, held: Held) -> Iterator[Check]:
    """A line where KMS is a recipient and an identity file opens records; KMS itself is not asked."""
    name = "saved without kms"
    own = tuple(identity for identity in held.identities if not isinstance(identity, BindableIdentity))
    if not own or not any(isinstance(recipient, BindableRecipient) for recipient in held.recipients):
        return
    try:
        setup = replace(open_setup(settings, need="read"), identities=own)
        heads = [head for head in newest.newest(setup, LOOKED).heads if head.record is not None]
    except ArchiverError as error:
        yield unknown(name, f"the newest records cannot be read: {error}")
        return
    away = [head.run for head in heads if head.missing]
    runs = f"{len(heads)} run{'' if len(heads) == 1 else 's'} saved last"
    if away:
        yield warning(
            name,
            f"of the {runs}, {len(away)} were sealed while KMS was away, and not to its key: {away[0]!r}",
            "`archiver rekey --all --dry-run` shows what `archiver rekey --all` then seals to it",
        )
    elif heads:
        yield ok(name, f"the {runs} are sealed to KMS too, as far as they open with the identity files here")
