"""Which version of a record is the record: the first, whatever was put over it or hides it.

A record is created once. Where the store keeps versions, one that lies over it was put there by somebody who
may write to the store: it is not believed, and it is said. Only rekeying puts versions there that are meant
to be: they have another header before the same payload, so the newest that has the payload of the first is
read, for the keys of the first may be gone. But anybody can put a header there that opens nothing: one that
no key here opens is passed over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from io import BytesIO
from itertools import groupby
from typing import cast

from archiver import age
from archiver.age import Identity
from archiver.errors import (
    ArchiverError,
    ContainerError,
    LimitExceededError,
    ObjectNotFoundError,
    StoreDeniedError,
    StoreError,
    StoreUnreachableError,
)
from archiver.signed import seal_of
from archiver.store import ObjectInfo, ObjectStore, ObjectVersion, Versioned

Opens = Callable[[bytes], bool]
"""Whether an identity at hand opens the header of a sealed object."""

MAX_VERSIONS = 100
"""Versions of one record that are looked at, the newest and the first; who rekeys makes one each time."""


@dataclass(frozen=True, slots=True)
class Stored:
    """An object as the store lists it."""

    info: ObjectInfo
    """What is there; of a hidden one, the newest version below the marker."""
    bodies: tuple[ObjectVersion, ...] = ()
    """Its versions, the newest first; none where they were not listed."""
    marker: str | None = None
    """Id of the delete marker that hides it."""

    @property
    def written(self) -> datetime:
        """When the store got it first, as far as it can be known."""
        return self.bodies[-1].modified if self.bodies else self.info.modified

    @property
    def touched(self) -> bool:
        """Whether there is more than the one version that was created."""
        return len(self.bodies) > 1 or self.marker is not None


@dataclass(frozen=True, slots=True)
class Listing:
    """Objects under a prefix in the order of their names, hidden ones too, and what is to be said of them."""

    objects: tuple[Stored, ...]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Read:
    """The bytes of an object that are to be believed, and the version that they are of."""

    sealed: bytes
    info: ObjectInfo
    pinned: bool = False
    """Whether they were asked for by their version, which nobody can change."""
    remarks: tuple[str, ...] = ()


class Histories:
    """Asks a store for versions, until it turns out that it does not give them."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._why_not = ""

    def listed(self, prefix: str) -> Listing:
        """What lies under the prefix, in one request for a page of a thousand versions.

        Where versions may not be listed, or the server cannot, what is there now; and that is said.
        """
        if not isinstance(self._store, Versioned):
            return Listing(tuple(map(Stored, self._store.list(prefix))))
        if not self._why_not:
            try:
                return _grouped(self._store.versions(prefix))
            except StoreUnreachableError:
                raise
            except StoreError as error:
                self._why_not = "whether records were overwritten or hidden is not known: " + (
                    "s3:ListBucketVersions is not allowed"
                    if isinstance(error, StoreDeniedError)
                    else "the server gave no list of versions"
                )
        return Listing(tuple(map(Stored, self._store.list(prefix))), (self._why_not,))

    def read(self, stored: Stored, limit: int, opens: Opens) -> Read:
        """The object whole: as it was created, or with the newest header for the same payload that `opens`.

        Raises what the store does, `LimitExceededError` for a first version of more than `limit` bytes.
        """
        name = stored.info.name
        if not stored.touched:
            return Read(self._store.read(name, limit=limit), stored.info)
        store, first = cast("Versioned", self._store), stored.bodies[-1]
        try:
            original = store.read_version(name, first.version, limit=limit)
            return _chosen(stored, store, original, limit, opens)
        except StoreDeniedError:
            if stored.marker is not None:
                raise
            remark = f"{name} has later versions, and s3:GetObjectVersion is not allowed: the newest was read"
            return Read(self._store.read(name, limit=limit), stored.info, remarks=(remark,))


def opening(identities: Sequence[Identity]) -> Opens:
    """Tries these; where there are none nothing can be told by that, and every header may be meant."""

    def opens(sealed: bytes) -> bool:
        if not identities:
            return True
        try:
            seal_of(BytesIO(sealed), identities, "the record", "")
        except ArchiverError:
            return False
        return True

    return opens


def _grouped(versions: Iterator[ObjectVersion]) -> Listing:
    objects, warnings = [], []
    for name, group in groupby(versions, key=lambda one: one.name):
        found = list(group)
        bodies = tuple(one for one in found if not one.deleted)
        marker = next((one.version for one in found if one.deleted and one.latest), None)
        if bodies:
            objects.append(Stored(_info(bodies[0]), bodies, marker))
        else:
            # Anybody who may delete can leave a marker where nothing ever was, so it proves nothing.
            warnings.append(
                f"{name} has a delete marker and no version: it was removed for good, or never was"
            )
    return Listing(tuple(objects), tuple(warnings))


def _chosen(stored: Stored, store: Versioned, original: bytes, limit: int, opens: Opens) -> Read:
    """The newest version with the payload of the first that opens; of what is no age file, the first."""
    name, first = stored.info.name, stored.bodies[-1]
    payload = _payload(original)
    remarks = []
    if stored.marker is not None:
        remarks.append(f"{name} is hidden by a delete marker ({stored.marker}); it was read all the same")
    strange: list[str] = []
    for body in stored.bodies[: min(MAX_VERSIONS, len(stored.bodies) - 1)]:
        sealed = _sealed(store, body, limit)
        if payload is None or sealed is None or _payload(sealed) != payload:
            strange.append(body.version)
        elif opens(sealed):
            return Read(sealed, _info(body), pinned=True, remarks=(*remarks, *_overwritten(name, strange)))
        else:
            remarks.append(
                f"{name} has another header in version {body.version}, and no identity here opens it: what "
                "was there before was read"
            )
    return Read(original, _info(first), pinned=True, remarks=(*remarks, *_overwritten(name, strange)))


def _overwritten(name: str, strange: list[str]) -> Iterator[str]:
    if strange:
        more = f" and {len(strange) - 1} more" if len(strange) > 1 else ""
        yield (
            f"{name} was overwritten: version {strange[0]}{more} holds something else and is not believed, "
            "the first version is"
        )


def _sealed(store: Versioned, body: ObjectVersion, limit: int) -> bytes | None:
    """The bytes of a version; None for one that is too large to be a record, or was removed meanwhile."""
    try:
        return store.read_version(body.name, body.version, limit=limit)
    except (LimitExceededError, ObjectNotFoundError):
        return None


def _payload(sealed: bytes) -> tuple[str, int] | None:
    try:
        return age.payload_digest(BytesIO(sealed))
    except ContainerError:
        return None


def _info(body: ObjectVersion) -> ObjectInfo:
    return ObjectInfo(body.name, body.size, body.modified, etag=body.etag)
