"""The bucket of a store as lifecycle rules see it: the rules, whether it keeps versions, what lies in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Final

from archiver import layout
from archiver.errors import ObjectNotFoundError, StoreDeniedError, UsageError
from archiver.lifecycle.parse import Rule, parse
from archiver.lifecycle.rules import Wanted
from archiver.lifecycle.simulate import Version, Versioning
from archiver.model.record import RetentionClass
from archiver.parallel import in_order
from archiver.setup.contents import default_store
from archiver.setup.remote import store_options
from archiver.store.probe.answer import ask
from archiver.store.s3 import address, listing, versions
from archiver.store.s3 import rules as configured
from archiver.store.s3.client import CLASS_TAG, S3, class_of
from archiver.store.s3.rules import Configuration

if TYPE_CHECKING:
    from archiver.config import Settings
    from archiver.sampling import Sample
    from archiver.store import ObjectVersion

_BATCH: Final = 50
"""Objects whose tags are asked for by one worker in a row."""


@dataclass(frozen=True, slots=True)
class Bucket:
    """What was read of the bucket at one time."""

    s3: S3
    configuration: Configuration
    versioning: Versioning
    wanted: Wanted
    remarks: tuple[str, ...] = ()
    """What could not be seen, and what was taken for so instead."""

    @property
    def rules(self) -> list[Rule]:
        """The enabled rules that touch anything of the store."""
        return [rule for rule in parse(self.configuration.rules) if rule.meets(self.wanted.prefix)]


@dataclass(frozen=True, slots=True)
class Seen:
    """One version of an object of the store, with its tags."""

    name: str
    """Of the object, without the store's prefix."""
    version: Version
    retention: RetentionClass | None
    """By its tag."""


def read(settings: Settings) -> Bucket:
    """Read rules and set-up; `UsageError` for a store that is no bucket, and the store's errors."""
    url = settings.store.url or default_store()
    if not url.lower().startswith("s3://"):
        raise UsageError(
            "lifecycle rules are those of a bucket, and this store lies in a folder",
            remedy="`archiver expire --dry-run` shows what `archiver expire` removes there, by the same days",
        )
    s3 = S3(address.parse(url), store_options(settings))
    configuration = configured.get(s3)
    versioning, remarks = _versioning(s3)
    if configuration.unknown:
        remarks += (
            f"what these parts of rules delete, only the server knows: {', '.join(configuration.unknown)}",
        )
    wanted = Wanted(s3.address.prefix, versioning != "off", CLASS_TAG, settings.retention.days)
    return Bucket(s3, configuration, versioning, wanted, remarks)


def _versioning(s3: S3) -> tuple[Versioning, tuple[str, ...]]:
    """`off` without a remark only where the server says so; whoever gives no answer now may have versions."""
    answer = ask(s3, "get_bucket_versioning")
    if answer.denied:
        return "on", (
            "that the bucket keeps versions is assumed: it may not be seen (s3:GetBucketVersioning)",
        )
    if answer.error is not None:
        if not (answer.unsupported or answer.refused):
            raise answer.error
        said = answer.error
        return "off", (f"whether the bucket keeps versions is not told, so it is taken for no: {said}",)
    status = (answer.value or {}).get("Status")
    return ("on" if status == "Enabled" else "suspended" if status == "Suspended" else "off"), ()


@dataclass(slots=True)
class Contents:
    """The objects of the store, folder by folder; afterwards, what was seen of them."""

    bucket: Bucket
    sample: Sample | None = None
    """Takes in every object, and only those are looked at that it picks."""
    total: int = 0
    without_versions: str = ""
    """Why old versions were not looked at, although there may be some."""

    def folders(self, tick: Callable[[], None] = lambda: None) -> Iterator[list[Seen]]:
        """What lies in one folder (of one run, mostly), again and again; `tick` is called for each version.

        Raises the store's errors, `StoreDeniedError` where tags may not be read.
        """
        s3 = self.bucket.s3
        batches = _batches(self._chosen(self._listed()), s3.address.prefix)
        with closing(in_order(self._tagged, batches, workers=s3.options.aws.parallel)) as tagged:
            found = (one for batch in tagged for one in batch)
            for _, group in groupby(found, key=lambda one: one.name.rpartition("/")[0]):
                folder = []
                for one in group:
                    tick()
                    folder.append(one)
                yield folder

    def _listed(self) -> Iterator[ObjectVersion]:
        """All versions, newest first, of one name after the other; what is there now where that is all."""
        if self.bucket.versioning != "off":
            try:
                yield from versions.listed(self.bucket.s3, "")
            except StoreDeniedError:
                self.without_versions = (
                    "s3:ListBucketVersions is not allowed, so old versions are not looked at"
                )
            else:
                return
        yield from _present(self.bucket.s3)

    def _chosen(self, listed: Iterator[ObjectVersion]) -> Iterator[ObjectVersion]:
        sample = self.sample
        named = (one for one in listed if not layout.is_probe(one.name))
        if sample is None:
            for one in named:
                self.total += 1
                yield one
            return
        everything = list(named)
        self.total = len(everything)
        for name, _ in groupby(everything, key=lambda one: one.name):
            sample.add(name, 0)
        picked = sample.picked()
        yield from (one for one in everything if one.name in picked)

    def _tagged(self, batch: Sequence[tuple[ObjectVersion, Version]]) -> list[Seen]:
        found = []
        for one, version in batch:
            if one.deleted:
                found.append(Seen(one.name, version, None))
                continue
            try:
                tags = self.bucket.s3.tags(one.name, one.version or None)
            except ObjectNotFoundError:
                continue  # removed since it was listed
            except StoreDeniedError as error:
                error.remedy = (
                    "allow s3:GetObjectTagging and s3:GetObjectVersionTagging; without the tags nobody can "
                    "say what a rule does"
                )
                raise
            found.append(Seen(one.name, replace(version, tags=tags), class_of(tags)))
        return found


def _present(s3: S3) -> Iterator[ObjectVersion]:
    from archiver.store import ObjectVersion

    for info in listing.listed(s3, ""):
        yield ObjectVersion(info.name, "", info.modified, info.size, info.etag, latest=True)


def _batches(listed: Iterator[ObjectVersion], prefix: str) -> Iterator[list[tuple[ObjectVersion, Version]]]:
    """With the time from when on an old version is one: that of what came over it."""
    batch: list[tuple[ObjectVersion, Version]] = []
    for _, group in groupby(listed, key=lambda one: one.name):
        before: ObjectVersion | None = None
        for one in group:
            since = None if before is None or one.latest else before.modified
            version = Version(
                prefix + one.name, one.modified, size=one.size, noncurrent_since=since, marker=one.deleted,
                id=one.version or "null",
            )  # fmt: skip
            batch.append((one, version))
            before = one
        if len(batch) >= _BATCH:
            yield batch
            batch = []
    if batch:
        yield batch
