"""An export is what the store holds, byte for byte, and a store of its own; what does not hold is marked."""

from __future__ import annotations

import errno
import hashlib
import os
import resource
import stat
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from ledger.acting import act
from moto import mock_aws

from archiver import age, export, jsonio, layout
from archiver.aws.door import client
from archiver.aws.options import AwsOptions
from archiver.config import load
from archiver.errors import AlreadyExistsError, NoSuchRunError, StoreFullError, UntrustedWriterError
from archiver.model.export import Export, ExportedObject
from archiver.restore import restore
from archiver.scratch import PREFIX
from archiver.setup import Setup, fencing, initialise, open_setup
from archiver.store import open_store
from archiver.verify import verify
from e2e.auditing import RUN, command, lines, names, objects, path_of, save
from e2e.rekeying import backdate, distrusting, done, to

REGION = "us-east-1"


@pytest.fixture(autouse=True)
def configured(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARCHIVER_CONFIG", str(config))
    monkeypatch.setattr("signal.signal", lambda *_: None)


@pytest.fixture
def saved(setup: Setup, note: Path, tmp_path: Path) -> Setup:
    """A run with everything that a run can have, and one beside it."""
    for run in (RUN, RUN, "other"):
        save(setup, note, run)
    setup = to(setup, *setup.identities, age.generate())  # type: ignore[arg-type]
    done(setup, reason="a second key")
    restore(RUN, setup, into=tmp_path / "before")
    act(setup, RUN, status="confirmed")
    return setup


def of_run(setup: Setup) -> list[str]:
    return [name for name in names(setup, "") if f"/{RUN}/" in name]


def by_name(made: Export) -> dict[str, ExportedObject]:
    return {one.name: one for one in made.objects if one.file and one.file.startswith("objects/")}


def described(folder: Path) -> Export:
    return Export.model_validate(jsonio.loads((folder / layout.EXPORT).read_bytes()))


def test_every_object_of_the_run_is_copied_as_it_is(saved: Setup, tmp_path: Path, home: Path) -> None:
    there = of_run(saved)
    assert {name.split("/")[0] for name in there} == {"records", "bundles", "effects", "notes", "audit"}
    made = export.export(RUN, replace(saved, why="case 7"), into=tmp_path / "copy")
    assert described(tmp_path / "copy").document() == made.export.document()
    found = by_name(made.export)
    assert sorted(found) == sorted(there)
    for name, one in found.items():
        data = (tmp_path / "copy" / str(one.file)).read_bytes()
        assert data == path_of(saved, name).read_bytes()
        assert (one.size, one.sha256) == (len(data), hashlib.sha256(data).hexdigest())
        assert one.retention == saved.store.head(name).retention
        assert one.modified == saved.store.head(name).modified.replace(
            microsecond=one.modified.microsecond if one.modified else 0
        )
        assert one.verification == "ok", one
        assert one.signer == "own signing key"
    assert (made.export.chain, made.export.store, made.export.why) == ("verified", saved.store_id, "case 7")
    assert made.exit_code == 0
    for path in (tmp_path / "copy").rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path
    (line,) = [line for line in lines(home) if line.action == "export"]
    assert (line.run, line.why, line.detail["objects"]) == (RUN, "case 7", len(there))
    assert [one.action for one in objects(saved)] == ["rekey", "restore", "export"]


def test_the_copy_can_be_verified_and_restored_from_and_stays_as_it_is(
    saved: Setup, tmp_path: Path, config: Path
) -> None:
    export.export(RUN, saved, into=tmp_path / "copy")
    before = contents(tmp_path / "copy")
    store = ("--store", tmp_path / "copy" / "objects")
    assert command("verify", RUN, "--deep", *store).code == 0
    assert command("list", *store).rows[0][0] == RUN
    restored = command("restore", RUN, *store, "--into", tmp_path / "out")
    assert restored.code == 0
    assert "to which nothing is added" in restored.err
    assert list((tmp_path / "out" / "transcript").iterdir())
    again = command("export", RUN, *store, "--into", tmp_path / "again")
    assert again.code == 0
    assert contents(tmp_path / "copy") == before
    copies = {path: data for path, data in contents(tmp_path / "again").items() if path.suffix == ".age"}
    assert copies == {path: data for path, data in before.items() if path.suffix == ".age"}


def test_a_run_that_went_on_since_is_no_rollback_of_its_copy(
    saved: Setup, note: Path, tmp_path: Path, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was seen of the runs is told of the store; of a copy of the past it proves nothing."""
    export.export(RUN, saved, into=tmp_path / "copy", at=1)
    save(saved, note)
    store = ("--store", tmp_path / "copy" / "objects")
    for words in (
        ("verify",),
        ("verify", RUN, "--deep"),
        ("list",),
        ("restore", RUN, "--into", tmp_path / "out"),
    ):
        done = command(*words, *store)
        assert done.code == 0, done.err
        assert "this is an exported run" in done.err
        assert "records/other" not in done.out
    report = jsonio.loads((tmp_path / "out" / "report.json").read_bytes())
    assert isinstance(report, dict)
    assert report["rollback"] == "unverified"
    assert command("verify").code == 0  # and nothing of the copy is remembered


def test_a_description_beside_the_configured_store_silences_no_witness(
    saved: Setup, tmp_path: Path, note: Path
) -> None:
    (tmp_path / layout.EXPORT).write_text("{}")
    command("verify", RUN)
    path_of(saved, layout.record_name(RUN, 2)).unlink()
    refused = command("verify", RUN)
    assert (refused.code, "RolledBackError" in refused.out) == (4, True)


def contents(folder: Path) -> dict[Path, bytes]:
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_up_to_a_checkpoint(saved: Setup, tmp_path: Path) -> None:
    made = export.export(RUN, saved, into=tmp_path / "copy", at=1)
    assert made.export.chain == "verified"
    kinds = [layout.parse(one.name) for one in made.export.objects]
    assert sorted(one.kind for one in kinds if one.seq) == ["bundle", "record"]
    assert {one.kind for one in kinds} == {"record", "bundle", "effect", "note", "audit"}
    copy = open_store(str(tmp_path / "copy" / "objects"))
    restore(RUN, replace(saved, store=copy, witness=None), into=tmp_path / "out")
    with pytest.raises(NoSuchRunError):
        export.export("none", saved, into=tmp_path / "none")
    with pytest.raises(NoSuchRunError, match="no checkpoint 3"):
        export.export(RUN, saved, into=tmp_path / "none", at=3)
    assert not (tmp_path / "none").exists()


def cut(data: bytes) -> bytes:
    return data[:-1]


def changed(data: bytes) -> bytes:
    return data[:-20] + bytes([data[-20] ^ 1]) + data[-19:]


def garbage(_: bytes) -> bytes:
    return b"garbage"


def nothing(_: bytes) -> bytes:
    return b""


@pytest.mark.parametrize("damage", [cut, changed, garbage, nothing])
@pytest.mark.parametrize("kind", ["records", "bundles", "effects", "notes", "audit"])
def test_what_is_damaged_is_copied_and_marked(
    saved: Setup, tmp_path: Path, kind: str, damage: Callable[[bytes], bytes]
) -> None:
    name = [name for name in of_run(saved) if name.startswith(kind)][-1]
    path = path_of(saved, name)
    data = damage(path.read_bytes())
    path.write_bytes(data)
    made = export.export(RUN, saved, into=tmp_path / "copy")
    assert (tmp_path / "copy" / "objects" / name).read_bytes() == data
    (bad,) = made.export.damaged
    assert bad.name == name
    assert bad.said
    assert made.exit_code == 4
    assert (made.export.chain == "verified") == (kind != "records")


def test_a_bundle_that_is_gone_is_named(saved: Setup, tmp_path: Path) -> None:
    name = next(name for name in of_run(saved) if name.startswith("bundles"))
    saved.store.delete(name)
    done = command("export", RUN, "--into", tmp_path / "copy")
    assert done.code == 4
    (row,) = [row for row in done.rows if row[1] == name]
    assert row[0] == "BundleMissingError"


def test_a_gap_in_the_chain_is_exported_too(saved: Setup, tmp_path: Path) -> None:
    saved.store.delete(layout.record_name(RUN, 1))
    made = export.export(RUN, saved, into=tmp_path / "copy")
    assert made.export.chain == "MissingRecordError"
    assert made.exit_code == 4
    found = by_name(made.export)
    assert found[layout.record_name(RUN, 2)].verification == "ok"
    assert sum(name.startswith("bundles") for name in found) == 2


def test_strangers_under_the_run_are_evidence(saved: Setup, tmp_path: Path) -> None:
    name = f"{layout.bundles_prefix(RUN)}left-by-somebody"
    saved.store.create(name, [b"x"], retention="live")
    made = export.export(RUN, saved, into=tmp_path / "copy")
    assert (tmp_path / "copy" / "objects" / name).read_bytes() == b"x"
    assert by_name(made.export)[name].verification == "InvalidNameError"


def test_without_an_identity_it_is_copied_and_not_verified(
    saved: Setup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = of_run(saved)
    done = command("export", RUN, "--into", tmp_path / "copy", "-i", tmp_path / "none.txt", "--json")
    assert done.code == 0
    assert "nothing will be verified" in done.err
    assert done.json["chain"] == "not verified"
    assert {one["verification"] for one in done.json["objects"]} == {"not verified"}
    assert sorted(one["name"] for one in done.json["objects"]) == sorted(there)
    copy = replace(saved, store=open_store(str(tmp_path / "copy" / "objects")), witness=None)
    assert all(one.ok for one in verify(copy, RUN, deep=True))


def test_a_key_that_opens_nothing(saved: Setup, tmp_path: Path) -> None:
    made = export.export(RUN, replace(saved, identities=(age.generate(),)), into=tmp_path / "copy")
    assert made.exit_code == 6
    assert made.export.chain == "KeyUnavailableError"


def test_a_writer_is_judged_by_the_time_that_the_store_gave(saved: Setup, tmp_path: Path) -> None:
    """A copy made today must not make old records of a key look new, nor new ones old."""
    old = datetime(2026, 1, 1, tzinfo=UTC)
    backdate(saved, old, "records/", "bundles/")
    saved.store.delete(next(name for name in of_run(saved) if name.startswith("notes")))
    setup = distrusting(saved, old + timedelta(days=1), None)
    made = export.export(RUN, setup, into=tmp_path / "copy")
    assert made.export.chain == "verified"
    backdate(saved, old + timedelta(days=2), layout.record_name(RUN, 2))
    later = export.export(RUN, setup, into=tmp_path / "later")
    assert later.export.chain == UntrustedWriterError.__name__
    assert by_name(later.export)[layout.record_name(RUN, 1)].verification == "ok"
    assert later.exit_code == 3


def test_nothing_is_written_over_and_nothing_is_left(saved: Setup, tmp_path: Path) -> None:
    target = tmp_path / "copy"
    target.mkdir()
    (target / "mine").write_text("x")
    with pytest.raises(AlreadyExistsError) as caught:
        export.export(RUN, saved, into=target)
    assert "--force" not in (caught.value.remedy or "")
    assert contents(target) == {Path("mine"): b"x"}
    (tmp_path / "empty").mkdir()
    export.export(RUN, saved, into=tmp_path / "empty")
    assert (tmp_path / "empty" / layout.EXPORT).is_file()
    assert not list(tmp_path.rglob(f"{PREFIX}*"))


@pytest.mark.parametrize("place", ["store/copy", "store/bundles/copy", "link/copy", "store"])
def test_nothing_is_put_into_the_store_that_is_copied(saved: Setup, tmp_path: Path, place: str) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "store")
    before = names(saved, "")
    refused = command("export", RUN, "--into", tmp_path / place)
    assert (refused.code, "lies in the store" in refused.err) == (2, True)
    assert names(saved, "") == before
    kept = command("drill", "--keep", tmp_path / place)
    assert (kept.code, "--keep" in kept.err) == (2, True)
    assert names(saved, "") == before


def test_on_a_mount_times_are_kept_and_the_description_comes_last(
    saved: Setup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder that cannot be renamed into its place is copied: a copy of today is too new for some keys."""
    into = tmp_path / "mount"
    into.mkdir()
    rename, appeared = Path.rename, list[str]()

    def renaming(self: Path, target: Path) -> Path:
        if target == into:
            raise OSError(errno.EBUSY, "busy")
        if target.parent == into:
            appeared.append(target.name)
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", renaming)
    backdate(saved, datetime.now(UTC) - timedelta(days=9), layout.records_prefix(RUN))
    export.export(RUN, saved, into=into)
    assert appeared == ["objects", layout.EXPORT]
    for name in of_run(saved):
        if not name.startswith(layout.AUDIT):
            assert (into / "objects" / name).stat().st_mtime == pytest.approx(
                open_store(str(tmp_path / "store")).head(name).modified.timestamp(), abs=0.001
            )


def test_a_disk_without_room(saved: Setup, tmp_path: Path) -> None:
    name = f"{layout.bundles_prefix(RUN)}large"
    saved.store.create(name, [bytes(1 << 20)], retention="live")
    (tmp_path / "place").mkdir()

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
        with pytest.raises(StoreFullError):
            export.export(RUN, saved, into=tmp_path / "place" / "copy")
        os._exit(3)

    child = os.fork()
    if child == 0:
        try:
            limited()
        finally:
            os._exit(0)
    assert os.WEXITSTATUS(os.waitpid(child, 0)[1]) == 3
    assert list((tmp_path / "place").iterdir()) == []


def test_room_is_asked_for_before_anything_is_copied(
    saved: Setup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 1000})())
    with pytest.raises(StoreFullError, match="has 1000 left"):
        export.export(RUN, saved, into=tmp_path / "copy")
    assert os.strerror(errno.ENOSPC)
    assert [one.action for one in objects(saved)] == ["rekey", "restore"]


@pytest.fixture
def bucket(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch, note: Path
) -> Iterator[tuple[Any, Setup]]:
    """A store in a bucket that keeps versions, with a run of two checkpoints."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "A")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "S")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("ARCHIVER_STORE__REGION", REGION)
    monkeypatch.setattr(fencing, "RACERS", 1)  # the imitation lets several creators of one moment win
    with mock_aws():
        raw = client("s3", AwsOptions(region=REGION))
        raw.create_bucket(Bucket="bucket")
        raw.put_bucket_versioning(Bucket="bucket", VersioningConfiguration={"Status": "Enabled"})
        initialise("s3://bucket/p", tmp_path / "s3.toml", settings=load(), now=datetime.now(UTC))
        setup = open_setup(load(tmp_path / "s3.toml"), need="write")
        save(setup, note)
        save(setup, note)
        yield raw, setup


def test_all_versions_are_copied_with_their_ids(bucket: tuple[Any, Setup], tmp_path: Path) -> None:
    raw, setup = bucket
    record = layout.record_name(RUN, 2)
    bundle = names(setup, layout.bundles_prefix(RUN))[0]
    key = {"Bucket": "bucket", "Key": f"p/{record}"}
    original = raw.get_object(**key)["Body"].read()
    forged = raw.put_object(**key, Body=b"forged")["VersionId"]
    marker = raw.delete_object(Bucket="bucket", Key=f"p/{bundle}")["VersionId"]
    made = export.export(RUN, setup, into=tmp_path / "copy")
    found = [one for one in made.export.objects if one.name == record]
    counts, other = found
    assert (tmp_path / "copy" / "objects" / record).read_bytes() == original
    assert (counts.verification, counts.latest, counts.retention) == ("ok", False, None)
    assert (other.version, other.latest) == (forged, True)
    assert (tmp_path / "copy" / str(other.file)).read_bytes() == b"forged"
    assert other.file == f"versions/{record}/0002"
    hidden, deleted = (one for one in made.export.objects if one.name == bundle)
    assert (hidden.hidden, hidden.verification) == (True, "ok")
    assert (deleted.deleted, deleted.version, deleted.file) == (True, marker, None)
    assert made.export.chain == "verified"
    versions = [one.version for one in made.export.objects]
    assert all(versions)
    assert len(set(versions)) == len(versions)
    copy = replace(setup, store=open_store(str(tmp_path / "copy" / "objects")), witness=None)
    for at in (1, 2):
        restore(RUN, copy, into=tmp_path / f"out-{at}", at=at)


def test_a_store_over_a_network_is_exported_with_its_classes(
    bucket: tuple[Any, Setup], tmp_path: Path
) -> None:
    raw, setup = bucket
    made = export.export(RUN, setup, into=tmp_path / "copy")
    assert made.exit_code == 0
    found = by_name(made.export)
    assert sorted(found) == sorted(name for name in names(setup, "") if f"/{RUN}/" in name and name in found)
    assert {one.retention for one in found.values() if one.name.startswith("records")} == {"record"}
    for name, one in found.items():
        head = raw.head_object(Bucket="bucket", Key=f"p/{name}")
        assert (one.version, one.modified) == (head["VersionId"], head["LastModified"])
