"""Everything that opens bundles opens incremental ones, and a base that is gone or changed is said."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from loop.growing import RUN, Growing, path_of, records

from archiver import bundles, export, extracting, find_credential, migrating
from archiver.archive import Options, Source, archive
from archiver.catalog import Catalog
from archiver.config import load
from archiver.drill import drill
from archiver.errors import (
    ArchiverError,
    BundleMissingError,
    DamagedError,
    DigestMismatchError,
    InputNotFoundError,
    RecordError,
)
from archiver.model import Record
from archiver.progress import Silent
from archiver.restore import plan, restore
from archiver.sampling import Sample
from archiver.setup import Setup, open_setup
from archiver.verify import verify
from e2e.auditing import command
from e2e.rekeying import done, to


@pytest.fixture
def grown(setup: Setup) -> Growing:
    """A run with a full bundle and three that are based on it, each on the one before."""
    one = Growing(setup)
    for _ in range(4):
        one.save()
    return one


def states(setup: Setup, *, deep: bool = False) -> list[str]:
    found = [one for one in verify(setup, RUN, deep=deep) if one.object.startswith("bundles/")]
    return [type(one.error).__name__ if one.error else one.state for one in found]


def test_a_restore_puts_it_together(grown: Growing, setup: Setup, tmp_path: Path) -> None:
    report = plan(RUN, setup)
    assert report.record.bundle is not None
    assert report.record.bundle.bases == (1, 2, 3)
    found = restore(RUN, setup, into=tmp_path / "into").checkpoint
    assert list(found.transcript.parts[0].items) == grown.messages


def test_an_older_one_needs_nothing_that_came_later(grown: Growing, setup: Setup, tmp_path: Path) -> None:
    for record in records(setup)[2:]:
        path_of(setup, record).unlink()
    found = restore(RUN, setup, into=tmp_path / "into", at=2).checkpoint
    assert found.note == grown.made[2].note


def test_all_that_opens_bundles_opens_these(grown: Growing, setup: Setup, tmp_path: Path) -> None:
    assert states(setup) == states(setup, deep=True) == ["ok"] * 4
    assert drill(setup, sample=Sample("100%", seed=1)).exit_code == 0
    assert migrating.of_run(RUN, setup)[1].steps == ()
    secret = "word" + "x9Kq2" * 5
    assert [held.error for held in find_credential.find(setup, secret.encode())] == [None] * 4
    sample = Sample("100%", seed=1)
    assert all(one.ok for one in verify(setup, RUN, sample=sample))


def test_an_export_has_what_it_needs(grown: Growing, setup: Setup, tmp_path: Path) -> None:
    made = export.export(RUN, setup, into=tmp_path / "copy", at=3)
    assert made.exit_code == 0
    from archiver.setup.copying import at_copy

    copy = at_copy(setup, (tmp_path / "copy" / "objects").as_uri())
    found = restore(RUN, copy, into=tmp_path / "into", at=3).checkpoint
    assert found.note == grown.made[3].note
    path_of(copy, records(setup)[0]).unlink()
    with pytest.raises(BundleMissingError, match="checkpoint 3 of run r needs checkpoint 1"):
        restore(RUN, copy, into=tmp_path / "other", at=3)


def test_after_a_rekey_it_opens_with_the_new_key(grown: Growing, setup: Setup, tmp_path: Path) -> None:
    from archiver import age

    new = age.generate()
    setup = to(setup, new)  # type: ignore[arg-type]
    done(setup, reason="another key")
    only = replace(setup, identities=(new,))  # type: ignore[arg-type]
    found = restore(RUN, only, into=tmp_path / "into").checkpoint
    assert list(found.transcript.parts[0].items) == grown.messages
    assert states(only, deep=True) == ["ok"] * 4


def test_an_archive_by_hand_is_full(grown: Growing, setup: Setup) -> None:
    made = archive(Source(checkpoint=grown.state()), setup, options=Options(capture=False))
    assert made.record.bundle is not None
    assert made.record.bundle.bases == ()


# --- bases that are gone, or are not what they were ---------------------------------------------------------


def test_a_base_that_is_gone_is_named_and_so_is_what_is_whole(
    grown: Growing, setup: Setup, tmp_path: Path
) -> None:
    path_of(setup, records(setup)[1]).unlink()
    for call in (lambda: plan(RUN, setup), lambda: restore(RUN, setup, into=tmp_path / "into")):
        with pytest.raises(BundleMissingError) as caught:
            call()
        assert "checkpoint 4 of run r needs checkpoint 2" in str(caught.value)
        assert "--at 1" in (caught.value.remedy or "")
    assert states(setup) == ["ok", "BundleMissingError", "BundleMissingError", "BundleMissingError"]
    assert restore(RUN, setup, into=tmp_path / "older", previous=True).checkpoint.note == grown.made[1].note


def test_what_needs_a_base_that_has_expired_has_expired(grown: Growing, setup: Setup) -> None:
    path_of(setup, records(setup)[1]).unlink()
    now = datetime.now(UTC) + timedelta(days=300)
    for deep in (False, True):
        found = [one for one in verify(setup, RUN, deep=deep, now=now) if one.object.startswith("bundles/")]
        assert [(one.state, one.error) for one in found] == [("ok", None), *[("expired", None)] * 3]
        assert "checkpoint 4 of run r needs checkpoint 2" in found[3].note


def test_to_look_whether_bundles_are_there_takes_no_room_on_disk(
    grown: Growing, setup: Setup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "not there"))
    assert states(setup) == ["ok"] * 4


def test_a_base_that_was_changed_is_found(grown: Growing, setup: Setup, tmp_path: Path) -> None:
    path = path_of(setup, records(setup)[0])
    data = bytearray(path.read_bytes())
    data[-20] ^= 1
    path.chmod(0o600)
    path.write_bytes(data)
    with pytest.raises(DamagedError, match="checkpoint 4 of run r needs checkpoint 1"):
        restore(RUN, setup, into=tmp_path / "into")
    assert not (tmp_path / "into").exists()
    assert states(setup) == ["ok"] * 4
    assert len([state for state in states(setup, deep=True) if state.endswith("Error")]) == 4


def test_a_base_in_the_place_of_another_is_refused(grown: Growing, setup: Setup, tmp_path: Path) -> None:
    one, two = (path_of(setup, record) for record in records(setup)[:2])
    one.chmod(0o600)
    one.write_bytes(two.read_bytes())
    with pytest.raises(DigestMismatchError):
        restore(RUN, setup, into=tmp_path / "into")


def changed(record: Record, **changes: object) -> Record:
    assert record.bundle is not None
    return record.model_copy(update={"bundle": record.bundle.model_copy(update=changes)})


Change = Callable[[list[Record]], list[Record]]


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda found: found[1:], RecordError),
        (lambda found: [changed(found[0], manifest_sha256="0" * 64), *found[1:]], DigestMismatchError),
        (lambda found: [found[0], changed(found[1], bases=()), *found[2:]], RecordError),
        (lambda found: [found[0].model_copy(update={"run": "other"}), *found[1:]], RecordError),
        (lambda found: [*found[:3], changed(found[3], bases=(1, 2))], ArchiverError),
        (lambda found: [*found[:3], changed(found[3], bases=())], ArchiverError),
        (lambda found: [changed(found[0], name=found[1].bundle.name), *found[1:]], ArchiverError),
    ],
    ids=["not verified", "another manifest", "another chain", "another run", "short", "none", "another name"],
)
def test_records_that_do_not_fit_the_chain(
    change: Change, error: type[ArchiverError], grown: Growing, setup: Setup, tmp_path: Path
) -> None:
    known = change(records(setup))
    with pytest.raises(error):
        bundles.unpack(known[-1], setup, tmp_path / "bundle", Silent(), known)


# --- single files -------------------------------------------------------------------------------------------


def test_single_files_come_out_of_the_bundle_that_has_them(
    grown: Growing, setup: Setup, tmp_path: Path
) -> None:
    found = extracting.extract(RUN, setup, ["checkpoint.json", "transcript"], into=tmp_path / "into")
    names = sorted(str(path.relative_to(tmp_path / "into")) for path in (tmp_path / "into").rglob("*.json*"))
    assert names == ["checkpoint.json", *(f"transcript/000{number}.jsonl" for number in range(1, 5))]
    assert sorted(member.path for member in found.files) == names
    lines = b"".join((tmp_path / "into" / name).read_bytes() for name in names[1:])
    assert [json.loads(line) for line in lines.splitlines()] == grown.messages


@pytest.mark.parametrize(
    ("only", "count"),
    [(["transcript/*1.jsonl"], 1), (["transcript/"], 4), (["*.jsonl"], 6), (["receipt.json"], 1)],
)
def test_what_is_meant_by_a_path(
    only: list[str], count: int, grown: Growing, setup: Setup, tmp_path: Path
) -> None:
    assert len(extracting.extract(RUN, setup, only, into=tmp_path / "into").files) == count


@pytest.mark.parametrize(
    ("only", "near"),
    [
        ("transcript/0009.jsonl", "transcript/000"),
        ("checkpoint.jso", "checkpoint.json"),
        ("zzz", "begins with"),
    ],
)
def test_what_is_not_there_is_named(
    only: str, near: str, grown: Growing, setup: Setup, tmp_path: Path
) -> None:
    with pytest.raises(InputNotFoundError, match="holds no") as caught:
        extracting.extract(RUN, setup, ["receipt.json", only], into=tmp_path / "into")
    assert near in (caught.value.remedy or "")
    assert not (tmp_path / "into").exists()


def test_a_file_does_not_need_what_it_does_not_lie_in(grown: Growing, setup: Setup, tmp_path: Path) -> None:
    """It does need the manifests: they say where it lies."""
    path = path_of(setup, records(setup)[0])
    data = bytearray(path.read_bytes())
    data[-20] ^= 1  # in its last chunk, which is its only one
    path.chmod(0o600)
    path.write_bytes(data)
    with pytest.raises(DamagedError):
        extracting.extract(RUN, setup, ["receipt.json"], into=tmp_path / "into")


@pytest.fixture
def configured(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARCHIVER_CONFIG", str(config))
    monkeypatch.setattr("signal.signal", lambda *_: None)


def test_the_command_writes_single_files(grown: Growing, configured: None, tmp_path: Path) -> None:
    into = tmp_path / "into"
    done = command(
        "restore", RUN, "--only", "receipt.json", "--only", "transcript", "--into", into, "--at", "2"
    )
    assert done.code == 0, done.err
    assert ["written", "3 files"] in [[line[0], line[1].partition(",")[0]] for line in done.rows]
    assert sorted(path.name for path in into.rglob("*.json*")) == ["0001.jsonl", "0002.jsonl", "receipt.json"]
    as_json = command("restore", RUN, "--only", "receipt.json", "--json")
    assert as_json.code == 0, as_json.err
    found = json.loads(as_json.out)
    assert (found["run"], found["seq"], [one["path"] for one in found["files"]]) == (RUN, 4, ["receipt.json"])
    assert (Path(found["folder"]) / "receipt.json").stat().st_size == found["files"][0]["size"]


@pytest.mark.parametrize("other", ["--plan", "--claim", "--force", "--network"])
def test_nothing_else_is_done_with_single_files(
    other: str, grown: Growing, configured: None, tmp_path: Path
) -> None:
    done = command("restore", RUN, "--only", "receipt.json", "--into", tmp_path / "into", other)
    assert done.code == 2
    assert "--only hands nothing over" in done.err


def test_what_is_not_there_is_an_error_of_the_command(
    grown: Growing, configured: None, tmp_path: Path
) -> None:
    done = command("restore", RUN, "--only", "recipt.json", "--into", tmp_path / "into")
    assert done.code == 2
    assert "near it: receipt.json" in done.err


def test_show_says_what_it_is_based_on(grown: Growing, configured: None) -> None:
    shown = command("show", RUN)
    assert ["bundle", "incremental, based on 3 earlier bundles"] in shown.rows
    planned = command("restore", RUN, "--plan")
    assert [row[1].partition("; ")[2] for row in planned.rows if row[0] == "size"] == [
        "the rest in 3 earlier bundles"
    ]
    assert command("verify", RUN, "--deep").code == 0


def test_the_store_on_a_server(s3_config: Path, tmp_path: Path) -> None:
    """Small bundles come whole, of a large one only the frames that are needed."""
    setup = open_setup(load(s3_config), need="write")
    one = Growing(setup, first=1_100_000)
    one.save()
    one.save()
    one.save()
    first, *rest = records(setup)
    assert first.bundle is not None
    assert len(first.bundle.frames) == 2
    assert [record.bundle.bases for record in rest if record.bundle] == [(1,), (1, 2)]
    found = restore(RUN, setup, into=tmp_path / "into").checkpoint
    assert list(found.transcript.parts[0].items) == one.messages
    extracted = extracting.extract(RUN, setup, ["effects.jsonl"], into=tmp_path / "one")
    assert [member.path for member in extracted.files] == ["effects.jsonl"]
    assert all(one.ok for one in verify(setup, RUN, deep=True))
    assert Catalog(setup).chain(RUN).newest == 3
