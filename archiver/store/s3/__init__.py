"""The store in a bucket of S3, or of a server that speaks its protocol.

    records/run/00000001.age → s3://<bucket>/<prefix>/records/run/00000001.age, with the tag archiver-class

An object comes into being by one conditional request, complete and tagged, or not at all.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import BinaryIO, Final

from archiver.errors import (
    AlreadyExistsError,
    ArchiverError,
    ObjectNotFoundError,
    StoreDeniedError,
)
from archiver.model.record import RetentionClass
from archiver.store.base import ObjectInfo, ObjectVersion
from archiver.store.options import S3Options
from archiver.store.s3 import address, download, uploads, versions
from archiver.store.s3.client import CLASS_TAG, S3, class_of, date_of, info_of
from archiver.store.s3.listing import listed
from archiver.store.s3.read import BUFFER, ObjectReader
from archiver.store.s3.upload import Put, put
from archiver.store.s3.uploads import Unfinished

__all__ = ["ABANDONED", "CLASS_TAG", "S3Store", "Unfinished"]

ABANDONED: Final = timedelta(hours=24)
"""Age from which nobody is believed to go on with an upload: a record has to follow its bundle by then."""


class S3Store:
    """A `Versioned` store in a bucket; safe to share between threads and across a fork."""

    def __init__(self, s3: S3) -> None:
        self._s3 = s3
        self._tidied = False

    @classmethod
    def at(cls, url: str, options: S3Options) -> S3Store:
        """The store at `s3://bucket/prefix`; `ConfigError` for another address. Nothing is sent yet."""
        return cls(S3(address.parse(url), options))

    @property
    def url(self) -> str:
        """The address, `s3://bucket/prefix`."""
        return self._s3.address.url

    @property
    def parallel(self) -> int:
        """How many requests at the same time are welcome."""
        return self._s3.options.aws.parallel

    def clock(self) -> datetime:
        """The time that the server puts on an answer."""
        return date_of(self._s3.call("list_objects_v2", MaxKeys=1, Prefix=self._s3.address.key_start("")))

    def create(self, name: str, body: Iterable[bytes], *, retention: RetentionClass) -> ObjectInfo:
        """Create a new object, durable when this returns; `AlreadyExistsError` if the name is taken.

        `UnconfirmedError` if it may be there, and this identity cannot read whether it is.
        """
        self._s3.address.key(name)  # before the body is asked for anything
        info = put(self._s3, Put(name, {CLASS_TAG: retention}, {"IfNoneMatch": "*"}), body)
        self._tidy()
        return info

    def open(self, name: str, *, offset: int = 0) -> BinaryIO:
        """A reader of the object from `offset`; one past the end reads nothing."""
        return io.BufferedReader(ObjectReader(self._s3, name, start=offset), BUFFER)

    def read(self, name: str, *, limit: int) -> bytes:
        """A small object whole; `LimitExceededError` if it is larger than `limit` bytes.

        It is asked for without a range, so that its checksum comes along; of one that is too large nothing is
        taken from the connection.
        """
        found = self._s3.quickly(name, limit)
        if found is not None:
            return found
        with ObjectReader(self._s3, name) as reader:
            download.refuse_larger(info_of(name, reader.answer), limit)
            return reader.readall()

    def head(self, name: str) -> ObjectInfo:
        """What is known of the object; no class where its tags may not be read."""
        answer = self._s3.call("head_object", name)
        tags: dict[str, str] = {}
        with suppress(StoreDeniedError):
            tags = self._s3.tags(name)
        return info_of(name, answer, class_of(tags))

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        """Objects whose names start with `prefix`, sorted by name, without their tags.

        Keys that cannot be an object's are passed over.
        """
        return listed(self._s3, prefix)

    def class_of(self, name: str) -> RetentionClass | None:
        """The class tag; None without one, or with one that is no class."""
        return class_of(self._s3.tags(name))

    def retag(self, name: str, retention: RetentionClass) -> None:
        """Change the class tag; other tags stay where they may be read."""
        self._retag(name, retention)

    def delete(self, name: str) -> None:
        """Remove the object; in a bucket with versions, hide it. Nothing happens if it is not there."""
        with suppress(ObjectNotFoundError):
            self._s3.call("delete_object", name)

    def replace(self, name: str, body: Iterable[bytes], *, was: ObjectInfo) -> ObjectInfo:
        """Put other bytes under a name that is there, with all its tags.

        `AlreadyExistsError` if it is no longer the object of `was`, `ObjectNotFoundError` if it is gone.
        """
        found = info_of(name, self._s3.call("head_object", name))
        if found.etag is None or found.etag != was.etag:
            raise AlreadyExistsError(
                f"object {name} was changed by somebody else meanwhile",
                remedy="run it again: it then works on what is there now",
            )
        return put(self._s3, Put(name, self._s3.tags(name), {"IfMatch": found.etag}), body)

    def download(self, name: str, into: Path, *, limit: int) -> ObjectInfo:
        """The object as the new file `into` (mode 0600), in parallel ranges of one version of it.

        `LimitExceededError`, before anything is written, if it has more than `limit` bytes.
        """
        return download.download(self._s3, name, into, limit=limit)

    def versions(self, prefix: str = "") -> Iterator[ObjectVersion]:
        """All versions of the objects whose names start with `prefix`, sorted by name, the newest first."""
        return versions.listed(self._s3, prefix)

    def open_version(self, name: str, version: str, *, offset: int = 0) -> BinaryIO:
        """A reader of that version from `offset`; one past the end reads nothing."""
        return io.BufferedReader(ObjectReader(self._s3, name, start=offset, version=version), BUFFER)

    def read_version(self, name: str, version: str, *, limit: int) -> bytes:
        """A small version whole; `LimitExceededError` if it is larger than `limit` bytes."""
        with ObjectReader(self._s3, name, version=version) as reader:
            download.refuse_larger(info_of(name, reader.answer), limit)
            return reader.readall()

    def class_of_version(self, name: str, version: str) -> RetentionClass | None:
        """The class tag of that version."""
        return class_of(self._s3.tags(name, version))

    def retag_version(self, name: str, version: str, retention: RetentionClass) -> None:
        """Change the class tag of that version; other tags stay where they may be read."""
        self._retag(name, retention, version)

    def delete_version(self, name: str, version: str) -> None:
        """Remove that version, or that marker, for good; nothing happens if it is not there."""
        with suppress(ObjectNotFoundError):
            self._s3.call("delete_object", name, VersionId=version)

    def _retag(self, name: str, retention: RetentionClass, version: str | None = None) -> None:
        tags: dict[str, str] = {}
        with suppress(StoreDeniedError):
            tags = self._s3.tags(name, version)
        tags[CLASS_TAG] = retention
        listed = [{"Key": key, "Value": value} for key, value in tags.items()]
        more = {} if version is None else {"VersionId": version}
        self._s3.call("put_object_tagging", name, Tagging={"TagSet": listed}, **more)

    def abandoned_uploads(self, older_than: timedelta = ABANDONED) -> Iterator[Unfinished]:
        """Uploads below the store's prefix that began so long ago that nobody will finish them."""
        return uploads.abandoned(self._s3, older_than)

    def abort_upload(self, upload: Unfinished) -> bool:
        """Abort an upload and free its parts; false if the store would not."""
        return uploads.abort(self._s3, upload.name, upload.id)

    def _tidy(self) -> None:
        """Abort what killed writers left, once a process; who may not do that leaves it to others."""
        if self._tidied:
            return
        self._tidied = True
        with suppress(ArchiverError):
            for upload in uploads.abandoned(self._s3, ABANDONED, _LARGE):
                self.abort_upload(upload)


_LARGE: Final = "bundles/"
"""Where what goes up in parts lies; another upload may be a stranger's, for a store may have no prefix."""
