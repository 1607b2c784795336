"""A store on an S3 server, from the outside in: the server, the bucket, objects, rights, what lies there."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Generator, Iterator
from datetime import datetime, timedelta
from itertools import islice
from typing import Final

from archiver.aws import door
from archiver.config import Settings
from archiver.doctor import bucket as of_bucket
from archiver.doctor import excess, keys, objects, rights, server, versions
from archiver.doctor.check import Check, failed, ok, unknown, warning
from archiver.doctor.keys import Held
from archiver.errors import ArchiverError
from archiver.layout import DOCTOR_PROBES, STORE, bundle_name
from archiver.lifecycle.rules import Wanted
from archiver.model.record import RetentionClass
from archiver.setup import fencing
from archiver.setup.probes import Probes
from archiver.setup.remote import store_options
from archiver.store.probe import integrity
from archiver.store.probe import rights as asking
from archiver.store.probe import server as asked
from archiver.store.probe.answer import Answer, ask, from_error
from archiver.store.probe.bucket import Bucket, bucket
from archiver.store.probe.removal import remove
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
        with Probes(DOCTOR_PROBES, lambda names: remove(self._s3, names)) as probes:
            writes = yield from self._writing(probes)
            self._rights |= excess.tried(self._s3, probes, found, reach.server, writes=writes)
        yield from of_bucket.judge(found, self._wanted(found))
        yield versions.reading(found, *asking.see_versions(self._s3, STORE))
        role = self._role()
        yield rights.needed(role, self._rights)
        yield from rights.excess(role, self._rights)
        yield self._uploads()
        yield objects.classes(self._store, self._class_of)
        yield from objects.left_over(self._store)

    def _server(self, reach: asked.Reach, found: Bucket) -> Iterator[Check]:
        aws = self._s3.options.aws
        yield server.credentials(
            door.credentials_from(aws), asked.identity(self._s3), aws=aws.endpoint_url is None
        )
        yield server.region(found.location, reach.first, self._settings.store.region)
        there = server.region_of(found.location, reach.first)
        regions = server.key_regions(there, keys.regions(self._held))
        if regions is not None:
            yield regions

    def _wanted(self, found: Bucket) -> Wanted:
        days = self._settings.retention.days
        return Wanted(self._s3.address.prefix, of_bucket.is_versioned(found), CLASS_TAG, days)

    def _role(self) -> rights.Role:
        signs, has_file = self._held.signing_key is not None, bool(keys.own_identities(self._held))
        sweeps = bool(self._settings.retention.sweeper)
        opens = None if has_file or not signs else keys.opens_by_kms(self._held, self._settings)
        if opens is not None:
            self._rights[rights.OPENS] = Answer(status=200 if opens else 403)
        role = rights.role_of(
            signs=signs,
            has_file=has_file,
            reads=_is_done(self._rights.get(rights.READS)),
            opens=opens,
            sweeps=sweeps,
            archives=bool(self._settings.sweep.sources) or _is_done(self._rights.get("s3:PutObject")),
        )
        if role in rights.SWEEPERS:  # it reads records and notes alone, and retags nothing but bundles
            self._rights[rights.READS] = self._readable(STORE)
            self._rights[rights.RETAGS] = asking.retag(self._s3, _no_bundle())
        elif sweeps:
            self._rights.pop(rights.RETAGS, None)  # it is this machine that changes classes
        return role

    def _writing(self, probes: Probes) -> Generator[Check, None, bool]:
        """What can be seen only by writing; returns whether these credentials may."""
        first = probes.name()
        put = self._put(first)
        if not put.done:
            probes.forget(first)
            self._rights["s3:GetObject"] = self._readable(STORE)
            why = "these credentials may not write" if put.denied else f"a put is refused: {put.said}"
            for name in ("fencing", "round trip", "class tags", "checksums", "multipart"):
                yield unknown(name, f"{why}, so it could not be tried")
            yield server.strangers(*asked.anonymous(self._s3))
            return False
        self._rights["s3:GetObject"] = self._readable(first)
        yield self._fencing(probes)
        yield server.multipart(integrity.taken_multipart(self._s3, first))
        yield from self._checksums(probes)
        trip = probes.name()
        yield objects.round_trip(self._store, trip)
        yield objects.tags(self._store, trip, self._class_of)
        yield server.strangers(*asked.anonymous(self._s3, first))
        return True

    def _checksums(self, probes: Probes) -> Iterator[Check]:
        sha256 = self._settings.store.checksums == "full"
        for what, wrong, sent in (
            ("SHA-256", integrity.wrong_sha256, sha256),
            ("Content-MD5", integrity.wrong_md5, False),
        ):
            name = probes.name()
            answer = wrong(self._s3, name)
            if answer.status and not answer.done:
                probes.forget(name)
            yield server.checksum(what, answer, sent=sent)

    def _put(self, name: str) -> Answer:
        """A first object as a save puts it; without the tag where only the tag is what may not be."""
        tagged = asking.put(self._s3, name)
        if tagged.unsupported:
            tagged = asking.put(self._s3, name, condition=False)
        self._rights["s3:PutObjectTagging"] = self._rights["s3:PutObject"] = tagged
        if not tagged.denied:
            return tagged
        plain = asking.put(self._s3, name, tagged=False)
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

    def _fencing(self, probes: Probes) -> Check:
        try:
            found = fencing.probe(self._store, probes)
        except ArchiverError as error:
            return server.no_fencing(from_error(error)) or failed("fencing", error)
        return server.fencing(found, wanted=self._settings.store.fencing)

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
            "`archiver doctor --repair` aborts them, and so does the next save",
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


def _no_bundle() -> str:
    """The name of a bundle that is not there: that is answered only to who may retag one."""
    return bundle_name(DOCTOR_PROBES, 1, secrets.token_hex(8))


def _is_done(answer: Answer | None) -> bool:
    return answer is not None and answer.done


def _shown(found: list[Unfinished], most: int = 3) -> str:
    return ", ".join(upload.name for upload in found[:most]) + (", …" if len(found) > most else "")
