"""rm and erase: what goes, what stays, what is said afterwards, and by whom it may be done."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from e2e.rekeying import at

from archiver import holding, layout, noting, spool
from archiver.cli import program
from archiver.errors import (
    ArchiverError,
    BundleMissingError,
    BundleRemovedError,
    NoSuchRunError,
    RunErasedError,
    RunHeldError,
)
from archiver.export import export
from archiver.notes import Notes
from archiver.removing import erase, look, remove
from archiver.restore import plan, restore
from archiver.setup import Setup
from archiver.verify import verify
from removing.doing import RUN, everything, save, there, with_stranger

Reopen = Callable[[], Setup]


def states(setup: Setup, run: str | None = RUN) -> dict[str, str]:
    found = [one for one in verify(setup, run) if one.object.startswith("bundles/")]
    return {str(one.seq): type(one.error).__name__ if one.error else one.state for one in found}


def test_removed_bundles_are_explained_and_later_saves_are_restored(
    setup: Setup, note: Path, tmp_path: Path
) -> None:
    everything(setup, note)
    done = remove(RUN, setup, reason="too much")
    assert there(setup, RUN, "bundle", "effect") == []
    assert done.objects == 3
    assert len(there(setup, RUN, "record")) == 2
    with pytest.raises(BundleRemovedError, match=r"removed on .* by own signing key: too much") as caught:
        restore(RUN, setup, into=tmp_path / "out")
    assert caught.value.exit_code == 9
    assert states(setup) == {"1": "removed", "2": "removed"}
    third = save(setup, note)
    assert third.seq == 3
    assert restore(RUN, setup, into=tmp_path / "out").report.seq == 3
    at(setup, third.bundle.name if third.bundle else "").unlink()
    assert states(setup) == {"1": "removed", "2": "removed", "3": "BundleMissingError"}
    with pytest.raises(BundleMissingError):
        plan(RUN, setup)


def test_a_note_that_is_not_believed_explains_no_loss(setup: Setup, note: Path) -> None:
    record = save(setup, note)
    for kind in ("remove", "erase"):
        noting.put_note(with_stranger(setup), RUN, RUN, kind, last=1)  # type: ignore[arg-type]
    at(setup, record.bundle.name if record.bundle else "").unlink()
    with pytest.raises(BundleMissingError):
        plan(RUN, setup)
    at(setup, layout.record_name(RUN, 1)).unlink()
    with pytest.raises(ArchiverError) as caught:
        plan(RUN, setup)
    assert type(caught.value).__name__ == "RolledBackError"
    (finding,) = [one for one in verify(setup) if one.object == "records/r/"]
    assert type(finding.error).__name__ == "RolledBackError"


def test_erased_means_all_of_it(setup: Setup, note: Path, reopen: Reopen) -> None:
    everything(setup, note)
    save(setup, note, "other")
    others = there(setup, "other")
    assert {name.split("/")[0] for name in there(setup)} == {
        "records", "bundles", "effects", "audit", "notes", "index",
    }  # fmt: skip
    done = erase(RUN, setup, reason="they asked")
    (left,) = there(setup)
    assert left.startswith("notes/r/")
    assert there(setup, "other") == others
    assert done.note.endswith("they asked")
    assert not [path for path in at(setup, "").rglob("*") if path.is_file() and "/r/" in str(path) and
                not str(path.relative_to(at(setup, ""))).startswith("notes/r/")]  # fmt: skip
    kinds = [one.kind for one in done.unreached]
    assert kinds.count("export") == 1
    assert kinds.count("restore") == 1
    assert "spool" in kinds
    assert "copy" in kinds
    assert setup.witness is not None
    assert setup.witness.seen(setup.require_store_id(), RUN) is None
    fresh = reopen()
    for act in (lambda: plan(RUN, fresh), lambda: list(verify(fresh, RUN)), lambda: save(fresh, note)):
        with pytest.raises(RunErasedError, match=r"erased on .* they asked") as caught:
            act()
        assert caught.value.exit_code == 9
    assert [one for one in verify(fresh) if not one.ok] == []
    again = erase(RUN, setup)
    assert (again.objects, there(setup)) == (0, [left])


def test_what_another_machine_has_seen_is_explained(
    setup: Setup, note: Path, config: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    save(setup, note)
    store = setup.require_store_id()
    assert setup.witness is not None
    seen = setup.witness.seen(store, RUN)
    assert seen is not None
    erase(RUN, setup)
    setup.witness.remember(store, RUN, seen)
    assert [one for one in verify(setup) if not one.ok] == []
    flag = ["--config", str(config)]
    assert program.run("archiver", ["list", *flag]) == 0
    for words in (["show", RUN], ["restore", RUN, "--into", str(tmp_path / "o")], ["verify", RUN],
                  ["export", RUN, "--into", str(tmp_path / "e")]):  # fmt: skip
        capsys.readouterr()
        assert program.run("archiver", [*words, *flag]) == 9, words
        assert "was erased on" in capsys.readouterr().err
    doubting = replace(setup, writers=with_stranger(setup).writers)
    assert [type(one.error).__name__ for one in verify(doubting) if one.object == "records/r/"] == [
        "RolledBackError"
    ]


def test_what_an_interrupted_erasure_left_is_told_and_goes_with_the_next(
    setup: Setup, note: Path, tmp_path: Path
) -> None:
    save(setup, note)
    noting.put_note(setup, RUN, RUN, "erase", last=1)
    with pytest.raises(RunErasedError):
        save(setup, note)
    (left,) = [one for one in verify(setup) if one.object == "records/r/"]
    assert left.state == "warning"
    assert "run `archiver erase r` again" in left.note
    for name in there(setup, RUN, "bundle"):
        setup.store.delete(name)
    with pytest.raises(RunErasedError):
        restore(RUN, setup, into=tmp_path / "out")
    erase(RUN, setup)
    assert len(there(setup)) == 1


def test_a_writer_who_cannot_read_notes_does_not_begin_the_run_anew(setup: Setup, note: Path) -> None:
    save(setup, note)
    erase(RUN, setup)
    elsewhere = replace(setup, identities=())
    with pytest.raises(RunErasedError, match="notes of administrators and no record"):
        save(elsewhere, note)
    assert len(there(setup)) == 1
    with pytest.raises(RunErasedError, match="notes of administrators and no record"):
        save(replace(setup, writers=with_stranger(setup).writers), note)


def test_the_spool_of_the_run_goes(setup: Setup, note: Path, tmp_path: Path) -> None:
    save(setup, note)
    opened = spool.open_spool(setup)
    folder = opened.folder / RUN
    (folder / "entries" / "00000002").mkdir(parents=True)
    (opened.folder / "other" / "entries").mkdir(parents=True)
    done = erase(RUN, setup)
    assert not folder.exists()
    assert (opened.folder / "other" / "entries").exists()
    assert any(one.startswith("spool ") for one in done.local)


def test_a_run_of_which_only_leavings_are_there_can_be_erased(setup: Setup, note: Path) -> None:
    setup.store.create(layout.bundle_name("stray", 1, "0" * 16), [b"x"], retention="live")
    done = erase("stray", setup)
    assert done.objects == 1
    with pytest.raises(NoSuchRunError):
        erase("nobody", setup)
    assert there(setup, "nobody") == []


def test_a_run_that_goes_on_needs_a_yes(
    setup: Setup, note: Path, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save(setup, note, outcome="running")
    flag = ["--config", str(config)]
    before = there(setup)
    for word in ("rm", "erase"):
        assert program.run("archiver", [word, RUN, *flag]) == 3
        assert "goes on" in capsys.readouterr().err
        assert program.run("archiver", [word, RUN, *flag, "--dry-run"]) == 0
        assert len(capsys.readouterr().out.splitlines()) == {"rm": 1, "erase": 5}[word]
    assert there(setup) == before
    assert program.run("archiver", ["rm", RUN, *flag, "--yes", "--reason", "x", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["objects"] == 1
    assert program.run("archiver", ["restore", RUN, *flag, "--plan"]) == 9
    assert "REMOVED" in capsys.readouterr().err
    assert program.run("archiver", ["erase", RUN, *flag, "--yes"]) == 0
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert rows[0][0] == RUN
    assert {row[0] for row in rows[1:]} == {"spool", "copy"}
    assert {name.split("/")[0] for name in there(setup)} == {"notes"}


def test_without_a_yes_nobody_is_asked_in_a_pipe(
    setup: Setup, note: Path, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save(setup, note)
    before = there(setup)
    for word in ("rm", "erase"):
        assert program.run("archiver", [word, RUN, "--config", str(config)]) == 2
    assert there(setup) == before


def test_an_export_tells_of_a_hold(setup: Setup, note: Path, tmp_path: Path) -> None:
    save(setup, note)
    holding.hold(RUN, setup, reason="a court")
    made = export(RUN, setup, into=tmp_path / "out").export
    assert any(one.startswith("on hold since") and one.endswith("a court") for one in made.remarks)


def test_two_erasures_at_once(setup: Setup, note: Path, reopen: Reopen) -> None:
    everything(setup, note)
    errors: list[BaseException] = []
    start = threading.Barrier(2)

    def one() -> None:
        mine = reopen()
        start.wait()
        try:
            erase(RUN, mine)
        except NoSuchRunError:  # the other was done before this one looked
            pass
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=one) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert {name.split("/")[0] for name in there(setup)} == {"notes"}
    assert {one.note.kind for one in Notes(setup).of(RUN)} == {"erase"}


def test_what_is_saved_meanwhile_is_erased_too_or_by_the_next(
    setup: Setup, note: Path, reopen: Reopen
) -> None:
    save(setup, note, outcome="running")
    saved: list[object] = []

    def saving() -> None:
        writer = reopen()
        for _ in range(4):
            try:
                saved.append(save(writer, note, outcome="running"))
            except ArchiverError as error:
                saved.append(error)

    thread = threading.Thread(target=saving)
    thread.start()
    erase(RUN, setup)
    thread.join()
    with pytest.raises(RunErasedError):
        save(setup, note)
    erase(RUN, setup)
    assert {name.split("/")[0] for name in there(setup)} == {"notes"}


def test_a_hold_that_comes_between_the_look_and_the_note_stops_it(
    setup: Setup, note: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(setup, note)
    inner = noting.put_note

    def overtaken(*args: object, **named: object) -> object:
        monkeypatch.setattr(noting, "put_note", inner)
        holding.hold(RUN, setup, reason="first")
        return inner(*args, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(noting, "put_note", overtaken)
    with pytest.raises(RunHeldError):
        erase(RUN, setup)
    assert len(there(setup, RUN, "bundle", "record")) == 2
    holding.release(RUN, setup)
    erase(RUN, setup)
    assert len(there(setup)) == 1


def test_what_is_looked_at_is_told(setup: Setup, note: Path) -> None:
    everything(setup, note)
    found = look(RUN, setup, "remove", datetime.now(UTC))
    assert (found.objects, found.versions, found.last) == (3, 3, 2)
    assert found.bytes == sum(setup.store.head(name).size for name in there(setup, RUN, "bundle", "effect"))
    assert not found.goes_on
