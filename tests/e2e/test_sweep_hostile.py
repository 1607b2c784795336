"""Sweeps in a world that is hostile, unlucky or careless."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import inside
import pytest

from archiver.errors import LimitExceededError, StoreError, UnconfirmedError
from archiver.setup import Setup
from archiver.sources import configured
from archiver.store.decorated import Decorated
from archiver.sweep import bounded
from archiver.sweep.locking import alone
from archiver.sweep.state import folder
from archiver.sweep.sweeping import Options, Sweep
from archiver.verify import verify
from e2e.sweeping import numbers, objects, run_of, session, swept, with_sources, written


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    return tmp_path / "projects"


class DeadError(BaseException):
    """The process has died."""


# --- secrets ---


def test_names_and_ids_that_are_secrets_are_said_nowhere(
    config: Path, setup: Setup, runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "hunter" + "-2-" + os.urandom(9).hex()
    monkeypatch.setenv("SWEEP_TEST_PASSWORD", secret)
    session(runs / secret, 1)
    named = session(runs, 2)
    named.rename(named.with_name(f"{secret}.jsonl"))
    session(runs / secret, 3, age=3)
    own = tmp_path / "own"
    manifest = {"format": 1, "run": f"x{secret}", "transcript": ["t.txt"], "outcome": "failed"}
    written(own / "good/t.txt", "what happened\n")
    written(own / "good/archiver-run.json", json.dumps(manifest))
    written(own / secret / "archiver-run.json", json.dumps({**manifest, "transcript": [f"../{secret}"]}))
    sources = (f"claude-code={runs}", f"claude-code={runs / secret}", f"folder={own}")
    log = tmp_path / "log.jsonl"
    arguments = ["sweep", "--config", config, "--log", log]
    arguments += [word for source in sources for word in ("--source", source)]
    archived = 0
    for more in (["--dry-run"], ["--dry-run", "--json"], [], ["--json"]):
        said = inside.command(*arguments, *more)
        assert said.code == (0 if more == ["--json"] else 4), said.err
        assert secret not in said.out + said.err, more
        assert "REDACTED" in said.out, more
        archived += said.out.count("archived\t")
    assert archived == 3
    table = inside.command(*arguments, terminal=True, columns=300)
    assert secret not in table.out + table.err
    assert setup.store_id is not None
    memory = folder(setup.settings, setup.store_id)
    for file in (log, *memory.rglob("*"), *(tmp_path / "store").rglob("*")):
        assert secret not in str(file)
        assert not file.is_file() or secret.encode() not in file.read_bytes(), file


# --- several files of one run ---


def test_copies_of_a_growing_session_do_not_take_turns(setup: Setup, runs: Path) -> None:
    """They are saved in the order in which they were written, and then nothing is, by whoever looks."""
    for turns in (3, 1, 2):
        path = session(runs, turns=turns, age=86_400 * (9 - turns))
        path.parent.rename(runs / f"-copy{turns}")
    first = swept(setup, ("claude-code", runs))
    assert first.total.archived == 3
    assert [(row.seq, Path(row.key).parent.name) for row in first.rows] == [
        (number, f"-copy{number}") for number in (1, 2, 3)
    ]
    before = objects(setup)
    for state in (None, runs.parent / "another host"):
        again = swept(setup, ("claude-code", runs), state=state)
        assert (again.total.unchanged, again.total.archived) == (3, 0)
    assert objects(setup) == before


# --- what cannot be saved as it is ---


def test_what_is_too_large_is_said_once_and_not_read_again(
    setup: Setup, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = session(runs)
    written(path, path.read_text() + json.dumps({"type": "user", "message": "a " * (9 << 20)}) + "\n")
    first = swept(setup, ("claude-code", runs))
    assert [type(error) for _, error in first.report.errors] == [LimitExceededError]
    assert first.report.exit_code == 4
    from archiver.sweep import content

    def never(*_: object) -> None:
        raise AssertionError("it was read again")

    with monkeypatch.context() as patched:
        patched.setattr(content, "reference", never)
        again = swept(setup, ("claude-code", runs))
        assert (again.total.failed_before, again.total.failed, again.report.exit_code) == (1, 0, 0), again
    archive = setup.settings.archive.model_copy(update={"keep_turns": 3})
    changed = replace(setup, settings=setup.settings.model_copy(update={"archive": archive}))
    reference, read = content.reference, list[str]()
    with monkeypatch.context() as patched:
        patched.setattr(content, "reference", lambda *given: read.append("again") or reference(*given))
        tried = swept(changed, ("claude-code", runs))
    assert read, "the settings have changed"
    assert (tried.total.failed_before, tried.report.exit_code) == (1, 0), tried
    session(runs)
    assert swept(setup, ("claude-code", runs)).total.archived == 1


def test_odd_things_beside_a_run_keep_nothing_from_being_archived(setup: Setup, runs: Path) -> None:
    place = session(runs).parent
    os.mkfifo(place / "pipe.jsonl")
    (place / "folder.jsonl").mkdir()
    (place / "link.jsonl").symlink_to("nowhere")
    (place / "loop").symlink_to(".")
    written(place / "empty.jsonl", "")
    damaged = session(runs, 2)
    first, second = damaged.read_text().splitlines()
    written(damaged, f'{first}\n{{"half\n{second}\n')
    done = swept(setup, ("claude-code", runs))
    assert (done.total.archived, done.report.exit_code) == (2, 0), done
    assert [warning for warning in done.report.warnings if "dropped" in warning]
    assert swept(setup, ("claude-code", runs)).total.unchanged == 2


def test_a_run_that_was_written_in_the_future_waits(setup: Setup, runs: Path) -> None:
    session(runs, age=-86_400 * 30)
    done = swept(setup, ("claude-code", runs))
    assert (done.total.waiting, done.report.exit_code) == (1, 0)
    assert "ahead of the clock" in done.report.waiting[0].why


def test_an_erased_run_is_refused_once(
    config: Path, setup: Setup, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = session(runs)
    swept(setup, ("claude-code", runs))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(runs.parent))
    erase = ("erase", run_of(path), "--config", config)
    dry = inside.command(*erase, "--dry-run", "--json")
    assert [one["name"] for one in dry.json["unreached"] if one["kind"] == "source"] == [str(path)]
    assert {one["kind"] for one in dry.json["unreached"]} >= {"copy", "spool", "source"}
    assert str(path) in inside.command(*erase, "--dry-run", terminal=True, columns=400).out
    erased = inside.command(*erase, "--yes", "--reason", "asked for")
    assert erased.code == 0, erased.err
    assert [row[1] for row in erased.rows if row[0] == "source"] == [str(path)]
    assert numbers(setup) == {}
    first = swept(setup, ("claude-code", runs))
    assert (first.total.refused, first.report.exit_code) == (1, 0), first
    assert [text for text in first.report.warnings if "its files are still there: remove them" in text]
    before = objects(setup)
    again = swept(setup, ("claude-code", runs))
    assert (again.total.refused, again.report.exit_code, again.report.warnings) == (1, 0, [])
    assert objects(setup) == before
    assert numbers(setup) == {}


# --- the surroundings ---


def test_a_log_that_fails_on_the_way_ends_nothing(setup: Setup, runs: Path, tmp_path: Path) -> None:
    for number in range(3):
        session(runs, number)
    settings = with_sources(setup.settings, ("claude-code", runs))
    log = tmp_path / "log.jsonl"
    work = Sweep(replace(setup, settings=settings), configured(settings), Options(log=log))
    for place, _ in enumerate(work):
        if place == 0:
            log.unlink()
            log.mkdir()
    assert work.report.total().archived == 3
    assert [where for where, _ in work.report.errors] == ["the log"]
    assert work.report.exit_code == 8


def test_a_source_that_hangs_keeps_no_other_from_being_swept(
    setup: Setup, runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = session(runs)
    (tmp_path / "mount").mkdir()
    settings = with_sources(setup.settings, ("folder", tmp_path / "mount"), ("claude-code", runs))
    hangs, answers = configured(settings)
    ended = threading.Event()

    class Hanging(type(hangs)):
        def find(self):
            ended.wait(60)
            yield from ()

    monkeypatch.setattr(bounded, "PATIENCE", 2.0)
    stuck = Hanging(hangs.kind, hangs.path)
    work = Sweep(replace(setup, settings=settings), [stuck, answers])
    assert [row.what for row in work] == ["failed", "archived"]
    assert not ended.is_set()
    ended.set()
    assert work.report.exit_code == 2
    assert numbers(setup) == {run_of(path): [1]}


def test_a_file_system_without_locks_is_an_error_with_a_next_step(
    setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    def without(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", without)
    with pytest.raises(StoreError, match="No locks available") as caught, alone(setup):
        pass
    assert "sweep.state" in (caught.value.remedy or "")


def test_the_lock_of_a_process_that_was_killed_is_free(config: Path, setup: Setup) -> None:
    child = os.fork()
    if child == 0:
        with alone(setup):
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    with alone(setup):
        pass


def test_terminated_while_a_run_is_under_way(config: Path, setup: Setup, runs: Path) -> None:
    """The run under way is finished, the others wait, and the exit code says that it was not through."""
    for number in range(6):
        session(runs, number)
    program = (
        "import os, signal, sys\n"
        "from archiver.sweep import sweeping\n"
        "save = sweeping.save\n"
        "def saving(*given, **named):\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "    return save(*given, **named)\n"
        "sweeping.save = saving\n"
        "from archiver.cli import main\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "sweep", "--config", config, "--source", f"claude-code={runs}"],
        env={**os.environ, "ARCHIVER_SWEEP__PARALLEL": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 143, done.stderr
    assert [line.split("\t")[0] for line in done.stdout.splitlines()] == ["archived"]
    assert len(numbers(setup)) == 1
    assert swept(setup, ("claude-code", runs)).total.archived == 5


# --- a writer that reads nothing, and dies ---


class Dying(Decorated):
    """The process dies right before or right after it has put a record."""

    def __init__(self, store: object, moment: str) -> None:
        super().__init__(store)  # type: ignore[arg-type]
        self._moment = moment

    def create(self, name, body, *, retention):
        if not name.startswith("records/"):
            return super().create(name, body, retention=retention)
        if self._moment == "after":
            super().create(name, body, retention=retention)
        raise DeadError


def dies(setup: Setup, runs: Path, moment: str) -> None:
    with pytest.raises(DeadError):
        swept(replace(setup, store=Dying(setup.store, moment)), ("claude-code", runs), retention=False)


@pytest.mark.parametrize("turns", [1, 2])
def test_a_writer_that_reads_nothing_and_dies_after_its_record(setup: Setup, runs: Path, turns: int) -> None:
    """The number that it had begun is taken: that is said once; only what comes after it is an error."""
    blind = replace(setup, identities=())
    for number in range(1, turns):
        session(runs, turns=number)
        assert swept(blind, ("claude-code", runs), retention=False).total.archived == 1
    path = session(runs, turns=turns)
    dies(blind, runs, "after")
    before = objects(setup)
    first = swept(blind, ("claude-code", runs), retention=False)
    assert (first.total.archived, first.report.exit_code) == (1, 0), first
    assert first.rows[0].seq == turns
    assert [text for text in first.report.warnings if "not confirmed" in text]
    again = swept(blind, ("claude-code", runs), retention=False)
    assert (again.total.unchanged, again.report.exit_code, again.report.warnings) == (1, 0, [])
    assert objects(setup) == before
    session(runs, turns=turns + 1)
    grown = swept(blind, ("claude-code", runs), retention=False)
    assert [type(error) for _, error in grown.report.errors] == [UnconfirmedError]
    assert objects(setup) == before
    assert swept(setup, ("claude-code", runs), state=runs.parent / "reader").total.archived == 1
    assert numbers(setup) == {run_of(path): [*range(1, turns + 2)]}
    assert not [one for one in verify(setup, run_of(path), deep=True) if not one.ok]


def test_a_writer_that_reads_nothing_and_dies_before_its_record(setup: Setup, runs: Path) -> None:
    blind = replace(setup, identities=())
    path = session(runs)
    dies(blind, runs, "before")
    done = swept(blind, ("claude-code", runs), retention=False)
    assert (done.total.archived, done.report.warnings) == (1, []), done
    assert numbers(setup) == {run_of(path): [1]}


def test_a_number_that_was_taken_with_other_content_is_not_called_archived(setup: Setup, runs: Path) -> None:
    """What was begun there is not what lies on disk now."""
    blind = replace(setup, identities=())
    session(runs, turns=1)
    dies(blind, runs, "after")
    session(runs, turns=2)
    done = swept(blind, ("claude-code", runs), retention=False)
    assert (done.total.archived, done.total.failed) == (0, 1)
    assert [type(error) for _, error in done.report.errors] == [UnconfirmedError]
