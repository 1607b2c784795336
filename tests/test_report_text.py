"""REPORT.md: the verdict first, the commands last, nothing alive in between."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import pytest

from archiver.model import Budget, Checkpoint, Effect, Plan, Record, Spend, Step
from archiver.model.base import utc_text
from archiver.model.record import BundleRef, Decision
from archiver.model.report import OpenEffect, ProbeVerdict, RestoreReport
from archiver.report_text import MOST_ROWS, budget_left, markdown, verdict

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
ALIVE = (
    "<img src=x onerror=alert(1)> [a](javascript:b) ![c](http://d) `e` *f* # g | h \x1b[2J\u202e "
    "\x1b]8;;http://i\x07 &lt; www.j.example"
)


def record(**more: Any) -> Record:
    return Record(
        store="0" * 32,
        run=more.pop("run", "r"),
        task="t",
        seq=1,
        schema_version=2,
        min_reader=2,
        created_at=NOW,
        checkpoint_at=NOW,
        recorded_at=NOW,
        outcome="running",
        retention="live",
        writer="w",
        recipients=(),
        bundle=BundleRef(
            name="b",
            payload_sha256="0" * 64,
            payload_length=1,
            manifest_sha256="0" * 64,
            members=1,
            unpacked=1,
        ),
        **more,
    )


def report(**more: Any) -> RestoreReport:
    run = more.pop("run", "r")
    return RestoreReport(run=run, seq=1, newest=2, record=record(run=run), writer="w", **more)


def checkpoint(**more: Any) -> Checkpoint:
    return Checkpoint(run_id="r", task_id="t", created_at=NOW, checkpoint_at=NOW, **more)


def still_open(key: str) -> OpenEffect:
    return OpenEffect(
        key=key, tool="curl", arguments='{"n":1}', status="in_progress", at=NOW, resolve=f"--resolve {key}"
    )


def full() -> str:
    return markdown(
        report(
            folder="/a b",
            flags=("--store /s",),
            accepted=("age", "effects"),
            lost=("checkpoint 2 of today",),
            undecided=(still_open("pay"),),
            decisions=(Decision(effect="mail", outcome="done", by="a@b", at=NOW, reason="asked"),),
            freshness=(
                ProbeVerdict(probe="age", state="FRESH", evidence="an hour"),
                ProbeVerdict(
                    probe="git_commit", state="STALE", evidence="ahead", remedy="look", accepted=True
                ),
            ),
            warnings=("careful",),
            rotate=("a token: revoke it",),
            redacted=("effects[0].arguments",),
            migrations=("1 to 2",),
            next_steps=("# first", "cd /srv && claude --resume x"),
        ),
        checkpoint(
            plan=Plan(completed=(Step(id="1", title="one"),), remaining=(Step(id="2", title="two"),)),
            effects=(
                Effect(key="m 1", tool="mail", status="confirmed"),
                Effect(key="m 2", tool="mail"),
            ),
            budget=Budget(tokens=100),
            spend=Spend(tokens_in=40, tokens_out=20),
        ),
    )


def test_it_is_read_from_top_to_bottom_at_three_in_the_morning() -> None:
    text = full()
    assert re.findall(r"^#+ .+$", text, re.M) == [
        "# Checkpoint 1 of run r",
        "## What is lost",
        "## Decide before you go on",
        "## Decided",
        "## Warnings",
        "## Freshness: does the world still match?",
        "## The checkpoint",
        "## Done",
        "## Left to do",
        "## Budget left",
        "## Migrated",
        "## Hold placeholders of credentials: never use these as values",
        "## Credentials replaced: rotate these",
        "## Next",
    ]
    first = text.splitlines()[2]
    assert first.startswith(
        "**Do not go on yet: nobody knows whether one effect happened, see below. Something"
    )
    assert text.endswith("\n    # first\n    cd /srv && claude --resume x\n")


def test_what_is_to_be_decided_comes_with_its_commands() -> None:
    text = full()
    assert f'- pay: curl with {{"n":1}}, in progress since {utc_text(NOW)}' in text
    for outcome in ("done", "not-done"):
        command = (
            f"archiver restore r --into '/a b-decided' --at 1 --accept age --resolve pay={outcome} "
            "--because 'WHAT YOU FOUND' --claim --store /s"
        )
        assert f"\n      {command}\n" in text
    assert f"- mail: done, said a@b at {utc_text(NOW)}. Why: asked" in text
    assert "| git_commit | STALE (accepted) | ahead | look |" in text
    assert "- tokens: 40 of 100" in text
    assert "- mail: m 1 (it happened)\n" in text
    assert "m 2" not in text


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({}, "Verified, and nothing stands against going on."),
        ({"accepted": ("age", "x")}, "although somebody had to accept: age, x."),
        ({"claimed": 3}, "was taken over with record 3"),
        ({"undecided": (still_open("a"), still_open("a"), still_open("b"))}, "whether 2 effects happened"),
    ],
)
def test_the_verdict_is_one_sentence_or_two(more: dict[str, Any], said: str) -> None:
    assert said in verdict(report(**more))


def test_a_run_that_is_over_needs_nobody() -> None:
    over = report()
    over = over.model_copy(update={"record": over.record.model_copy(update={"outcome": "succeeded"})})
    assert "has succeeded" not in verdict(over), "there is a newer checkpoint"
    assert "The run has succeeded: nobody has" in verdict(over.model_copy(update={"newest": 1}))


def test_nothing_that_came_from_the_run_is_alive() -> None:
    alive = {"id": ALIVE, "title": ALIVE}
    text = markdown(
        report(
            run=ALIVE,
            lost=(ALIVE,),
            undecided=(still_open("k").model_copy(update={"key": ALIVE, "tool": ALIVE, "arguments": ALIVE}),),
            decisions=(Decision(effect=ALIVE, outcome="done", by=ALIVE, at=NOW, reason=ALIVE),),
            freshness=(ProbeVerdict(probe=ALIVE, state="STALE", evidence=ALIVE, remedy=ALIVE),),
            warnings=(ALIVE,),
            reason=ALIVE,
            witness=ALIVE,
            left_out=(ALIVE,),
            migrations=(ALIVE,),
        ),
        checkpoint(plan=Plan(completed=(Step(**alive),)), summary=f"{ALIVE}\n# {ALIVE}\n</pre>"),
    )
    assert not [c for c in text if not c.isprintable() and c != "\n"]
    for line in text.splitlines():
        if line.startswith(("    ", "Look in the system")):
            continue  # a block of code, and what the report says itself
        assert "://" not in line
        assert "www." not in line
        bare = re.sub(r"\\.", "", line)
        assert not re.search(r"[<>`\[\]!&]", bare), line
        assert not re.search(r"\*(?!\*)", bare.strip("*")), line
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert {len(re.findall(r"(?<!\\)\|", re.sub(r"\\\\", "", row))) for row in rows} <= {3, 5}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('{"amount":12} & more!', '{"amount":12} & more!'),
        ("git_commit of a_b_c, issue # one", "git_commit of a_b_c, issue # one"),
        ("_a_ a__b é_é (_x_)", "\\_a\\_ a\\_\\_b é_é (\\_x\\_)"),
        ("# a #1 &#60; &lt; ![x](y)", "\\# a \\#1 \\&\\#60; \\&lt; \\!\\[x\\](y)"),
        ("a|b ~c~ <d> `e` \\", "a\\|b \\~c\\~ \\<d\\> \\`e\\` \\\\"),
        ("http://a www.b", "http:\\//a www\\.b"),
    ],
)
def test_only_what_would_be_alive_is_escaped(text: str, shown: str) -> None:
    assert f"- {shown}\n" in markdown(report(warnings=(text,)), checkpoint())


def test_a_section_of_a_hostile_size_is_cut() -> None:
    many = tuple(f"w{number}" for number in range(MOST_ROWS * 3))
    text = markdown(
        report(warnings=many, undecided=tuple(map(still_open, many))),
        checkpoint(summary="line\n" * 100_000),
    )
    assert text.count(f"… and {MOST_ROWS * 2} more: see `report.json`.") == 2
    assert len(text.splitlines()) < 3000


def test_what_is_left_of_each_limit() -> None:
    budget = Budget(tokens=1000, cost=2.5, seconds=60, iterations=3)
    spend = Spend(tokens_in=1, tokens_out=9, tokens_cached=10**6, cost=1, seconds=90.5, iterations=3)
    assert list(budget_left(budget, spend)) == [
        "tokens: 990 of 1,000",
        "iterations: 0 of 3",
        "seconds: 0.00 of 60.00",
        "USD: 1.50 of 2.50",
    ]
    assert list(budget_left(Budget(cost=1), Spend(cost=2, currency="EUR"))) == ["2.00 EUR spent of 1.00 USD"]
    assert list(budget_left(None, spend)) == []
