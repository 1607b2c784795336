"""Whatever is done to the objects of a store, the restorer says so by name and hands nothing over."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from archiver import age, sign
from archiver.archive import Given, Options, Source, archive
from archiver.errors import (
    ArchiverError,
    BundleMissingError,
    ChainError,
    ContainerError,
    ContextMismatchError,
    DamagedError,
    DigestMismatchError,
    KeyUnavailableError,
    LimitExceededError,
    MissingRecordError,
    UntrustedWriterError,
)
from archiver.model import Record
from archiver.restore import plan, restore
from archiver.scratch import PREFIX
from archiver.setup import Setup
from archiver.verify import verify

RUN = "r"


def save(setup: Setup, path: Path, run: str = RUN) -> Record:
    return archive(Source(paths=(path,)), setup, options=Options(given=Given(run_id=run))).record


def at(setup: Setup, name: str) -> Path:
    return Path(setup.store.url.removeprefix("file://")) / name


def record_at(setup: Setup, seq: int, run: str = RUN) -> Path:
    return at(setup, f"records/{run}/{seq:08d}.age")


def bundle_at(setup: Setup, record: Record) -> Path:
    assert record.bundle is not None
    return at(setup, record.bundle.name)


def restore_fails(setup: Setup, into: Path, run: str = RUN, seq: int | None = None) -> ArchiverError:
    """The error of a restore, and the proof that it left nothing behind."""
    with pytest.raises(ArchiverError) as caught:
        restore(run, setup, into=into, at=seq)
    assert not into.exists()
    assert not [path for path in into.parent.iterdir() if path.name.startswith(PREFIX)]
    return caught.value


def variants(data: bytes) -> list[bytes]:
    """Every byte flipped (another bit each), and every prefix."""
    flipped = [
        data[:place] + bytes([data[place] ^ (1 << place % 8)]) + data[place + 1 :]
        for place in range(len(data))
    ]
    return flipped + [data[:length] for length in range(len(data))] + [data + b"\0"]


def overwrite(path: Path, data: bytes) -> None:
    path.unlink(missing_ok=True)
    path.write_bytes(data)


def test_every_byte_and_prefix_of_a_bundle(setup: Setup, note: Path, tmp_path: Path) -> None:
    path = bundle_at(setup, save(setup, note))
    data = path.read_bytes()
    assert len(data) < 4000, "a small bundle keeps this test exhaustive"
    tolerated = 0
    for variant in variants(data):
        overwrite(path, variant)
        error = restore_fails(setup, tmp_path / "out")
        assert isinstance(error, DamagedError | KeyUnavailableError), error
        tolerated += isinstance(error, KeyUnavailableError)
    assert tolerated < len(data) / 4, "only a damaged stanza may look like somebody else's"
    overwrite(path, data)
    restore(RUN, setup, into=tmp_path / "out")


def test_every_byte_and_prefix_of_a_record(setup: Setup, note: Path, tmp_path: Path) -> None:
    save(setup, note)
    path = record_at(setup, 1)
    data = path.read_bytes()
    for variant in variants(data):
        overwrite(path, variant)
        error = restore_fails(setup, tmp_path / "out")
        assert isinstance(error, ContainerError | KeyUnavailableError), error
    overwrite(path, data)
    restore(RUN, setup, into=tmp_path / "out")


def test_two_bundles_swapped(setup: Setup, note: Path, tmp_path: Path) -> None:
    first, second = bundle_at(setup, save(setup, note)), bundle_at(setup, save(setup, note))
    one, two = first.read_bytes(), second.read_bytes()
    overwrite(first, two)
    overwrite(second, one)
    for seq in (1, 2):
        assert isinstance(restore_fails(setup, tmp_path / "out", seq=seq), DigestMismatchError)


def test_a_bundle_of_another_run(setup: Setup, note: Path, tmp_path: Path) -> None:
    mine, other = bundle_at(setup, save(setup, note)), bundle_at(setup, save(setup, note, "other"))
    overwrite(mine, other.read_bytes())
    assert isinstance(restore_fails(setup, tmp_path / "out"), DigestMismatchError)


def test_two_records_swapped(setup: Setup, note: Path, tmp_path: Path) -> None:
    save(setup, note)
    save(setup, note)
    first, second = record_at(setup, 1), record_at(setup, 2)
    one, two = first.read_bytes(), second.read_bytes()
    overwrite(first, two)
    overwrite(second, one)
    assert isinstance(restore_fails(setup, tmp_path / "out"), ContextMismatchError)


def test_a_record_of_another_run(setup: Setup, note: Path, tmp_path: Path) -> None:
    save(setup, note)
    save(setup, note, "other")
    overwrite(record_at(setup, 1), record_at(setup, 1, "other").read_bytes())
    assert isinstance(restore_fails(setup, tmp_path / "out"), ContextMismatchError)


def test_a_record_replayed_under_the_next_number(setup: Setup, note: Path, tmp_path: Path) -> None:
    save(setup, note)
    shutil.copy(record_at(setup, 1), record_at(setup, 2))
    assert isinstance(restore_fails(setup, tmp_path / "out"), ContextMismatchError)


def test_a_record_of_an_older_life_of_the_run(setup: Setup, note: Path, tmp_path: Path) -> None:
    """The run was begun twice; the second record of the first life does not follow the new first one."""
    save(setup, note)
    save(setup, note)
    old = record_at(setup, 2).read_bytes()
    shutil.rmtree(record_at(setup, 1).parent)
    save(setup, note)
    overwrite(record_at(setup, 2), old)
    assert isinstance(restore_fails(setup, tmp_path / "out"), ChainError)


def test_a_record_deleted_in_the_middle(setup: Setup, note: Path, tmp_path: Path) -> None:
    for _ in range(3):
        save(setup, note)
    record_at(setup, 2).unlink()
    error = restore_fails(setup, tmp_path / "out")
    assert isinstance(error, MissingRecordError)
    assert "record 2" in str(error)


def test_a_bundle_deleted(setup: Setup, note: Path, tmp_path: Path) -> None:
    bundle_at(setup, save(setup, note)).unlink()
    assert isinstance(restore_fails(setup, tmp_path / "out"), BundleMissingError)
    assert [type(finding.error) for finding in verify(setup, RUN) if not finding.ok] == [BundleMissingError]


def test_a_run_from_another_store(setup: Setup, note: Path, tmp_path: Path) -> None:
    """The same keys, another store: a run copied over is not accepted."""
    from datetime import UTC, datetime

    from archiver.config import load
    from archiver.setup import initialise, open_setup

    config = tmp_path / "other.toml"
    initialise(str(tmp_path / "other"), config, settings=load(), now=datetime.now(UTC))
    other = open_setup(load(config), need="write")
    save(other, note)
    for folder in ("records", "bundles"):
        shutil.copytree(at(other, folder), at(setup, folder), dirs_exist_ok=True)
    assert isinstance(restore_fails(setup, tmp_path / "out"), ContextMismatchError)


def test_a_writer_nobody_trusts(reopen: Callable[[], Setup], note: Path, tmp_path: Path) -> None:
    """Sealing needs no secret: whoever can write to the store can seal and sign, with a key of their own."""
    from dataclasses import replace

    from archiver.writers import Writers

    stranger = sign.SigningKey.generate()
    forged = replace(reopen(), signing_key=stranger, writers=Writers.load(None, own=stranger.public))
    save(forged, note)
    error = restore_fails(reopen(), tmp_path / "out")
    assert isinstance(error, UntrustedWriterError)
    assert stranger.public in (error.remedy or "")


def test_a_trusted_writer_cannot_continue_anothers_run(
    reopen: Callable[[], Setup], note: Path, tmp_path: Path
) -> None:
    from dataclasses import replace

    from archiver.writers import Writer, Writers

    mine = reopen()
    second = sign.SigningKey.generate()
    both = Writers(
        (Writer(name="a", key=mine.require_signing_key().public), Writer(name="b", key=second.public))
    )
    save(replace(mine, writers=both), note)
    save(replace(mine, signing_key=second, writers=both), note)
    error = restore_fails(replace(mine, writers=both), tmp_path / "out")
    assert isinstance(error, ChainError)
    assert "claim" in str(error)


def test_a_wrong_key_says_which_would_open_it(setup: Setup, note: Path, tmp_path: Path) -> None:
    from dataclasses import replace

    save(setup, note)
    stranger = replace(setup, identities=(age.generate(),))
    error = restore_fails(stranger, tmp_path / "out")
    assert isinstance(error, KeyUnavailableError)
    assert error.exit_code == 6
    assert error.fingerprints == tuple(recipient.fingerprint for recipient in setup.recipients)
    assert error.fingerprints[0] in str(error)


def test_a_bundle_past_the_restorers_limit(setup: Setup, tmp_path: Path) -> None:
    """Twenty megabytes of zeros take a few kilobytes in the store; the limit speaks before the disk fills."""
    from dataclasses import replace

    bomb = tmp_path / "zeros.txt"
    bomb.write_bytes((b"0" * 99 + b"\n") * 200_000)
    record = save(setup, bomb)
    assert record.sizes.stored < 100_000
    limits = setup.settings.limits.model_copy(update={"bundle": 1 << 20})
    small = replace(setup, settings=setup.settings.model_copy(update={"limits": limits}))
    assert isinstance(restore_fails(small, tmp_path / "out"), LimitExceededError)


def test_strangers_in_the_store_are_reported(setup: Setup, note: Path) -> None:
    save(setup, note)
    at(setup, "records/r/junk").write_bytes(b"x")
    assert plan(RUN, setup).seq == 1
    assert [finding.object for finding in verify(setup) if not finding.ok] == ["records/r/junk"]
