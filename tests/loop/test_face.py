"""A run inside a loop: what it gives back when it is opened again, what it refuses, what it never raises."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import archiver
from archiver import Budget, Policy, ledger
from archiver.archive import Given, Options, Source, archive
from archiver.catalog import Catalog
from archiver.errors import (
    BudgetExhaustedError,
    NoSuchRunError,
    NotSerialisableError,
    RunFinishedError,
    StaleWriterError,
    StoreUnreachableError,
    UsageError,
)
from archiver.loop import opening
from archiver.loop.state import State
from archiver.restore import restore
from archiver.setup import Setup
from archiver.statistics import gather

ALWAYS = Policy("every-step", floor=0.0, floor_calls=1)
TALK = [
    {"role": "user", "content": "Rename the table."},
    {"role": "assistant", "content": [{"type": "text", "text": "The migration is written."}]},
]


def opened(setup: Setup, run: str = "task-42", **options: Any) -> archiver.Run:
    return archiver.run(run, setup=setup, **{"policy": ALWAYS, **options}).open()


def test_a_run_goes_on_where_it_was(setup: Setup, reopen: Callable[[], Setup]) -> None:
    with archiver.run("task-42", harness="h 1", setup=setup, policy=ALWAYS, objective="rename") as run:
        assert not run.resumed
        assert run.messages == []
        ticket = run.checkpoint(
            TALK,
            phase="written",
            note="tests come next",
            plan=["run the tests"],
            evidence=subprocess.run([sys.executable, "-c", "print('2 passed')"], capture_output=True),
        )
        assert (ticket.status, ticket.seq) == ("stored", 1)
    with archiver.run("task-42", harness="h 1", setup=reopen(), policy=ALWAYS) as again:
        assert again.resumed
        assert again.messages == TALK
        assert (again.phase, again.note) == ("written", "tests come next")
        assert [step.title for step in again.plan.remaining] == ["run the tests"]
        assert [(one.exit_status, one.summary) for one in again.evidence] == [(0, "2 passed")]
        assert again.seq == 2, "the claim comes first"
        assert again.checkpoint([*TALK, TALK[0]]).seq == 3
    kinds = [link.record.kind for link in Catalog(reopen()).chain("task-42").links]
    assert kinds == ["checkpoint", "claim", "checkpoint"]


def test_a_completed_step_gives_its_recorded_output(setup: Setup, reopen: Callable[[], Setup]) -> None:
    done: list[int] = []

    def fetch(day: int) -> tuple[int, str]:
        done.append(day)
        return day, "eur"

    with archiver.run("t", setup=setup, policy=ALWAYS) as run:
        assert run.step("prices", fetch, 3) == [3, "eur"], "as a resume gives it"
        assert run.step("prices", fetch, 4) == [3, "eur"]
    with archiver.run("t", setup=reopen(), policy=ALWAYS) as run:
        output: Any = run.step("prices", fetch, 5)
        output.append("changed by the caller")
        assert run.step("prices", fetch, 5) == [3, "eur"]
    assert done == [3]


def test_a_step_whose_output_has_no_json_form_says_where(setup: Setup) -> None:
    with archiver.run("t", setup=setup) as run, pytest.raises(NotSerialisableError, match=r"\$\.a"):
        run.step("k", lambda: {"a": object()})


def test_a_step_whose_output_held_a_credential_is_done_again(
    setup: Setup, reopen: Callable[[], Setup]
) -> None:
    secret = "ghp_" + "".join("aB3dE6gH9k"[n % 10] for n in range(0, 108, 3))
    calls: list[int] = []

    def token() -> str:
        calls.append(1)
        return secret

    for current in (setup, reopen()):
        with archiver.run("t", setup=current, policy=ALWAYS) as run:
            assert run.step("token", token) == secret
    assert len(calls) == 2


def test_nothing_is_saved_too_early_and_the_ticket_says_so(setup: Setup) -> None:
    with archiver.run("t", setup=setup) as run:
        ticket = run.checkpoint(TALK, phase="a")
        assert ticket.status == "skipped"
        assert "too early" in ticket.because
        assert not Catalog(setup).numbers("t")
        assert run.checkpoint(TALK, force=True).wait(30)
        assert Catalog(setup).numbers("t") == [1]


def test_what_was_not_saved_is_saved_when_the_block_is_left(setup: Setup, tmp_path: Path) -> None:
    with archiver.run("t", setup=setup) as run:
        run.checkpoint(TALK, phase="early")
    state = restore("t", setup, into=tmp_path / "out").state
    assert (state.phase, state.outcome) == ("early", "running")


def test_an_error_ends_the_run_as_failed_and_it_goes_on_all_the_same(
    setup: Setup, reopen: Callable[[], Setup], tmp_path: Path
) -> None:
    with pytest.raises(ZeroDivisionError), archiver.run("t", setup=setup) as run:
        run.checkpoint(TALK)
        _ = 1 / 0
    state = restore("t", setup, into=tmp_path / "out").state
    assert (state.outcome, state.note) == ("failed", "ZeroDivisionError: division by zero")
    with archiver.run("t", setup=reopen()) as run:
        assert run.messages == TALK
        run.finish("succeeded")
    assert restore("t", setup, into=tmp_path / "out2").state.outcome == "succeeded"


@pytest.mark.parametrize(("error", "outcome"), [(KeyboardInterrupt, "cancelled"), (SystemExit, "running")])
def test_leaving_otherwise(setup: Setup, tmp_path: Path, error: type[BaseException], outcome: str) -> None:
    with pytest.raises(error), archiver.run("t", setup=setup) as run:
        run.checkpoint(TALK)
        raise error
    assert restore("t", setup, into=tmp_path / "out").state.outcome == outcome


def test_a_run_that_succeeded_gives_what_it_recorded_and_does_nothing_new(
    setup: Setup, reopen: Callable[[], Setup]
) -> None:
    with archiver.run("t", setup=setup, policy=ALWAYS) as run:
        run.step("a", lambda: 1)
        run.finish("succeeded", note="done")
        with pytest.raises(RunFinishedError, match="step b"):
            run.step("b", lambda: 2)
    with archiver.run("t", setup=reopen(), policy=ALWAYS) as run:
        assert run.finished
        assert run.outcome == "succeeded"
        assert run.step("a", lambda: 3) == 1
        assert run.checkpoint(TALK).status == "skipped"
        run.finish("succeeded")
        with pytest.raises(RunFinishedError) as caught:
            run.step("b", lambda: 2)
        assert "another run_id" in str(caught.value.remedy)
        with pytest.raises(RunFinishedError):
            run.finish("failed")
    assert len(Catalog(reopen()).numbers("t")) == 2, "nothing was claimed"


def test_messages_are_those_of_the_call_whatever_the_loop_does_then(
    setup: Setup, reopen: Callable[[], Setup]
) -> None:
    with archiver.run("t", setup=setup, policy=Policy("async", floor=0.0, floor_calls=1)) as run:
        messages = [{"role": "user", "content": f"{number}"} for number in range(50)]
        ticket = run.checkpoint(messages, milestone="m")
        messages.clear()
        assert ticket.wait(30)
    assert len(opened(reopen(), "t").messages) == 50


def test_an_object_of_an_sdk_is_taken_as_it_would_be_sent(setup: Setup) -> None:
    from anthropic.types import TextBlock

    with archiver.run("t", setup=setup, policy=ALWAYS) as run:
        block = TextBlock(type="text", text="hello")
        said = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": [block]}]
        assert run.checkpoint(said).saved
        assert run.messages[1]["content"] == [{"type": "text", "text": "hello"}]


def test_what_cannot_be_taken_never_raises_into_the_loop(setup: Setup) -> None:
    with archiver.run("t", setup=setup, policy=ALWAYS) as run:
        ticket = run.checkpoint([{"role": "user", "content": object()}])
        assert ticket.status == "failed"
        assert "$[0].content" in str(ticket.error)
        assert run.checkpoint(TALK).saved
    with archiver.run("s", setup=setup, strict=True) as run, pytest.raises(NotSerialisableError):
        run.checkpoint([object()])


def test_spend_and_budget_are_carried_over(setup: Setup, reopen: Callable[[], Setup]) -> None:
    with archiver.run("t", setup=setup, policy=ALWAYS, budget=Budget(usd=20, tokens=1000)) as run:
        left = run.spend(tokens_in=300, tokens_out=100, usd=8.0, iterations=1)
        assert (left.usd, left.tokens) == (12.0, 600)
        first = run.spent.seconds
        run.checkpoint(TALK)
    with archiver.run("t", setup=reopen(), policy=ALWAYS) as run:
        assert run.left.usd == 12.0
        assert run.spent.seconds >= first
        assert run.spend(usd=12.5).nothing == ("usd",)
    with pytest.raises(BudgetExhaustedError, match=r"20\.50 USD"):
        opened(reopen(), "t")
    assert len(Catalog(reopen()).numbers("t")) == 3, "it asks before it claims"
    with archiver.run("t", setup=reopen(), policy=ALWAYS, budget=Budget(usd=30)) as run:
        assert run.left.usd == 9.5


def test_a_run_goes_back_to_a_good_checkpoint(
    setup: Setup, reopen: Callable[[], Setup], tmp_path: Path
) -> None:
    with archiver.run("t", setup=setup, policy=ALWAYS) as run:
        run.step("good", lambda: 1)
        good = run.checkpoint(TALK, phase="good").seq
        run.step("bad", lambda: 2)
        run.spend(usd=3.0)
        run.checkpoint([*TALK, {"role": "user", "content": "poison"}], phase="bad")
        assert good is not None
        assert run.rewind(to=good, because="the plan was poisoned") == TALK
        assert (run.phase, run.results, run.spent.cost) == ("good", {"good": 1}, 3.0)
        records = run.ring()
        assert [record.phase for record in records] == ["good", "bad", "good", "good", ""][: len(records)]
        assert records[0].note == f"rewound to checkpoint {good}: the plan was poisoned"
    with archiver.run("t", setup=reopen(), policy=ALWAYS) as run:
        assert run.messages == TALK
    assert restore("t", reopen(), into=tmp_path / "poisoned", at=good + 2).state.phase == "bad"
    with archiver.run("t", setup=reopen()) as run, pytest.raises(NoSuchRunError):
        run.rewind(to=99)


def test_of_two_copies_one_goes_on(setup: Setup, reopen: Callable[[], Setup]) -> None:
    with archiver.run("t", setup=setup, policy=ALWAYS) as run:
        run.checkpoint(TALK)
    first = opened(reopen(), "t")
    second = opened(reopen(), "t")
    acted: list[str] = []
    with pytest.raises(StaleWriterError), first.effect("mail", key="m1") as effect:
        acted.append("first")
        effect.confirm("sent")
    assert acted == []
    with pytest.raises(StaleWriterError):
        first.checkpoint(TALK)
    with second.effect("mail", key="m1") as effect:
        acted.append("second")
        effect.confirm("sent")
    second.finish("succeeded")
    second.close()
    with pytest.raises(StaleWriterError):
        first.leave(None)
    assert acted == ["second"]


def test_another_task_s_run(setup: Setup) -> None:
    archive(Source(paths=(_note(setup),)), setup, options=Options(given=Given(run_id="r", task_id="other")))
    with pytest.raises(UsageError, match="belongs to task other"):
        opened(setup, "mine", run_id="r")


def _note(setup: Setup) -> Path:
    path = Path(os.environ["HOME"]) / "note.txt"
    path.write_text("hello\n", encoding="utf-8")
    return path


def test_a_store_that_is_away_at_the_start(config: Path, tmp_path: Path) -> None:
    (tmp_path / "store").rename(tmp_path / "away")
    with pytest.raises(StoreUnreachableError) as caught:
        archiver.run("t", config=config).open()
    assert 'offline="start"' in str(caught.value.remedy)
    with archiver.run("t", config=config, offline="start", policy=ALWAYS) as run:
        assert run.checkpoint(TALK).status == "spooled"
        (tmp_path / "away").rename(tmp_path / "store")
        assert run.flush(30)
    with archiver.run("t", config=config) as run:
        assert run.messages == TALK


def test_a_run_that_the_spool_knows_of_does_not_begin_anew(
    config: Path, setup: Setup, tmp_path: Path
) -> None:
    """Its first save would be refused, after the work was done a second time."""
    with archiver.run("t", config=config, policy=ALWAYS) as run:
        run.checkpoint(TALK)
    archive(Source(paths=(_note(setup),)), setup, options=Options(given=Given(run_id="t")))
    (tmp_path / "store").rename(tmp_path / "away")
    with pytest.raises(StoreUnreachableError, match="has record 1, and what it goes on from") as caught:
        archiver.run("t", config=config, offline="start", policy=ALWAYS).open()
    assert 'offline="start"' not in str(caught.value.remedy)


def test_a_restart_while_the_store_is_away_goes_on_from_the_spool(
    config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARCHIVER_RUN__PATIENCE", "2s")
    with archiver.run("t", config=config, policy=ALWAYS) as run:
        run.checkpoint(TALK, phase="one")
    (tmp_path / "store").rename(tmp_path / "away")
    for number in (2, 3):
        with archiver.run("t", config=config, policy=ALWAYS) as run:
            assert run.resumed
            assert run.messages == TALK
            assert run.checkpoint(TALK, phase=str(number)).seq == number
    (tmp_path / "away").rename(tmp_path / "store")
    with archiver.run("t", config=config, policy=ALWAYS) as run:
        assert run.phase == "3"
        assert run.seq == 4


def test_the_own_claim_and_what_it_decides_are_known_while_the_store_is_away(
    config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARCHIVER_RUN__PATIENCE", "2s")
    with archiver.run("t", config=config, policy=ALWAYS) as run:
        with pytest.raises(ZeroDivisionError), run.effect("pay", key="k"):
            _ = 1 / 0
        run.checkpoint(TALK)
    for because in ("looked", ""):  # two claims and nothing after them
        resolve = {"k": "done"} if because else None
        with archiver.run("t", config=config, resolve=resolve, because=because) as run:
            claimed = run.seq
    (tmp_path / "store").rename(tmp_path / "away")
    with archiver.run("t", config=config, policy=ALWAYS) as run:
        assert (run.messages, run.seq) == (TALK, claimed)
        assert run.checkpoint(TALK, phase="on").status == "spooled"
    (tmp_path / "away").rename(tmp_path / "store")
    with archiver.run("t", config=config, policy=ALWAYS) as run:
        assert run.phase == "on"
        assert run.effect("pay", key="k").do(lambda: "again") is None


def test_a_child_of_a_fork_does_not_use_the_run(setup: Setup) -> None:
    with archiver.run("t", setup=setup, policy=ALWAYS) as run:
        child = os.fork()
        if child == 0:
            try:
                run.checkpoint(TALK)
            except UsageError:
                os._exit(7)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        assert run.checkpoint(TALK).saved


def test_the_asynchronous_twin(setup: Setup, reopen: Callable[[], Setup]) -> None:
    acted: list[str] = []

    async def fetch(value: int) -> int:
        await asyncio.sleep(0)
        acted.append("fetch")
        return value

    async def work(current: Setup) -> list[Any]:
        async with archiver.run("t", setup=current, policy=ALWAYS) as run:
            both = await asyncio.gather(run.step("a", fetch, 1), run.step("a", fetch, 2))
            await run.checkpoint(TALK, phase="p")
            async with run.effect("mail", key="m", arguments={"to": "x"}) as effect:
                acted.append("mail")
                effect.confirm("sent")
            assert effect.result == "sent"
            assert await run.flush()
            await run.finish("failed")
            return both

    assert asyncio.run(work(setup)) == [1, 1]
    assert asyncio.run(work(reopen())) == [1, 1]
    assert acted == ["fetch", "mail"]


def test_bad_words_are_told_at_once_where_strict(setup: Setup) -> None:
    with archiver.run("t", setup=setup, strict=True) as run:
        with pytest.raises(UsageError, match="plan"):
            run.checkpoint(TALK, plan={"remaining": 3})
        with pytest.raises(UsageError, match="evidence"):
            run.checkpoint(TALK, evidence={"exit_status": "x"})
    with pytest.raises(UsageError, match="budget"):
        archiver.run("t", setup=setup, budget=Budget(usd=-1))


def test_what_a_session_came_to_is_written_down(setup: Setup, reopen: Callable[[], Setup]) -> None:
    for current in (setup, reopen()):
        with archiver.run("t", setup=current, policy=ALWAYS) as run:
            run.step("a", lambda: 1)
            assert run.effect("mail", key="m").do(lambda: "sent") == "sent"
            run.checkpoint(TALK)
    found = gather(reopen())
    said = found.audited
    assert (said.sessions, said.steps_replayed, said.duplicates_prevented, said.failed) == (2, 1, 1, 0)
    assert said.create.count == found.sums.records["checkpoint"] == 3
    assert said.restore.count == found.sums.records["claim"] == 1


def test_a_changed_world_says_how_to_go_on_in_a_program(setup: Setup, reopen: Callable[[], Setup]) -> None:
    with archiver.run("t", setup=setup, policy=ALWAYS, harness="h 1") as run:
        run.checkpoint(TALK)
    with pytest.raises(archiver.StaleCheckpointError) as caught:
        opened(reopen(), "t", harness="h 2")
    shown = "".join(traceback.format_exception(caught.value))
    assert "next: " in shown
    assert "archiver.run(…, accept=['harness'])" in shown
    with pytest.raises(UsageError) as misspelt:
        opened(reopen(), "t", harness="h 2", accept=["harnes"])
    assert str(misspelt.value.remedy).startswith("`accept` takes one of: "), "no option"
    with archiver.run("t", setup=reopen(), harness="h 2", accept=["harness"]) as run:
        assert run.messages == TALK
        assert repr(run) == "<Run t, running, record 2>"
        assert repr(run.effect("mail", key="m")) == "<EffectCall mail m: new>"


def test_the_same_decision_may_be_said_again(setup: Setup, reopen: Callable[[], Setup]) -> None:
    with pytest.raises(ZeroDivisionError), archiver.run("t", setup=setup, policy=ALWAYS) as run:
        run.checkpoint(TALK)
        run.effect("mail", key="m").do(lambda: 1 / 0)
    with pytest.raises(archiver.NeedsDecisionError) as caught:
        opened(reopen(), "t")
    assert "in a program: archiver.run(…, resolve=" in str(caught.value.remedy)
    for _ in range(2):
        with archiver.run(
            "t", setup=reopen(), policy=ALWAYS, resolve={"m": "done"}, because="it is in the outbox"
        ) as run:
            assert run.effect("mail", key="m").do(lambda: "sent again") is None
            run.checkpoint(TALK)


def test_an_effect_is_saved_however_young_the_run_is(setup: Setup) -> None:
    with archiver.run("t", setup=setup) as run:
        assert run.checkpoint(TALK).status == "skipped"
        with run.effect("mail", key="m") as effect:
            assert Catalog(setup).numbers("t") == [1], "without a record nobody could find the intent"
            effect.confirm("sent")
        ticket = run.checkpoint(TALK)
        assert (ticket.status, ticket.because) == ("stored", "1 effect that cannot be done again")
        assert run.checkpoint(TALK).status == "skipped"
        with run.effect("look", key="l", replayable=True) as effect:
            effect.confirm("seen")
        assert run.checkpoint(TALK).status == "skipped"


def test_who_is_overtaken_while_it_resumes_hears_it_at_once(
    setup: Setup, reopen: Callable[[], Setup], monkeypatch: pytest.MonkeyPatch
) -> None:
    with archiver.run("t", setup=setup, policy=ALWAYS) as run:
        run.checkpoint(TALK)
    others: list[archiver.Run] = []

    def overtaken(*said: Any) -> Any:
        monkeypatch.undo()  # asked after the own claim: another copy resumes the run at this moment
        others.append(opened(reopen(), "t"))
        return ledger.merged(*said)

    second = reopen()
    monkeypatch.setattr(opening, "merged", overtaken)
    with pytest.raises(StaleWriterError, match="taken over by somebody else while it was resumed"):
        opened(second, "t")
    assert others[0].checkpoint(TALK).status == "stored"
    others[0].close()


def test_the_time_of_all_sessions_counts(setup: Setup, reopen: Callable[[], Setup]) -> None:
    with archiver.run("t", setup=setup, policy=ALWAYS) as run:
        first = run.spent.seconds
        run.checkpoint(TALK)
    with archiver.run("t", setup=reopen(), policy=ALWAYS) as run:
        before = run.spent.seconds
        run.checkpoint(TALK)
        assert 0 < first < before < run.spent.seconds


def test_a_checkpoint_is_not_older_than_its_run_though_the_clock_went_back() -> None:
    later = datetime.now(UTC) + timedelta(days=1)
    made = State(run_id="t", task_id="t", created_at=later).maker(())()
    assert made.checkpoint_at == made.created_at == later


def test_a_ticket_waits_for_what_is_asked() -> None:
    ticket = archiver.Ticket("waiting", "a test")
    assert not ticket.wait(0)
    ticket.settle("spooled", seq=3)
    assert ticket.wait(0)
    assert not ticket.wait(0, stored=True)
    later = threading.Timer(0.05, ticket.settle, ("stored",))
    later.start()
    assert ticket.wait(30, stored=True)
    later.join()
    assert ticket.seq == 3
