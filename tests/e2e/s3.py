"""A store on S3 as these tests use it: opened again, through a proxy, by other processes; and looked over."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from archiver import age, layout
from archiver.archive import Archived, Given, Options, Source, archive
from archiver.catalog import Catalog
from archiver.config import load
from archiver.model import Record
from archiver.restore import restore
from archiver.setup import Setup, open_setup
from archiver.verify import verify


def opened(config: Path, **store: Any) -> Setup:
    """The configured store; `store` are settings to be other than configured, such as `endpoint_url`."""
    settings = load(config)
    changed = settings.model_copy(update={"store": settings.store.model_copy(update=store)})
    return open_setup(changed, need="write")


def save(setup: Setup, path: Path, note: str = "", run: str = "r") -> Archived:
    return archive(Source(paths=(path,)), setup, options=Options(given=Given(run_id=run, note=note)))


def notes(setup: Setup, run: str = "r") -> list[str | None]:
    """What was noted with each checkpoint, oldest first."""
    return [link.record.note for link in Catalog(setup).chain(run).links]


def restored(setup: Setup, run: str = "r", at: int | None = None) -> str | None:
    """Restore a checkpoint, and give its note."""
    with tempfile.TemporaryDirectory() as folder:
        done = restore(run, setup, into=Path(folder) / "out", at=at)
        assert any((done.folder / "transcript").iterdir())
        return done.checkpoint.note


def check_whole(setup: Setup, acknowledged: Sequence[str], run: str = "r") -> list[Record]:
    """Every acknowledged save is there, and what is seen at all is whole; gives the run's records."""
    findings = list(verify(setup, run, deep=True)) if acknowledged or _begun(setup, run) else []
    bad = [(finding.object, finding.error) for finding in findings if not finding.ok]
    assert not bad, bad
    records = [link.record for link in Catalog(setup).chain(run).links] if findings else []
    found = [record.note for record in records]
    assert [note for note in found if note in acknowledged] == list(acknowledged), (found, acknowledged)
    committed = {record.bundle.name for record in records if record.bundle}
    for info in setup.store.list(layout.bundles_prefix(run)):
        if info.name not in committed:
            _opens(setup, info.name, run)
    return records


def _begun(setup: Setup, run: str) -> bool:
    return any(True for _ in setup.store.list(layout.records_prefix(run)))


def _opens(setup: Setup, name: str, run: str) -> None:
    """A bundle that no record commits is garbage, but not half of something: it opens to its end."""
    identities = setup.identities_for(run, "bundle")
    with setup.store.open(name) as source, age.unseal(identities, source, name=name) as content:
        while content.read(1 << 20):
            pass


def place(url: str) -> tuple[str, str]:
    """Bucket and prefix of an address."""
    bucket, _, prefix = url.removeprefix("s3://").partition("/")
    return bucket, prefix


def uploads(client: Any, url: str) -> list[str]:
    """Keys of the multipart uploads that were begun below `url` and neither completed nor aborted."""
    bucket, prefix = place(url)
    found = client.list_multipart_uploads(Bucket=bucket, Prefix=prefix).get("Uploads", [])
    return [upload["Key"] for upload in found]


def keys(client: Any, url: str) -> list[str]:
    """Keys of the objects below `url`, as the server lists them."""
    bucket, prefix = place(url)
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
    return [entry["Key"] for page in pages for entry in page.get("Contents", [])]
