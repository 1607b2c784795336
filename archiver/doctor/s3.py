"""A store on an S3 server, from the outside in: the server, the bucket, objects, rights, what lies there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from itertools import islice
from typing import Final

from archiver.aws import door
from archiver.config import Settings
from archiver.doctor import bucket as of_bucket
from archiver.doctor import objects, rights, server
from archiver.doctor.check import Check, failed, ok, unknown, warning
from archiver.doctor.keys import Held
from archiver.errors import ArchiverError
from archiver.layout import DOCTOR_PROBES, STORE
from archiver.model.record import RetentionClass
from archiver.setup import fencing
from archiver.setup.remote import store_options
from archiver.store.probe import integrity
from archiver.store.probe import rights as asking
from archiver.store.probe import server as asked
from archiver.store.probe.answer import Answer, ask
from archiver.store.probe.bucket import Bucket, bucket
from archiver.store.s3 import S3Store, uploads
from archiver.store.s3.address import parse
from archiver.store.s3.client import CLASS_TAG, S3, class_of
from archiver.store.s3.uploads import Unfinished

OLD: Final = timedelta(days=1)
"""Age of an unfinished upload from which its writer is taken for dead."""
MOST: Final = 1000
"""Unfinished uploads that are looked at."""


class _Visited(S3Store):
    """The store without its housekeeping: a visit only looks."""

    def _tidy(self) -> None:
        pass


class Examination:
    """One visit; `checks` makes probes and removes them as far as the store permits."""

    def __init__(
        self, settings: Settings, url: str, held: Held, *, repair: bool, now: Callable[[], datetime]
    ) -> None:
        self._settings = settings
        self._held = held
        self._repair = repair
        self._now = now
        self._s3 = S3(parse(url), store_options(settings))
        self._store = _Visited(self._s3)
        self._made: list[str] = []
        self._rights: dict[str, Answer | None] = {}

    def checks(self) -> Iterator[Check]:
        """Everything, in the order in which it builds on itself."""
        reach = asked.reach(self._s3, self._now)
        first = server.reached(reach, self._store.url)
        yield first
        if first.verdict != "failure" or reach.skew is not None:
            yield server.clock(reach)
        if first.verdict == "failure":
            yield unknown("everything else", "of the store could not be looked at")
            return
        found = bucket(self._s3)
        yield from self._server(reach, found)
        yield objects.store_id(self._store, self._settings)
        self._rights["s3:ListBucket"] = reach.first
        try:
            yield from self._writing()
            yield from of_bucket.judge(found, self._s3.address.prefix, CLASS_TAG)
            self._excess(reach.server, found)
        finally:
            left = list(asking.remove(self._s3, self._made, versioned=of_bucket.is_versioned(found)))
        yield rights.needed(self._role(), self._rights)
        yield from rights.excess(self._rights)
        yield self._uploads()
        yield objects.classes(self._store, self._class_of)
        if left or reach.first.done:
            yield from objects.left_over(self._store)

    def _server(self, reach: asked.Reach, found: Bucket) -> Iterator[Check]:
        aws = self._s3.options.aws
        yield server.credentials(
            door.credentials_from(aws), asked.identity(self._s3), aws=aws.endpoint_url is None
        )
        yield server.region(found.location, reach.first, self._settings.store.region)

    def _role(self) -> rights.Role:
        if self._held.signing_key is None:
            return "reader"
        return "writer" if self._held.identities else "create-only writer"

    def _name(self) -> str:
        name = objects.probe_name()
        self._made.append(name)
        return name

    def _writing(self) -> Iterator[Check]:
        """What can be seen only by writing."""
        first = self._name()
        put = self._put(first)
        if not put.done:
            self._made.clear()
            self._rights["s3:GetObject"] = self._readable(STORE)
            why = "these credentials may not write" if put.denied else f"a put is refused: {put.said}"
            for name in ("fencing", "round trip", "class tags", "checksums", "multipart"):
                yield unknown(name, f"{why}, so it could not be tried")
            yield server.strangers(*asked.anonymous(self._s3))
            return
        self._rights["s3:GetObject"] = self._readable(first)
        yield self._fencing()
        yield server.multipart(integrity.taken_multipart(self._s3, first))
        sent = self._settings.store.checksums
        yield server.checksum("SHA-256", integrity.wrong_sha256(self._s3, self._name()), sent=sent == "full")
        yield server.checksum("Content-MD5", integrity.wrong_md5(self._s3, self._name()), sent=False)
        trip = self._name()
        yield objects.round_trip(self._store, trip)
        yield objects.tags(self._store, trip, self._class_of)
        yield server.strangers(*asked.anonymous(self._s3, first))

    def _put(self, name: str) -> Answer:
        """A first object, with its tag; without one where only the tag is what may not be."""
        tagged = ask(self._s3, "put_object", name, Body=b"probe", Tagging=f"{CLASS_TAG}=live")
        self._rights["s3:PutObjectTagging"] = self._rights["s3:PutObject"] = tagged
        if not tagged.denied:
            return tagged
        plain = ask(self._s3, "put_object", name, Body=b"probe")
        self._rights["s3:PutObject"] = plain
        if plain.denied:
            self._rights["s3:PutObjectTagging"] = None
        return plain if plain.done else tagged

    def _readable(self, name: str) -> Answer | None:
        """Whether objects may be read; a missing one says nothing."""
        answer = ask(self._s3, "get_object", name, Range="bytes=0-0")
        if answer.value is not None:
            answer.value["Body"].close()
        return None if answer.absent else answer

    def _fencing(self) -> Check:
        try:
            found = fencing.probe(self._store, DOCTOR_PROBES)
        except ArchiverError as error:
            return failed("fencing", error)
        self._made += found.left
        return server.fencing(found, wanted=self._settings.store.fencing)

    def _excess(self, kind: str | None, found: Bucket) -> None:
        """Try what a writer should not be able to do, on probes and with requests that change nothing."""
        versioned, safe = of_bucket.is_versioned(found), asking.may_be_asked(kind)
        self._rights |= {
            "s3:DeleteObject": asking.delete(self._s3, self._made[0]) if self._made else None,
            "s3:PutLifecycleConfiguration": asking.put_lifecycle(self._s3) if safe else None,
            "s3:PutBucketPolicy": asking.put_policy(self._s3) if safe else None,
            **({"s3:DeleteObjectVersion": None} if versioned else {}),
            **({"s3:BypassGovernanceRetention": None} if of_bucket.is_locking(found) else {}),
        }
        if versioned and self._made:
            self._versions(self._made[0], found)

    def _versions(self, probe: str, found: Bucket) -> None:
        retention = of_bucket.default_retention(found)
        for version in asking.versions(self._s3, probe)[:1]:
            plain = asking.delete_version(self._s3, probe, version)
            if plain.done or retention is None:
                self._rights["s3:DeleteObjectVersion"] = plain
            elif retention[0] == "GOVERNANCE":
                # Refused because the version is locked, or because the right is missing: only past the lock
                # that can be told apart.
                bypass = asking.delete_version(self._s3, probe, version, bypass=True)
                self._rights["s3:BypassGovernanceRetention"] = bypass
                if bypass.done:
                    self._rights["s3:DeleteObjectVersion"] = bypass

    def _class_of(self, name: str) -> RetentionClass | None:
        return class_of(self._s3.tags(name))

    def _uploads(self) -> Check:
        name = "unfinished uploads"
        try:
            found = islice(uploads.unfinished(self._s3), MOST)
            old = [upload for upload in found if self._now() - upload.begun > OLD]
        except ArchiverError as error:
            return unknown(name, f"cannot be listed: {error}", error.remedy)
        if not old:
            return ok(name, "none older than a day")
        count = f"{len(old)}{' or more' if len(old) == MOST else ''}"
        if self._repair:
            return self._abort(name, old, count)
        return warning(
            name,
            f"{count} older than a day, of writers that died; they are paid for: {_shown(old)}",
            "`archiver doctor --repair` aborts them",
        )

    def _abort(self, name: str, old: list[Unfinished], count: str) -> Check:
        kept = [upload for upload in old if not uploads.abort(self._s3, upload.name, upload.id)]
        if kept:
            return warning(
                name,
                f"{len(kept)} of {count} could not be aborted: {_shown(kept)}",
                "allow s3:AbortMultipartUpload, or let a rule of the bucket do it",
            )
        return ok(name, f"{count} older than a day were aborted")


def _shown(found: list[Unfinished], most: int = 3) -> str:
    return ", ".join(upload.name for upload in found[:most]) + (", …" if len(found) > most else "")
