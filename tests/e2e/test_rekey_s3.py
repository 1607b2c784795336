"""Rewriting headers on a real S3 server: new versions of the same objects, with their tags."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from servers.seaweed import Seaweed

from archiver import age, layout
from archiver.catalog import Catalog
from archiver.config import load
from archiver.errors import RefusedError, UntrustedWriterError
from archiver.restore import restore
from archiver.setup import Setup, open_setup
from archiver.sign import SigningKey

from .rekeying import RUN, broken, distrusting, done, keys_of, only, payload_of, save, sealed_objects, to
from .s3 import uploads
from .test_rekey import in_parallel

NEW, OTHER = age.generate(), age.generate()


@pytest.fixture
def saved(s3_config: Path, note: Path) -> Setup:
    setup = open_setup(load(s3_config), need="write")
    for _ in range(2):
        save(setup, note)
    return setup


def test_headers_change_and_payloads_and_tags_stay(saved: Setup, tmp_path: Path) -> None:
    before = sealed_objects(saved)
    tags = {name: saved.store.head(name).retention for name in before}
    assert done(to(saved, NEW)).rewritten == 4
    after = sealed_objects(saved)
    assert {keys_of(data) for data in after.values()} == {(NEW.fingerprint,)}
    assert {name: payload_of(data) for name, data in after.items()} == {
        name: payload_of(data) for name, data in before.items()
    }
    assert {name: saved.store.head(name).retention for name in after} == tags
    assert "live" in tags.values()
    assert broken(to(saved, NEW)) == []
    restore(RUN, only(saved, NEW), into=tmp_path / "out")
    assert done(to(saved, NEW)).notes == ()


def test_the_old_version_is_still_there_for_whoever_had_it(
    seaweed: Seaweed, make_s3_config: Callable[[Seaweed, str], Path], aws_environment: Callable[..., None],
    note: Path,
) -> None:  # fmt: skip
    """What the documents say: it revokes nothing."""
    aws_environment(seaweed, "admin")
    bucket, client = seaweed.make_bucket(), seaweed.client()
    client.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    setup = open_setup(load(make_s3_config(seaweed, f"s3://{bucket}/store")), need="write")
    save(setup, note)
    done(to(setup, NEW))
    name = f"store/{layout.record_name(RUN, 1)}"
    versions = client.list_object_versions(Bucket=bucket, Prefix=name)["Versions"]
    assert len(versions) == 2
    (old,) = (one["VersionId"] for one in versions if not one["IsLatest"])
    body = client.get_object(Bucket=bucket, Key=name, VersionId=old)["Body"]
    with body, age.unseal(setup.identities, body) as opened:
        assert opened.read().startswith(b"archiver-signed-v1")


def test_a_bundle_in_parts(s3_config: Path, tmp_path: Path, seaweed: Seaweed) -> None:
    settings = load(s3_config)
    small = settings.store.model_copy(update={"part_size": 5 << 20})
    setup = open_setup(settings.model_copy(update={"store": small}), need="write")
    noise = tmp_path / "noise.txt"
    noise.write_bytes(os.urandom(6_500_000).hex().encode())
    record = save(setup, noise)
    assert record.sizes.stored > 5 << 20
    before = sealed_objects_of(setup, record.bundle.name if record.bundle else "")
    assert done(to(setup, NEW)).rewritten == 2
    assert sealed_objects_of(setup, record.bundle.name if record.bundle else "") == before
    restored = restore(RUN, only(setup, NEW), into=tmp_path / "out").folder
    assert (restored / "transcript" / "noise.txt").stat().st_size == 13_000_000
    assert uploads(seaweed.client(), setup.store.url) == []


def sealed_objects_of(setup: Setup, name: str) -> tuple[str, int]:
    with setup.store.open(name) as source:
        return age.payload_digest(source)


def test_two_at_the_same_time_do_it_once(saved: Setup, s3_config: Path, tmp_path: Path) -> None:
    setups = [to(open_setup(load(s3_config), need="write"), NEW) for _ in range(3)]
    found, errors = in_parallel(lambda number: done(setups[number]), 3)
    assert not errors
    assert sum(one.rewritten for one in found) >= 4
    assert {keys_of(data) for data in sealed_objects(saved).values()} == {(NEW.fingerprint,)}
    assert broken(setups[0]) == []


def test_two_with_different_recipients_leave_a_store_that_holds(
    saved: Setup, s3_config: Path, tmp_path: Path
) -> None:
    def everybody() -> Setup:
        setup = open_setup(load(s3_config), need="write")
        return replace(setup, identities=(*setup.identities, NEW, OTHER))

    setups = (to(everybody(), NEW), to(everybody(), OTHER))
    _, errors = in_parallel(lambda number: done(setups[number]), 2)
    assert all(isinstance(error, RefusedError) for error in errors), errors
    assert broken(everybody()) == []
    done(setups[0])
    restore(RUN, only(everybody(), NEW), into=tmp_path / "new")


def test_the_server_says_new_and_the_note_says_old(saved: Setup) -> None:
    """A writer that is distrusted between the save and the rekey is still believed for what he saved."""
    leak = max(info.modified for info in saved.store.list("records/"))
    time.sleep(1.1)  # the server's times are whole seconds
    ops = SigningKey.generate()
    setup = replace(distrusting(to(saved, NEW), leak, ops.public), signing_key=ops)
    assert done(setup).rewritten == 4
    assert min(info.modified for info in saved.store.list("records/")) > leak
    assert Catalog(setup).chain(RUN).writer == "ci"
    for info in setup.store.list(layout.NOTES):
        setup.store.delete(info.name)
    with pytest.raises(UntrustedWriterError, match="distrusted after"):
        Catalog(setup).chain(RUN)
