"""A record of the spool signed anew: without its bundle, after another one, or with another bundle name."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

from archiver import jsonio, records
from archiver.errors import ContextMismatchError, DigestMismatchError, KeyUnavailableError
from archiver.model.record import BundleRef, Record, Sizes
from archiver.spool.entry import REMEDY, Entry, Meta

if TYPE_CHECKING:
    from archiver.setup import Setup


def opened(entry: Entry, setup: Setup) -> Record:
    """The record, opened with the own identities and verified to be of the own key and of this place.

    Raises what `records.decode` does, `DigestMismatchError` and `ContextMismatchError`.
    """
    identities = setup.identities_for(entry.run, "record")
    link = records.decode(entry.read_record(), identities, run=entry.run, seq=entry.seq)
    if link.sha256 != entry.sha256:
        raise DigestMismatchError(f"{entry.folder} holds another record than it says", remedy=REMEDY)
    own = setup.require_signing_key().public
    if (link.record.store, link.record.writer) != (setup.require_store_id(), own):
        raise ContextMismatchError(
            f"{entry.folder} holds a record of store {link.record.store} by {link.record.writer}, not of "
            "this store by the own signing key",
            remedy="look who put it there; nothing of it is delivered",
        )
    return link.record


def signed_anew(
    entry: Entry, meta: Meta, previous: str | None, known: Mapping[int, bytes], setup: Setup
) -> tuple[Meta, bytes]:
    """The record as `meta` says it is, after `previous`; returns what is then known of it, and its object.

    `known` has bodies by number, for a writer that cannot open what it wrote. `KeyUnavailableError` where
    neither that nor an identity helps.
    """
    record = _record(entry, known, setup)
    bundle = record.bundle
    if meta.bundle is None:
        bundle = None
    elif bundle is not None:
        bundle = BundleRef.model_validate({**bundle.document(), "name": meta.bundle.name})
    changes = {
        "kind": meta.kind,
        "previous": previous,
        "bundle": bundle,
        "sizes": record.sizes if bundle is not None else Sizes(),
    }
    made = Record.model_validate(record.model_copy(update=changes).document())
    reached = setup.seal_to(made.run, made.task, "record")
    made, sealed = records.sealed(made, setup.require_signing_key(), reached)
    changed = {
        "unsigned": False,
        "sha256": records.body_sha256(made),
        "was": entry.meta.was or entry.sha256,
        "previous": previous,
        "sealed_sha256": hashlib.sha256(sealed).hexdigest(),
        "sealed_size": len(sealed),
    }
    return meta.model_copy(update=changed), sealed


def _record(entry: Entry, known: Mapping[int, bytes], setup: Setup) -> Record:
    body = known.get(entry.seq)
    if body is not None and hashlib.sha256(body).hexdigest() in entry.digests:
        return Record.model_validate(jsonio.loads(body))
    try:
        return opened(entry, setup)
    except KeyUnavailableError as error:
        raise KeyUnavailableError(
            f"record {entry.seq} of run {entry.run} has to be signed anew, because it or one before it gave "
            f"up its bundle or waited too long, and it cannot be opened here: {error}",
            fingerprints=error.fingerprints,
            remedy="run `archiver sync` with an identity that opens it, and with the signing key of the run",
        ) from error
