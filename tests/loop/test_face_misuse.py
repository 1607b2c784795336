"""Calls that cannot be right, and uses that nobody meant: told at once, and they spoil nothing else."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import archiver
from archiver import Budget, Policy
from archiver.catalog import Catalog
from archiver.errors import RunFinishedError, StoreUnreachableError, UsageError
from archiver.loop.ending import note_of, outcome_of
from archiver.restore import restore
from archiver.setup import Setup
from loop.test_face import ALWAYS, TALK


@pytest.mark.parametrize(
    "said",
    [
        *({name: 5} for name in ("run_id", "harness", "model", "objective", "user", "because", "policy")),
        *({name: 5} for name in ("dialect", "workspace", "offline", "accept", "resolve", "config", "budget")),
        *({name: "bogus"} for name in ("policy", "dialect", "offline", "accept", "resolve", "check")),
        {"budget": {"usd": 3}},
        {"budget": Budget(usd=float("nan"))},
        {"policy": Policy("bogus")},  # type: ignore[arg-type]
        {"policy": Policy(floor=float("nan"))},
        {"setup": "store"},
    ],
    ids=str,
)
def test_a_run_that_cannot_be_opened_so(said: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        archiver.run("t", **said)
    with pytest.raises(UsageError):
        archiver.run(5)  # type: ignore[arg-type]


def test_a_call_that_cannot_be_right_changes_nothing(setup: Setup) -> None:
    odd: Any = 5
    with archiver.run("t", setup=setup, policy=ALWAYS) as run:
        for said in ("phase", "note", "milestone", "plan", "evidence"):
            assert run.checkpoint(TALK, **{said: odd}).status == "failed"
            assert run.checkpoint(TALK, **{said: None}).saved, said
        for used in ({"tokens_in": -1}, {"usd": float("inf")}, {"usd": "much"}, {"tokens_out": 1.5}):
            with pytest.raises(UsageError, match="spend"):
                run.spend(**used)  # type: ignore[arg-type]
        run.spend(tokens_in=2**62, usd=1e308)
        for too_much in ({"tokens_in": 2**62}, {"usd": 1e308}):
            with pytest.raises(UsageError, match="spend"):
                run.spend(**too_much)  # type: ignore[arg-type]
        calls: list[Callable[[], Any]] = [
            lambda: run.finish(odd),
            lambda: run.finish("failed", note=odd),
            lambda: run.step(odd, list),
            lambda: run.step("", list),
            lambda: run.step("k", odd),
            lambda: run.step("k", asyncio.sleep, 0),
            lambda: run.effect("t", key=odd),
            lambda: run.effect("t", key="\ud800"),
            lambda: run.effect(odd, key="k"),
            lambda: run.effect("t", key="k", unrecorded=odd),
            lambda: run.effect("t", key="k", not_done_on=odd),
            lambda: run.effect("t", key="k").do(odd),
            lambda: run.effect("t", key="k").do(lambda: asyncio.sleep(0)),
            lambda: run.rewind(True),
            lambda: run.rewind(1, because=odd),
            lambda: run.rewind(-1),
        ]
        for number, call in enumerate(calls):
            with pytest.raises(archiver.ArchiverError):
                call()
            assert run.checkpoint(TALK).saved, number
        assert run.effect("t", key="k").do(lambda: 1) == 1, "nobody has to decide on it"


def test_what_commands_are_called_by() -> None:
    from archiver.loop.given import evidence_of

    for args in (Path("/bin/true"), b"/bin/true", ["/bin/true"], [b"/bin/true"], [Path("/bin/true")]):
        assert evidence_of(subprocess.CompletedProcess(args, 0))[0].command == "/bin/true"


def test_a_step_within_itself_does_not_wait_for_itself(setup: Setup) -> None:
    async def nested() -> Any:
        async with archiver.run("a", setup=setup) as run:
            return await run.step("k", run.step, "k", list)

    with archiver.run("t", setup=setup) as run:
        with pytest.raises(UsageError, match="within itself"):
            run.step("k", lambda: run.step("k", list))
        assert run.step("k", lambda: run.step("inner", list)) == []
    with pytest.raises(UsageError, match="within itself"):
        asyncio.run(nested())


def test_the_key_of_a_step_may_hold_a_credential(setup: Setup, reopen: Callable[[], Setup]) -> None:
    secret = "ghp_" + "".join("aB3dE6gH9k"[n % 10] for n in range(0, 108, 3))
    calls: list[int] = []
    for current in (setup, reopen(), reopen()):
        with archiver.run("t", setup=current, policy=ALWAYS) as run:
            run.step(f"clone with {secret}", lambda: calls.append(1))
    assert calls == [1]


def test_a_run_that_is_closed_does_nothing(setup: Setup) -> None:
    acted: list[int] = []
    with archiver.run("t", setup=setup) as run:
        early = run.effect("t", key="e", replayable=True)
    calls: list[Callable[[], Any]] = [
        lambda: run.checkpoint(TALK),
        lambda: run.step("k", acted.append, 1),
        lambda: run.effect("t", key="k", replayable=True).do(acted.append, 1),
        lambda: early.do(acted.append, 1),
        lambda: run.spend(usd=1),
        lambda: run.finish("succeeded"),
        run.flush,
        run.ring,
    ]
    for call in calls:
        with pytest.raises(UsageError, match="closed"):
            call()
    assert acted == []
    run.close()


def test_nothing_is_done_in_a_run_that_has_ended_however_early_it_was_asked_for(
    setup: Setup, reopen: Callable[[], Setup], caplog: pytest.LogCaptureFixture
) -> None:
    acted: list[int] = []

    def fail() -> None:
        raise ZeroDivisionError

    with archiver.run("t", setup=setup, policy=ALWAYS) as run:
        early = run.effect("t", key="early")
        run.effect("t", key="not-done", not_done_on=(ZeroDivisionError,))
        for key, again in (("again", True), ("open", False)):
            with pytest.raises(ZeroDivisionError):
                run.effect("t", key=key, replayable=again).do(fail)
        assert run.finish("succeeded").status == "stored"
        assert "nobody knows whether these effects happened: open" in caplog.text
        assert run.finish("succeeded").status == "skipped"
        with pytest.raises(RunFinishedError):
            run.finish("failed")
        with pytest.raises(RunFinishedError):
            early.do(acted.append, 1)
    with archiver.run("t", setup=reopen()) as run, pytest.raises(RunFinishedError):
        run.effect("t", key="again", replayable=True).do(acted.append, 1)
    assert acted == []


def test_what_a_group_of_errors_and_one_that_cannot_be_told_say() -> None:
    away = StoreUnreachableError("away")

    class UntoldError(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    assert outcome_of(BaseExceptionGroup("g", [away, SystemExit(1)])) is None
    assert outcome_of(ExceptionGroup("g", [away, ExceptionGroup("h", [ValueError("x")])])) == "failed"
    assert outcome_of(BaseExceptionGroup("g", [ValueError("x"), KeyboardInterrupt()])) == "cancelled"
    assert note_of(ExceptionGroup("g", [ValueError("x")])) == "ValueError: x"
    assert note_of(UntoldError()) == "UntoldError"


def test_one_call_opens_one_block_at_a_time(setup: Setup) -> None:
    opening = archiver.run("t", setup=setup)
    with opening as run:
        with pytest.raises(UsageError, match="open by this very call"):
            opening.__enter__()
        assert run.checkpoint(TALK, force=True).saved


def test_a_run_that_is_cancelled_while_it_is_opened_is_closed(
    setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    from archiver.loop import entry

    begun, go_on = threading.Event(), threading.Event()
    closed = threading.Event()

    def slow(*args: Any) -> archiver.Run:
        begun.set()
        assert go_on.wait(30)
        run = made(*args)
        monkeypatch.setattr(run, "leave", lambda _: (run.close(), closed.set()))
        return run

    made = entry._begun
    monkeypatch.setattr(entry, "_begun", slow)

    async def cancelled() -> None:
        opening = asyncio.create_task(archiver.run("t", setup=setup).__aenter__())
        await asyncio.to_thread(begun.wait, 30)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        go_on.set()

    asyncio.run(cancelled())
    assert closed.wait(30)


def test_the_end_of_a_program_saves_what_a_run_that_nobody_closed_was_told(
    config: Path, setup: Setup, tmp_path: Path
) -> None:
    program = (
        "import sys, archiver\n"
        "run = archiver.run('t', config=sys.argv[1]).open()\n"
        "assert run.checkpoint([{'role': 'user', 'content': 'x'}], phase='last').status == 'skipped'\n"
    )
    subprocess.run([sys.executable, "-c", program, str(config)], check=True, timeout=60)
    state = restore("t", setup, into=tmp_path / "out").state
    assert (state.phase, state.outcome) == ("last", "running")


def test_a_strict_run_does_not_complain_of_one_whose_place_a_newer_one_takes(setup: Setup) -> None:
    problems: list[Exception] = []

    def save() -> None:
        try:
            for _ in range(3):
                run.checkpoint(TALK)
        except archiver.ArchiverError as error:
            problems.append(error)

    with archiver.run("t", setup=setup, strict=True, policy=Policy("async", floor=0.0, floor_calls=1)) as run:
        threads = [threading.Thread(target=save) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert problems == []
    assert len(Catalog(setup).numbers("t")) < 18, "some took the place of others"


def test_what_a_run_goes_back_from_is_kept_though_it_was_not_saved_yet(setup: Setup) -> None:
    with archiver.run("t", setup=setup) as run:
        run.checkpoint(TALK, phase="good", force=True)
        assert run.checkpoint([], phase="poisoned").status == "skipped"
        assert run.rewind(1) == TALK
        assert run.flush(30)
        assert [record.phase for record in run.ring()] == ["good", "poisoned", "good"]
