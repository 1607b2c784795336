"""Sweeps into a folder: each content once, whoever looks, whatever is remembered, wherever it is killed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import inside
import pytest
from spool.making import Hand

from archiver.archive import Given, Options, Source, archive
from archiver.catalog import Catalog
from archiver.config import load
from archiver.errors import ArchiverError, InvalidNameError, StoreUnreachableError, UnconfirmedError
from archiver.restore import restore
from archiver.setup import Setup, open_setup
from archiver.sign import SigningKey
from archiver.store.decorated import Decorated
from archiver.sweep.locking import alone
from archiver.sweep.state import FILE_NAME, folder, forget, open_state
from archiver.verify import verify
from e2e.sweeping import numbers, objects, run_of, session, swept, with_sources, written

HERE = Path(__file__).parent
ROLLOUT = [
    {"type": "session_meta", "payload": {"id": "01998f00-0000-7000-8000-000000000001", "cwd": "/nowhere"}},
    {"type": "response_item", "payload": {"type": "message", "role": "user", "content": []}},
]


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    return tmp_path / "projects"


def memory(setup: Setup) -> Path:
    assert setup.store_id is not None
    return folder(setup.settings, setup.store_id) / FILE_NAME


def test_runs_of_every_kind_are_archived_once(setup: Setup, runs: Path, tmp_path: Path) -> None:
    claude = session(runs)
    lines = [{"timestamp": "2026-01-02T03:04:05.000Z", **line} for line in ROLLOUT]
    written(
        tmp_path / "codex/sessions/2026/01/02/rollout-2026-01-02T03-04-05-01998f00.jsonl",
        "".join(json.dumps(line) + "\n" for line in lines),
    )
    messages = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "hello, too"}]
    written(tmp_path / "messages/one.json", json.dumps({"model": "claude-x", "messages": messages}))
    own = tmp_path / "own/job-7"
    written(own / "log.txt", "what happened\n")
    manifest = {"format": 1, "run": "job-7", "task": "night", "transcript": ["log.txt"], "outcome": "failed"}
    written(own / "archiver-run.json", json.dumps(manifest))
    places = (("claude-code", runs), ("codex", tmp_path / "codex"))
    places += (("messages", tmp_path / "messages"), ("folder", tmp_path / "own"))

    first = swept(setup, *places)
    assert first.total.archived == 4, first
    assert first.report.exit_code == 0
    before = objects(setup)
    second = swept(setup, *places)
    assert (second.total.unchanged, second.total.archived, second.rows) == (4, 0, [])
    assert objects(setup) == before
    head = Catalog(setup).head("job-7")
    assert head is not None
    assert (head.record.outcome, head.record.task, head.record.retention) == ("failed", "night", "failure")
    assert head.record.source is not None
    assert head.record.source.kind == "folder"
    back = restore(run_of(claude), setup, into=tmp_path / "back", accept=("age",))
    assert b"Rename table 1" in (back.folder / "transcript" / claude.name).read_bytes()


def test_a_run_that_grew_gets_its_next_number(setup: Setup, runs: Path) -> None:
    path = session(runs, turns=1)
    swept(setup, ("claude-code", runs))
    session(runs, turns=2, age=1)
    waiting = swept(setup, ("claude-code", runs))
    assert (waiting.total.waiting, waiting.report.exit_code) == (1, 0)
    assert numbers(setup) == {run_of(path): [1]}
    session(runs, turns=2)
    assert swept(setup, ("claude-code", runs)).total.archived == 1
    assert numbers(setup) == {run_of(path): [1, 2]}


def test_what_was_only_touched_is_not_saved_again(setup: Setup, runs: Path) -> None:
    session(runs)
    swept(setup, ("claude-code", runs))
    before = objects(setup)
    session(runs, age=3 * 86_400)
    again = swept(setup, ("claude-code", runs))
    assert (again.total.unchanged, again.total.archived) == (1, 0)
    assert objects(setup) == before


@pytest.mark.parametrize("how", ["lost", "damaged", "of another release"])
def test_without_its_memory_nothing_is_uploaded_again(setup: Setup, runs: Path, how: str) -> None:
    """Two files tell of one run, and the older of them is not the newest record."""
    session(runs, turns=1)
    longer = session(runs, turns=3)
    longer.rename(longer.with_name("copy.jsonl"))
    session(runs, turns=1)
    session(runs, number=2)
    assert swept(setup, ("claude-code", runs)).total.archived == 3
    before, path = objects(setup), memory(setup)
    if how == "lost":
        path.unlink()
    elif how == "damaged":
        path.write_bytes(b"\0" * 9000)
    else:
        state = open_state(replace(setup, settings=with_sources(setup.settings)))
        state.do("pragma user_version = 99")
        state.close()
    again = swept(setup, ("claude-code", runs))
    assert (again.total.unchanged, again.total.archived, again.report.exit_code) == (3, 0, 0), again
    assert objects(setup) == before
    assert bool(again.report.warnings) == (how != "lost")


def test_one_bad_run_does_not_stop_the_others(setup: Setup, runs: Path, tmp_path: Path) -> None:
    session(runs)
    own = tmp_path / "own"
    written(own / "bad/archiver-run.json", json.dumps({"format": 1, "run": "x", "transcript": ["../../x"]}))
    written(own / "newer/archiver-run.json", json.dumps({"format": 2, "run": "y", "transcript": ["t"]}))
    done = swept(setup, ("folder", own), ("claude-code", runs))
    assert (done.total.archived, done.total.failed) == (1, 2)
    assert done.report.exit_code == 4, "what is wrong with a run is no wrong call"
    again = swept(setup, ("folder", own), ("claude-code", runs))
    assert (again.total.failed, again.total.failed_before, again.report.exit_code) == (0, 2, 0)
    assert [row.what for row in again.report.rows] == ["failed-before"] * 2
    written(own / "bad/archiver-run.json", json.dumps({"format": 1, "run": "x", "transcript": ["../../y"]}))
    changed = swept(setup, ("folder", own))
    assert (changed.total.failed, changed.report.exit_code) == (1, 4)
    gone = [swept(setup, ("folder", runs.parent / "nowhere")).report.exit_code for _ in range(2)]
    assert gone == [2, 2], "a source that is not there counts each time"


@pytest.mark.parametrize("run", ["a\nb", "é" * 128], ids=["control", "long"])
def test_an_id_that_names_no_object_is_said_once(run: str, setup: Setup, tmp_path: Path) -> None:
    folder = own_run(tmp_path / "own", run, "one")
    for dry_run in (True, False):
        done = swept(setup, ("folder", folder.parent), dry_run=dry_run)
        assert [type(error) for _, error in done.report.errors] == [InvalidNameError]
        assert (done.total.failed, done.report.exit_code) == (1, 4), "it is no wrong call"
    for dry_run in (True, False):
        again = swept(setup, ("folder", folder.parent), dry_run=dry_run)
        assert (again.total.failed_before, again.report.exit_code) == (1, 0), again
    own_run(folder, "good", "one")
    assert swept(setup, ("folder", folder.parent)).total.archived == 1


def test_what_is_passed_over_is_said_once(config: Path, setup: Setup, tmp_path: Path) -> None:
    notes = written(tmp_path / "messages/notes.txt", "no transcript")
    arguments = ("sweep", "--config", config, "--source", f"messages={tmp_path / 'messages'}")
    first = inside.command(*arguments)
    assert [(row[0], row[6], row[7]) for row in first.rows] == [("passed", str(notes), "it is no JSON")]
    assert inside.command(*arguments).rows == []
    assert "PASSED" in inside.command(*arguments, terminal=True, columns=200).out
    written(notes, "other words")
    assert [row[0] for row in inside.command(*arguments).rows] == ["passed"]


def test_an_error_is_said_once_with_one_next_step(config: Path, setup: Setup, tmp_path: Path) -> None:
    own = tmp_path / "own"
    written(own / "archiver-run.json", '{"run": "x", "transcript": ["t"]}')
    nowhere = tmp_path / "nowhere"
    arguments = ("--source", f"folder={own}", "--source", f"codex={nowhere}")
    bad = inside.command("sweep", "--config", config, *arguments)
    assert bad.code == 4
    manifest, first, missing, second = bad.err.splitlines()[-4:]
    assert manifest.count(str(own)) == missing.count(str(nowhere)) == 1
    assert "correct its archiver-run.json" in first
    assert "behind KIND=" in second
    assert inside.command("sweep", "--config", config, "--source", f"codes={own}").code == 2
    done = inside.command("sweep", "--config", config, *arguments, "--json").json
    assert {one["path"]: one["failed_before"] for one in done["sources"]} == {str(own): 1, str(nowhere): 0}
    names = [(one["event"], one["source"], one["path"]) for one in done["runs"]]
    assert names == [("failed-before", "folder", str(own)), ("failed", "codex", str(nowhere))]


# --- whose run it is ---


def own_run(folder: Path, run: str, text: str, **said: str) -> Path:
    written(folder / "t.txt", text)
    manifest = {"format": 1, "run": run, "transcript": ["t.txt"], "outcome": "succeeded", **said}
    return written(folder / "archiver-run.json", json.dumps(manifest)).parent


@pytest.mark.parametrize("blind", [False, True])
def test_the_first_folder_that_was_archived_keeps_its_run(setup: Setup, tmp_path: Path, blind: bool) -> None:
    own = tmp_path / "own"
    setup = replace(setup, identities=()) if blind else setup
    stranger, first = own_run(own / "b", "job", "stranger"), own_run(own / "a", "job", "first")
    done = swept(setup, ("folder", own), retention=False)
    assert [(row.what, row.key) for row in done.rows] == [
        ("archived", str(first)),
        ("refused", str(stranger)),
    ]
    ((_, error),) = done.report.errors
    assert str(first) in str(error)
    assert str(stranger) in str(error)
    assert done.report.exit_code == 3
    again = swept(setup, ("folder", own), retention=False)
    assert (again.total.unchanged, again.total.refused, again.report.exit_code) == (1, 1, 0)
    own_run(own / "0", "job", "another stranger")
    own_run(own / "a", "job", "first, and more")
    grown = swept(setup, ("folder", own), retention=False)
    assert [(row.what, Path(row.key).name) for row in grown.rows] == [("refused", "0"), ("archived", "a")]


@pytest.mark.parametrize("kind", ["by hand", "claude-code", "messages"])
def test_a_folder_takes_over_no_run_of_another_kind(
    setup: Setup, runs: Path, tmp_path: Path, note: Path, kind: str
) -> None:
    path = session(runs)
    run = "by-hand" if kind == "by hand" else run_of(path)
    if kind == "by hand":
        archive(Source(paths=(note,)), setup, options=Options(given=Given(run_id=run, outcome="failed")))
    else:
        assert swept(setup, (kind, runs)).total.archived == 1
    own_run(tmp_path / "own", run, "what a stranger says")
    before = objects(setup)
    for dry_run, code in ((True, 3), (False, 3), (False, 0)):
        done = swept(setup, ("folder", tmp_path / "own"), dry_run=dry_run)
        assert (done.total.refused, done.report.exit_code) == (1, code), done
    assert objects(setup) == before


def test_a_session_goes_on_with_what_was_saved_of_it_by_hand(setup: Setup, runs: Path, note: Path) -> None:
    path, other = session(runs), session(runs, 2)
    archive(Source(paths=(path,)), setup, options=Options(given=Given(run_id=run_of(path))))
    archive(Source(paths=(note,)), setup, options=Options(given=Given(run_id=run_of(other))))
    session(runs, turns=2)
    done = swept(setup, ("claude-code", runs))
    assert (done.of("archived"), done.of("refused")) == ([run_of(path)], [run_of(other)])


def test_a_bug_in_one_run_is_said_and_the_others_go_on(
    setup: Setup, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad, good = session(runs, 1), session(runs, 2)
    from archiver.sweep import content

    whole = content.reference

    def reference(found, setup):
        if found.key == str(bad):
            raise ZeroDivisionError("oh")
        return whole(found, setup)

    monkeypatch.setattr(content, "reference", reference)
    done = swept(setup, ("claude-code", runs))
    assert done.of("archived") == [run_of(good)]
    assert [str(error) for _, error in done.report.errors] == ["this is a bug: ZeroDivisionError: oh"]


def test_a_store_that_is_away_is_not_asked_for_every_run(setup: Setup, runs: Path) -> None:
    for number in range(12):
        session(runs, number)
    asked = []

    class Away(Decorated):
        def list(self, prefix: str = ""):
            asked.append(prefix)
            raise StoreUnreachableError("away")

    away = replace(setup, store=Away(setup.store))
    done = swept(away, ("claude-code", runs), retention=False)
    assert done.report.exit_code == 8
    assert done.total.failed in range(3, 7), done
    assert done.total.failed + done.total.waiting == 12
    assert swept(setup, ("claude-code", runs)).total.archived == 12


def test_a_dry_run_changes_nothing(config: Path, setup: Setup, runs: Path) -> None:
    new, old = session(runs, 1), session(runs, 2)
    shutil.move(new, runs / "aside")
    swept(setup, ("claude-code", runs))
    shutil.move(runs / "aside", new)
    session(runs, 3, age=5)
    everything = (config.parent,)

    def state() -> dict[str, tuple[int, int]]:
        found = [
            path for place in everything for path in place.rglob("*") if "archiver/redact" not in str(path)
        ]
        return {str(path): (path.stat().st_mtime_ns, path.stat().st_size) for path in found if path.is_file()}

    before = state()
    said = inside.command("sweep", "--dry-run", "--config", config, "--source", f"claude-code={runs}")
    assert said.code == 0, said.err
    rows = {row[6]: row for row in said.rows}
    assert [rows[str(path)][0] for path in (new, old)] == ["would-archive", "unchanged"]
    assert rows[str(new)][1:4] == [run_of(new), "1", "succeeded"]
    assert [row[0] for row in said.rows].count("waiting") == 1
    assert state() == before


def test_one_sweep_at_a_time(config: Path, setup: Setup, runs: Path) -> None:
    session(runs)
    arguments = ("sweep", "--config", config, "--source", f"claude-code={runs}", "--json")
    with alone(setup):
        refused = inside.command(*arguments)
        assert refused.code == 3
        error = refused.json["error"]
        assert (error["type"], error["pid"]) == ("SweepRunningError", os.getpid())
        assert error["since"] in error["message"]
        assert inside.command(*arguments, "--wait", "1s").code == 3
        free = inside.command(*arguments, "--if-free")
        assert (free.code, free.json["at_work"]["pid"]) == (0, os.getpid())
        assert len(free.err.splitlines()) == 1
    done = inside.command(*arguments)
    assert (done.code, done.json["total"]["archived"]) == (0, 1)
    assert inside.command(*arguments, "--wait", "soon").code == 2


def test_what_a_sweep_says_and_logs(config: Path, setup: Setup, runs: Path, tmp_path: Path) -> None:
    password = "hunter" + "-2-" + os.urandom(9).hex()
    os.environ["SWEEP_TEST_PASSWORD"] = password
    try:
        path = session(runs / password)
        log = tmp_path / "log.jsonl"
        log.write_text('{"torn":')
        arguments = ("sweep", "--config", config, "--source", f"claude-code={runs / password}", "--log", log)
        line = inside.command(*arguments)
    finally:
        del os.environ["SWEEP_TEST_PASSWORD"]
    assert line.rows[0][:4] == ["archived", run_of(path), "1", "succeeded"]
    torn, *lines = log.read_text().splitlines()
    assert torn == '{"torn":'
    events = [json.loads(one) for one in lines]
    assert [one["event"] for one in events] == ["begin", "archived", "end"]
    assert len({one["sweep"] for one in events}) == 1
    assert (events[1]["run"], events[1]["source"]) == (run_of(path), "claude-code")
    assert all(one["time"].endswith("Z") for one in events)
    assert events[1]["bytes"] > 0
    assert password not in log.read_text()
    table = inside.command(*arguments, terminal=True)
    assert "UNCHANGED" in table.out
    assert "0 runs archived" in table.out
    assert "0 objects" not in table.out
    assert len(log.read_text().splitlines()) == 6


def test_the_log_that_cannot_be_written_is_an_error_before_anything_is_done(
    config: Path, setup: Setup, runs: Path
) -> None:
    session(runs)
    full = inside.command(
        "sweep", "--config", config, "--source", f"claude-code={runs}", "--log", "/dev/full"
    )
    assert full.code == 8
    assert "the log of sweeps" in full.err
    assert numbers(setup) == {}


def test_a_run_of_another_writer_is_refused(setup: Setup, runs: Path, tmp_path: Path) -> None:
    path = session(runs)
    other = replace(setup, signing_key=SigningKey.generate())
    archive(Source(paths=(path,)), other, options=Options(given=Given(outcome="running")))
    own, theirs = setup.require_signing_key().public, other.require_signing_key().public
    trusted = tmp_path / "writers.toml"
    entry = '[[writer]]\nname = "{}"\nkey = "{}"\nruns = "*"\n'
    trusted.write_text(entry.format("own", own) + entry.format("other", theirs))
    from archiver.writers import Writers

    setup = replace(setup, writers=Writers.load(trusted, own=None))
    before = objects(setup)
    first = swept(setup, ("claude-code", runs))
    assert (first.of("refused"), first.report.exit_code) == ([run_of(path)], 3)
    again = swept(setup, ("claude-code", runs))
    assert (again.total.refused, again.report.exit_code) == (1, 0)
    assert objects(setup) == before


def test_a_claim_leaves_a_run_as_saved(config: Path, setup: Setup, runs: Path, tmp_path: Path) -> None:
    path = session(runs)
    swept(setup, ("claude-code", runs))
    restore(run_of(path), setup, into=tmp_path / "out", accept=("age",), claim=True)
    forget(run_of(path), setup)
    again = swept(setup, ("claude-code", runs))
    assert (again.total.unchanged, again.total.archived) == (1, 0)


def test_a_writer_that_reads_nothing_goes_by_what_it_remembers(setup: Setup, runs: Path) -> None:
    """Number after number without opening anything; what it cannot tell it does not upload twice."""
    blind = replace(setup, identities=())
    path = session(runs, turns=1)
    assert swept(blind, ("claude-code", runs), retention=False).total.archived == 1
    assert swept(blind, ("claude-code", runs), retention=False).total.unchanged == 1
    session(runs, turns=2)
    assert swept(blind, ("claude-code", runs), retention=False).total.archived == 1
    session(runs, turns=2, age=DAY_AFTER)
    assert swept(blind, ("claude-code", runs), retention=False).total.unchanged == 1
    assert numbers(setup) == {run_of(path): [1, 2]}
    assert not [one for one in verify(setup, run_of(path), deep=True) if not one.ok]
    memory(setup).unlink()
    before = objects(setup)
    for _ in range(2):
        lost = swept(blind, ("claude-code", runs), retention=False)
        assert [type(error) for _, error in lost.report.errors] == [UnconfirmedError]
        assert lost.report.exit_code == 8
        assert objects(setup) == before


DAY_AFTER = 86_400


def test_forgetting_a_run_lets_it_be_looked_up(setup: Setup, runs: Path) -> None:
    path = session(runs)
    swept(setup, ("claude-code", runs))
    assert forget(run_of(path), setup) == 1
    assert forget(run_of(path), setup) == 0


def test_runs_that_nobody_goes_on_with_are_counted(setup: Setup, runs: Path, note: Path) -> None:
    archive(
        Source(paths=(note,)),
        setup,
        options=Options(given=Given(run_id="dead", outcome="running")),
        now=lambda: datetime.now(UTC) - timedelta(days=2),
    )
    archive(Source(paths=(note,)), setup, options=Options(given=Given(run_id="alive", outcome="running")))
    for _ in range(2):
        report = swept(setup, ("claude-code", runs)).report
        assert report.unfinished_names == ["dead"]


def test_watching_ends_after_the_run_under_way(config: Path, setup: Setup, runs: Path) -> None:
    path = session(runs)
    program = "import sys; from archiver.cli import main; main()"
    arguments = ("sweep", "--watch", "--every", "1s", "--config", str(config))
    arguments += ("--source", f"claude-code={runs}")
    watching = subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert watching.stdout is not None
    assert run_of(path) in watching.stdout.readline()
    second = session(runs, 2)
    assert run_of(second) in watching.stdout.readline()
    watching.terminate()
    _, said = watching.communicate(timeout=60)
    assert watching.returncode == 0, said
    assert "Ended." in said
    assert numbers(setup) == {run_of(path): [1], run_of(second): [1]}


@pytest.mark.parametrize("idle", [True, False])
def test_runs_under_way_are_spoken_of_only_if_there_are_any(
    idle: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    from archiver.cli.sweep import _ending

    with _ending() as stop:
        stop.idle = idle
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop.wait(30)
    assert ("under way" in capsys.readouterr().err) != idle


# --- deaths and hosts ---


def child(*arguments: object) -> list[dict[str, int]]:
    done = subprocess.run(
        [sys.executable, str(HERE / "sweeping.py"), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=1800,
        env={**os.environ, "TMPDIR": str(arguments[1].parent), "PYTHONPATH": str(HERE.parent)},
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def check_killed(config: Path, runs: Path, every: int, least: int) -> None:
    lines = child("kill", config, runs, every)
    assert len(lines) > least
    assert lines[0]["runs"] == 1, "the first kill comes before anything is committed"
    assert lines[-2]["runs"] == 2, "and the last one after it"


def test_killed_at_steps_of_a_sweep(config: Path, runs: Path) -> None:
    check_killed(config, runs, every=211, least=2)


@pytest.mark.soak
def test_killed_at_every_step_of_a_sweep(config: Path, runs: Path) -> None:
    check_killed(config, runs, every=1, least=100)


def check_hosts(config: Path, runs: Path, hosts: int, count: int) -> None:
    paths = [session(runs, number) for number in range(1, count + 1)]
    outcomes = child("race", config, runs, hosts)
    assert outcomes == [[]] * hosts
    setup = open_setup(load(config), need="write")
    found = numbers(setup)
    assert {run_of(path): [1] for path in paths}.items() <= found.items()
    for run in found:
        assert not [one for one in verify(setup, run, deep=True) if not one.ok]


def test_many_hosts_at_once(config: Path, runs: Path) -> None:
    check_hosts(config, runs, hosts=5, count=2)


@pytest.mark.soak
def test_many_hosts_at_once_many_runs(config: Path, runs: Path) -> None:
    check_hosts(config, runs, hosts=10, count=40)


def test_errors_are_archivers(setup: Setup, runs: Path) -> None:
    """A memory that cannot be made is one error of a name, and nothing is archived."""
    session(runs)
    blocked = runs.parent / "blocked"
    blocked.write_text("a file")
    with pytest.raises(ArchiverError, match="cannot be"):
        swept(setup, ("claude-code", runs), state=blocked / "below")
    assert numbers(setup) == {}


def test_a_sweep_delivers_the_spool_first(setup: Setup, runs: Path, tmp_path: Path) -> None:
    path = session(runs)
    hand = Hand.of(setup, "spooled")
    hand.save("waits")
    log = tmp_path / "log.jsonl"
    done = swept(setup, ("claude-code", runs), log=log)
    assert [(one.run, one.delivered, one.left) for one in done.report.delivered] == [("spooled", 1, 0)]
    assert numbers(setup) == {"spooled": [1], run_of(path): [1]}
    events = [json.loads(line)["event"] for line in log.read_text().splitlines()]
    assert events[:3] == ["begin", "delivered", "archived"]


def test_a_host_that_is_overtaken_finds_its_content_there(setup: Setup, runs: Path, tmp_path: Path) -> None:
    """Another host saves the same run after this one has looked for the last time."""
    path = session(runs)
    overtaken = []

    class Overtaking(Decorated):
        def create(self, name, body, *, retention):
            if name.startswith("bundles/") and not overtaken:
                overtaken.append(name)
                swept(setup, ("claude-code", runs), state=tmp_path / "other")
            return super().create(name, body, retention=retention)

    slow = replace(setup, store=Overtaking(setup.store))
    done = swept(slow, ("claude-code", runs))
    assert overtaken
    assert (done.total.unchanged, done.total.archived, done.report.errors) == (1, 0, [])
    assert numbers(setup) == {run_of(path): [1]}
