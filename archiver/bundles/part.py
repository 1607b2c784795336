"""One bundle of which parts are wanted: opened at its manifest, then read where its members lie."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from archiver import age, pack
from archiver.age.header import MAX_HEADER
from archiver.bundles import presence
from archiver.errors import ArchiveFormatError, DigestMismatchError, LimitExceededError
from archiver.model.manifest import Manifest
from archiver.model.record import BundleRef, Record
from archiver.store import Remote

if TYPE_CHECKING:
    from archiver.setup import Setup

SMALL = 1 << 20
"""Bytes of a payload up to which a bundle is fetched whole: a request costs more than its bytes."""


class Part:
    """A bundle whose manifest is the one that its record signed.

    A small one, or one of which most is wanted, is fetched from a store over a network and hashed as a whole.
    Of another what is read is proved by the tags of its chunks and the digests in the manifest.
    """

    def __init__(self, record: Record, setup: Setup, beside: Path) -> None:
        """`beside` names a place in a private folder. Raises what reading a manifest raises,
        `ObjectNotFoundError`, and `DigestMismatchError`.
        """
        self.record = record
        self.bundle = presence.bundle_of(record)
        self._setup = setup
        self._copy = beside.with_name(f"{beside.name}-{record.seq}.age")
        self._copied = False
        if isinstance(setup.store, Remote) and self.bundle.payload_length <= SMALL:
            self._fetch(setup.store)
        self._parts = self._opened()
        with self._parts.at(0) as source:
            self._first = pack.read_first(source, limits=setup.settings.limits)
        demand_said(record, self.bundle, self.manifest)

    @property
    def manifest(self) -> Manifest:
        return self._first.manifest

    @property
    def opened_by(self) -> str:
        """Fingerprint of the identity that opened it."""
        return self._parts.opened_by

    def size(self, paths: Collection[str]) -> int:
        """Bytes of these members."""
        return sum(member.size for member in self.manifest.members if member.path in paths)

    def unpack(
        self, paths: Collection[str], into: Path, lend: pack.Lend | None = None, ends: pack.Ends | None = None
    ) -> None:
        """Write these members below `into`, and give the `ends`; raises what `pack.unpack` does."""
        store, limits, frames = self._setup.store, self._setup.settings.limits, self.bundle.frames
        if isinstance(store, Remote) and not self._copied and not self._pays(paths, ends):
            self._fetch(store)
            self._parts = self._opened()
        if frames:
            pack.unpack_parts(self._first, frames, self._parts.at, into, only=paths, ends=ends)
            return
        with self._parts.at(0) as source:
            found = pack.unpack(source, into, limits=limits, only=paths, lend=lend, ends=ends)
        if found.sha256 != self.manifest.sha256:
            raise DigestMismatchError(f"{self.bundle.name} was changed while it was read")

    def close(self) -> None:
        """Remove the copy."""
        self._copy.unlink(missing_ok=True)

    def _pays(self, paths: Collection[str], ends: pack.Ends | None) -> bool:
        """Whether ranges are less than half of the bundle."""
        frames = self.bundle.frames
        texts = (one.path for one in self.manifest.members if ends is not None and ends.of(one.path))
        read = {*paths, *texts}
        return bool(frames) and 2 * pack.compressed(self.manifest, frames, read) < self.bundle.payload_length

    def _opened(self) -> age.Parts:
        name = self.bundle.name
        opened = age.open_parts(presence.identities(self.record, self._setup), self._open_at, name=name)
        opened.demand_context(self.record.run, self.record.task, "bundle")
        return opened

    def _open_at(self, offset: int) -> AbstractContextManager[BinaryIO]:
        if not self._copied:
            return self._setup.store.open(self.bundle.name, offset=offset)
        file = self._copy.open("rb")
        file.seek(offset)
        return file

    def _fetch(self, store: Remote) -> None:
        try:
            fetch_whole(self.record, store, self._copy)
        except BaseException:
            self._copy.unlink(missing_ok=True)
            raise
        self._copied = True


def fetch_whole(record: Record, store: Remote, copy: Path) -> None:
    """The object as the new file `copy`, whose payload is what the record signed."""
    bundle = presence.bundle_of(record)
    try:
        store.download(bundle.name, copy, limit=bundle.payload_length + MAX_HEADER)
    except LimitExceededError as error:
        raise presence.other(record, bundle) from error
    with copy.open("rb") as source:
        demand_payload(record, bundle, age.payload_digest(source))


def demand_payload(record: Record, bundle: BundleRef, found: tuple[str, int]) -> None:
    """`DigestMismatchError` for another payload than the record signed."""
    if found != (bundle.payload_sha256, bundle.payload_length):
        raise presence.other(record, bundle)


def demand_said(record: Record, bundle: BundleRef, manifest: Manifest) -> None:
    """`DigestMismatchError` for another manifest than the record signed."""
    said = (bundle.manifest_sha256, record.run, record.seq, record.schema_version)
    held = (manifest.sha256, manifest.run, manifest.seq, manifest.schema_version)
    if (*said, bundle.members, bundle.unpacked) != (*held, len(manifest.members), manifest.unpacked):
        raise DigestMismatchError(f"{bundle.name} holds another manifest than its record signed")
    if (manifest.base is not None) != bool(bundle.bases):
        raise ArchiveFormatError(
            f"{bundle.name} and record {record.seq} of run {record.run} do not agree whether it is based on "
            "another bundle"
        )
