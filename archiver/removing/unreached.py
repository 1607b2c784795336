"""What an erasure cannot reach, each by name: people have to look after it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from archiver.audit import journal, seen
from archiver.catalog import Catalog
from archiver.errors import ArchiverError
from archiver.model import utc_text
from archiver.setup.remote import is_remote, store_options

if TYPE_CHECKING:
    from archiver.inventory import Item
    from archiver.setup import Setup
    from archiver.store.s3.client import S3

_LEFT = ("export", "restore")


@dataclass(frozen=True, slots=True)
class Unreached:
    """Something that may hold the run, or parts of it, and that is not removed from here."""

    kind: Literal["version", "replica", "spool", "export", "restore", "copy", "source"]
    name: str
    """The version, the bucket, the writer, the file, or when it was made."""
    said: str


def beforehand(run: str, setup: Setup) -> tuple[Unreached, ...]:
    """What is known before anything goes: some of it is read from what will be gone."""
    return (*_handed_out(run, setup), *_spools(run, setup), *_copies(setup))


def version(item: Item, setup: Setup, error: ArchiverError) -> Unreached:
    """A version that could not be removed, and until when it is locked, where that may be read."""
    name = f"{item.name} (version {item.version})" if item.version else item.name
    s3 = _s3(setup)
    until = "" if s3 is None else _locked(s3, item)
    return Unreached("version", name, f"{until}; it is hidden" if until else str(error))


def _handed_out(run: str, setup: Setup) -> Iterator[Unreached]:
    """Exports and restored copies, from the audit here and in the store, as long as that is there."""
    path = journal.place(setup.settings)
    try:
        for one in seen.everything(setup, path, actions=_LEFT, since=None, run=run):
            if isinstance(one, seen.Said):
                continue
            act = one.act
            where = act.detail.get("into")
            place = f" into {where}" if isinstance(where, str) else ""
            why = f" ({act.why})" if act.why else ""
            seq = f" of checkpoint {act.seq}" if act.seq else ""
            kind: Literal["export", "restore"] = "export" if act.action == "export" else "restore"
            yield Unreached(kind, utc_text(act.at), f"{act.action}{seq} by {act.who}{place}{why}")
    except ArchiverError as error:
        yield Unreached("export", "audit", f"who exported or restored it cannot be read: {error}")


def _spools(run: str, setup: Setup) -> Iterator[Unreached]:
    """Other machines may keep checkpoints that are not delivered, or copies of the newest ones."""
    own = setup.signing_key.public if setup.signing_key else None
    try:
        links = Catalog(setup).beginning(run, near=False).links
    except ArchiverError:
        links = ()
    for writer in dict.fromkeys(link.record.writer for link in links):
        named = next((link.writer for link in links if link.record.writer == writer), "")
        if writer != own:
            yield Unreached(
                "spool",
                f"{named} ({writer})",
                "wrote checkpoints of it: what its machines keep in their spools is not known",
            )
    yield Unreached(
        "spool",
        "other machines",
        "with the same key have spools of their own, of which nothing is known here",
    )


def _copies(setup: Setup) -> Iterator[Unreached]:
    s3 = _s3(setup)
    if s3 is None:
        yield Unreached(
            "copy", setup.store.url, "backups and snapshots of this folder, and of its disk, are not known"
        )
        return
    from archiver.store.probe.answer import ask

    bucket = s3.address.bucket
    answer = ask(s3, "get_bucket_replication")
    if answer.value is not None:
        rules: list[dict[str, Any]] = answer.value.get("ReplicationConfiguration", {}).get("Rules", [])
        targets = {str((rule.get("Destination") or {}).get("Bucket")) for rule in rules}
        for target in sorted(targets):
            yield Unreached("replica", target, f"bucket {bucket} is replicated there: erase it there too")
    elif answer.denied:
        said = "whether it is replicated may not be read (s3:GetReplicationConfiguration)"
        yield Unreached("replica", bucket, said)
    elif not answer.absent:
        yield Unreached("replica", bucket, "the server does not tell whether it is replicated")


def _locked(s3: S3, item: Item) -> str:
    from archiver.store.probe.answer import ask

    named = {"VersionId": item.version} if item.version else {}
    retention = ask(s3, "get_object_retention", item.name, **named)
    found = (retention.value or {}).get("Retention") or {}
    legal = ask(s3, "get_object_legal_hold", item.name, **named)
    if ((legal.value or {}).get("LegalHold") or {}).get("Status") == "ON":
        return "under a legal hold, until somebody ends that"
    if "RetainUntilDate" in found:
        return f"locked ({str(found.get('Mode', '')).lower()}) until {utc_text(found['RetainUntilDate'])}"
    return ""


def _s3(setup: Setup) -> S3 | None:
    if not is_remote(setup.store):
        return None
    from archiver.store.s3.address import parse
    from archiver.store.s3.client import S3

    return S3(parse(setup.store.url), store_options(setup.settings))
