"""Whatever is done to the objects of a store, the restorer says so by name and hands nothing over."""

from __future__ import annotations

import shutil
import tracemalloc
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from archiver import age, records, sign
from archiver.archive import Given, Options, Source, archive
from archiver.catalog import Catalog
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
    NeedsDecisionError,
    RecordError,
    StaleWriterError,
    UnsupportedSchemaError,
    UntrustedWriterError,
)
from archiver.model import Checkpoint, Effect, EffectCounts, Record
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


def unseen(setup: Setup, run: str = RUN) -> None:
    """Go on as one who has not seen the run: one who has finds a fork or a step back before anything else."""
    assert setup.witness is not None
    assert setup.store_id is not None
    setup.witness.forget(setup.store_id, run)


def variants(data: bytes, every: int) -> list[bytes]:
    """Every n-th byte flipped (another bit each), and every n-th prefix."""
    places = range(0, len(data), every)
    flipped = [data[:place] + bytes([data[place] ^ (1 << place % 8)]) + data[place + 1 :] for place in places]
    return [*flipped, *(data[:length] for length in places), data[:-1], data + b"\0"]


HOW_MANY = pytest.mark.parametrize("every", [9, pytest.param(1, marks=pytest.mark.soak)])


def overwrite(path: Path, data: bytes) -> None:
    path.unlink(missing_ok=True)
    path.write_bytes(data)


@HOW_MANY
def test_every_byte_and_prefix_of_a_bundle(setup: Setup, note: Path, tmp_path: Path, every: int) -> None:
    path = bundle_at(setup, save(setup, note))
    data = path.read_bytes()
    assert len(data) < 4000, "a small bundle keeps this test exhaustive"
    tolerated, tried = 0, variants(data, every)
    for variant in tried:
        overwrite(path, variant)
        error = restore_fails(setup, tmp_path / "out")
        assert isinstance(error, DamagedError | KeyUnavailableError), error
        tolerated += isinstance(error, KeyUnavailableError)
    assert tolerated < len(tried) / 8, "only a damaged stanza may look like somebody else's"
    overwrite(path, data)
    restore(RUN, setup, into=tmp_path / "out")


@HOW_MANY
def test_every_byte_and_prefix_of_a_record(setup: Setup, note: Path, tmp_path: Path, every: int) -> None:
    save(setup, note)
    path = record_at(setup, 1)
    data = path.read_bytes()
    for variant in variants(data, every):
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
    unseen(setup)
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
    with pytest.raises(StaleWriterError, match="key"):
        save(replace(mine, signing_key=second, writers=both), note)
    # One that does so all the same is found out.
    link = Catalog(replace(mine, writers=both)).head(RUN)
    assert link is not None
    forged = link.record.model_copy(update={"seq": 2, "previous": link.sha256, "writer": second.public})
    forge(replace(mine, signing_key=second), forged)
    error = restore_fails(replace(mine, writers=both), tmp_path / "out")
    assert isinstance(error, ChainError)
    assert "claim" in str(error)
    restore(RUN, replace(mine, writers=both), into=tmp_path / "out", at=1)


def forge(setup: Setup, record: Record, place: int | None = None) -> None:
    """Sign and put a record of a writer who may say anything, over whatever is there."""
    if record.bundle is not None:
        name = record.bundle.name.rsplit("/", 1)[1]
        bundle = record.bundle.model_copy(update={"name": f"bundles/{RUN}/{record.seq:08d}{name[8:]}"})
        record = record.model_copy(update={"bundle": bundle})
    overwrite(
        record_at(setup, place or record.seq),
        records.encode(record, setup.require_signing_key(), setup.recipients),
    )
    unseen(setup)


@pytest.mark.parametrize(
    ("lies", "kind", "exit_code"),
    [
        ({"min_reader": 99}, UnsupportedSchemaError, 5),
        ({"schema_version": 3}, UnsupportedSchemaError, 5),
        ({"schema_version": 1, "min_reader": 1}, DigestMismatchError, 4),
        ({"outcome": "succeeded"}, ContextMismatchError, 4),
        ({"task": "other"}, DigestMismatchError, 4),
        ({"kind": "claim"}, RecordError, 4),
        ({"bundle": None}, RecordError, 4),
        ({"seq": 0}, RecordError, 4),
        ({"previous": "0" * 64}, ChainError, 4),
    ],
)
def test_a_trusted_writer_that_lies(
    setup: Setup, note: Path, tmp_path: Path, lies: dict[str, object], kind: type[Exception], exit_code: int
) -> None:
    record = save(setup, note)
    forge(setup, record.model_copy(update=lies), place=1)
    error = restore_fails(setup, tmp_path / "out")
    assert isinstance(error, kind), repr(error)
    assert error.exit_code == exit_code


def test_an_effect_that_the_record_keeps_quiet(setup: Setup, tmp_path: Path) -> None:
    now = datetime.now(UTC)
    effect = Effect(key="pay", tool="bank", status="uncertain")
    made = Checkpoint(run_id=RUN, task_id="t", created_at=now, checkpoint_at=now, effects=(effect,))
    record = archive(Source(checkpoint=made), setup).record
    error = restore_fails(setup, tmp_path / "out")
    assert isinstance(error, NeedsDecisionError)
    assert "pay" in str(error)
    forge(setup, record.model_copy(update={"effects": EffectCounts()}))
    assert isinstance(restore_fails(setup, tmp_path / "out"), ContextMismatchError)


def test_an_older_checkpoint_is_restored_past_a_damaged_end(setup: Setup, note: Path, tmp_path: Path) -> None:
    save(setup, note)
    save(setup, note)
    path = record_at(setup, 2)
    overwrite(path, path.read_bytes()[:-1])
    assert "--at" in (restore_fails(setup, tmp_path / "out").remedy or "")
    done = restore(RUN, setup, into=tmp_path / "out", at=1)
    assert any("is not restored" in warning for warning in done.report.warnings)
    assert len(done.report.lost) == 1
    assert "record 2, which cannot be read" in done.report.lost[0]


def test_a_record_with_a_far_number_costs_nothing_to_refuse(setup: Setup, note: Path, tmp_path: Path) -> None:
    save(setup, note)
    overwrite(record_at(setup, 99_999_999), b"")
    tracemalloc.start()
    error = restore_fails(setup, tmp_path / "out")
    assert tracemalloc.get_traced_memory()[1] < 20_000_000
    tracemalloc.stop()
    assert isinstance(error, MissingRecordError)
    assert "2 to 99999998" in str(error)
    restore(RUN, setup, into=tmp_path / "out", at=1)


def test_a_bundle_that_nobody_signed_is_not_even_opened(
    setup: Setup, note: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sealing needs only the public recipient: such a bundle must not reach decoder or file system."""
    record = save(setup, note)
    pieces: list[bytes] = []
    sealer = age.seal(setup.recipients, pieces.append)
    sealer.write(b"a bomb")
    sealer.close()
    overwrite(bundle_at(setup, record), b"".join(pieces))

    def opened(*_: object, **__: object) -> None:
        raise AssertionError("unpacked")

    for name in ("unpack", "unpack_parts", "read_first", "read_manifest"):
        monkeypatch.setattr(f"archiver.pack.{name}", opened)
    assert isinstance(restore_fails(setup, tmp_path / "out"), DigestMismatchError)


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
