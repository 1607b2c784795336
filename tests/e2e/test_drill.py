"""A drill restores what it picks, keeps nothing, and says what did not come back and why."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from archiver import age, layout
from archiver.catalog import Catalog
from archiver.drill import drill, with_only
from archiver.errors import AlreadyExistsError, InputNotFoundError, NoSuchRunError, UsageError
from archiver.sampling import Sample
from archiver.scratch import PREFIX
from archiver.setup import Setup
from e2e.auditing import command, keep, lines, names, objects, path_of, save
from e2e.rekeying import to
from e2e.scanning import token

EMERGENCY = age.generate()
RUNS = ("a", "b", "c", "d")


@pytest.fixture(autouse=True)
def configured(config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Commands find the configuration; temporary files are where they can be looked for."""
    monkeypatch.setenv("ARCHIVER_CONFIG", str(config))
    monkeypatch.setattr("signal.signal", lambda *_: None)
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", None)
    return folder


@pytest.fixture
def saved(setup: Setup, note: Path) -> Setup:
    """Four runs that the own key and an emergency key open; one has two checkpoints."""
    setup = to(setup, *setup.identities, EMERGENCY)  # type: ignore[arg-type]
    for run in (*RUNS, "a"):
        save(setup, note, run)
    return replace(setup, identities=setup.identities[:1])


def bundle(setup: Setup, run: str) -> str:
    ref = Catalog(setup).chain(run).head.record.bundle
    assert ref is not None
    return ref.name


def break_bundle(setup: Setup, run: str) -> None:
    path = path_of(setup, bundle(setup, run))
    data = bytearray(path.read_bytes())
    data[-5] ^= 1
    path.write_bytes(bytes(data))


def test_the_newest_checkpoint_of_each_comes_back(saved: Setup, home: Path, configured: Path) -> None:
    before = names(saved, "")
    done = drill(saved, sample=Sample("100%"))
    assert [(one.run, one.seq, one.error) for one in done.runs] == [
        ("a", 2, None), ("b", 1, None), ("c", 1, None), ("d", 1, None),
    ]  # fmt: skip
    mine = saved.identities[0].fingerprint
    assert {one.opened_by for one in done.runs} == {mine}
    assert all(one.size > 0 and one.seconds > 0 and one.freshness for one in done.runs)
    assert (done.exit_code, done.of) == (0, 4)
    assert list(configured.iterdir()) == []
    within = {line.within for line in lines(home)[:-1]}
    assert within == {"drill"}
    assert lines(home)[-1].action == "drill"
    (entry,) = objects(saved, layout.SEVERAL_RUNS)
    assert (entry.action, entry.detail["runs"], entry.detail["run_ids"]) == ("drill", 4, list(RUNS))
    assert entry.opened == dict.fromkeys(RUNS, 1)
    assert [name for name in names(saved, "") if name not in before] == names(saved)
    assert len(names(saved)) == 1


def test_the_same_seed_picks_the_same(saved: Setup) -> None:
    first = drill(saved, sample=Sample("2", 7))
    assert [one.run for one in first.runs] == [one.run for one in drill(saved, sample=Sample("50%", 7)).runs]
    assert (len(first.runs), first.seed) == (2, 7)
    said = command("drill", "--sample", "2", "--seed", "7")
    assert [row[1] for row in said.rows] == [one.run for one in first.runs]
    assert "--seed 7" in said.err


def test_what_is_damaged_is_found_and_the_rest_is_restored(saved: Setup) -> None:
    break_bundle(saved, "b")
    done = command("drill", "--sample", "100%", "--json")
    assert done.code == 4
    document = done.json
    assert [one["verdict"] for one in document["runs"]] == ["ok", "DigestMismatchError", "ok", "ok"]
    assert document["runs"][1]["error"]["exit_code"] == 4
    (entry,) = objects(saved, layout.SEVERAL_RUNS)
    assert entry.detail["failed"] == 1


def test_a_record_that_is_gone_and_one_that_is_forged(saved: Setup) -> None:
    saved.store.delete(layout.record_name("a", 1))
    path_of(saved, layout.record_name("c", 1)).write_bytes(b"garbage")
    done = command("drill", "--sample", "4")
    assert done.code == 4
    assert [row[0] for row in done.rows] == ["MissingRecordError", "ok", "HeaderError", "ok"]


def test_the_emergency_key_alone_opens(saved: Setup, home: Path, tmp_path: Path) -> None:
    path = keep(tmp_path / "emergency.txt", EMERGENCY)
    done = command("drill", "--sample", "100%", "--break-glass", path, "--because", "yearly", "--json")
    assert done.code == 0
    assert {one["opened_by"] for one in done.json["runs"]} == {EMERGENCY.fingerprint}
    assert all(one["break_glass"] for one in done.json["runs"])
    assert done.err.count("BREAK-GLASS") == 1
    assert all(line.break_glass and line.why == "yearly" for line in lines(home))
    (entry,) = objects(saved, layout.SEVERAL_RUNS)
    assert (entry.break_glass, entry.opened_by) == (True, EMERGENCY.fingerprint)


def test_the_own_key_does_not_help_an_emergency_key_that_opens_nothing(saved: Setup, tmp_path: Path) -> None:
    wrong = keep(tmp_path / "wrong.txt", age.generate())
    done = command("drill", "--sample", "2", "--break-glass", wrong)
    assert done.code == 6
    assert {row[0] for row in done.rows} == {"KeyUnavailableError"}
    assert "next:" in done.err
    assert command("drill", "--break-glass", tmp_path / "none.txt").code == 6
    assert command("drill", "--break-glass", wrong, "-i", wrong).code == 2


def test_keys_of_a_service_are_no_emergency_keys(saved: Setup) -> None:
    alone = with_only(saved, [EMERGENCY])
    assert alone.identities == (EMERGENCY,)
    assert EMERGENCY.fingerprint in alone.settings.keys.break_glass


def test_what_was_restored_stays_where_it_was_asked_for(saved: Setup, tmp_path: Path) -> None:
    done = drill(saved, sample=Sample("100%"), keep=tmp_path / "kept")
    assert sorted(path.name for path in (tmp_path / "kept").iterdir()) == [f"run-{run}" for run in RUNS]
    assert (tmp_path / "kept" / "run-a" / "report.json").is_file()
    assert done.exit_code == 0
    with pytest.raises(AlreadyExistsError) as caught:
        drill(saved, sample=Sample("100%"), keep=tmp_path / "kept")
    assert caught.value.remedy == "choose another folder with --keep"
    with pytest.raises(InputNotFoundError):
        drill(saved, sample=Sample("100%"), keep=tmp_path / "archiver.toml" / "below")


def test_nothing_of_the_plaintext_stays_after_a_failure(
    saved: Setup, note: Path, configured: Path, tmp_path: Path
) -> None:
    word = "plain" + token()[4:]
    note.write_text(f"{word[:20]}\n")
    save(saved, note, "e")
    break_bundle(saved, "b")
    left: list[Path] = []
    done = drill(saved, sample=Sample("100%"), told=lambda _: left.extend(configured.rglob("run-*")))
    assert done.exit_code == 4
    assert left == []  # a run takes room only as long as it is looked at
    assert list(configured.iterdir()) == []
    assert not list(tmp_path.rglob(f"{PREFIX}*"))


def test_hostile_names_of_runs(saved: Setup, note: Path, tmp_path: Path) -> None:
    for run in ("../up", ".", "-x", "a\u202eb"):
        save(saved, note, run)
    done = drill(saved, sample=Sample("100%"), keep=tmp_path / "kept")
    assert done.exit_code == 0
    assert len(list((tmp_path / "kept").iterdir())) == 8
    assert "\u202e" not in command("drill", "--sample", "100%").out


def test_an_empty_store_and_no_sample(setup: Setup) -> None:
    with pytest.raises(NoSuchRunError):
        drill(setup, sample=Sample("5%"))
    assert command("drill").code == 9
    for size in ("0", "101%", "x", "-1"):
        with pytest.raises(UsageError):
            Sample(size)
        assert command("drill", f"--sample={size}").code == 2


def test_a_checkpoint_that_is_stale_does_not_fail(saved: Setup) -> None:
    freshness = saved.settings.freshness.model_copy(update={"max_age": timedelta(microseconds=1)})
    settings = saved.settings.model_copy(update={"freshness": freshness})
    done = drill(replace(saved, settings=settings), sample=Sample("100%"))
    assert done.exit_code == 0
    assert all(dict(one.freshness).get("STALE") for one in done.runs)


def test_a_resource_that_changed_is_told_and_fails_nothing(
    setup: Setup, note: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Served(BaseHTTPRequestHandler):
        tag = "one"

        def do_HEAD(self) -> None:
            self.send_response(200)
            self.send_header("ETag", f'"{self.tag}"')
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nothing is printed."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Served)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        host = f"127.0.0.1:{server.server_port}"
        watched = (f"http://{host}/prices",)
        fresh = setup.settings.freshness.model_copy(update={"hosts": (host,), "watch": watched})
        setup = replace(setup, settings=setup.settings.model_copy(update={"freshness": fresh}))
        save(setup, note, "a")
        Served.tag = "two"
        result = drill(setup, sample=Sample("1"))
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    (one,) = result.runs
    assert one.error is None
    assert dict(one.freshness).get("STALE") == 1, one
