"""When a checkpoint is saved, and when one pays."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver.errors import NoSuchRunError, UsageError
from archiver.model import BundleRef, Evidence, Record, Spend
from archiver.model.record import Sizes
from archiver.policy import (
    Costs,
    Decision,
    Estimate,
    Moment,
    Policy,
    decide,
    estimate,
    interval,
    probability,
    proves,
    rate,
)
from archiver.policy.advice import EXAMPLES, Question, advise
from archiver.policy.course import course
from archiver.policy.words import counted, share, span, usd

PROFILES = ("every-step", "milestones", "async")
REASONS: tuple[dict[str, Any], ...] = (
    {"phase_changed": True},
    {"proved": True},
    {"milestone": "build"},
    {"waiting": True},
)
MUSTS: tuple[dict[str, Any], ...] = ({"final": True}, {"forced": True}, {"effects": 2})
YOUNG = Moment(seconds=10, calls=2)
"""Below the floor in both."""
OLD = Moment(seconds=600, calls=20, since_save=1.0, last_save=0.5)

moments = st.builds(
    Moment,
    seconds=st.floats(0, 1e6),
    calls=st.integers(1, 10_000),
    since_save=st.none() | st.floats(0, 1e6),
    phase_changed=st.booleans(),
    proved=st.booleans(),
    milestone=st.sampled_from(["", "build"]),
    waiting=st.booleans(),
    effects=st.integers(0, 3),
    final=st.booleans(),
    forced=st.booleans(),
    size=st.integers(0, 10**9),
    last_save=st.none() | st.floats(0, 100),
)
policies = st.builds(
    Policy,
    profile=st.sampled_from(PROFILES),
    floor=st.floats(0, 1000),
    floor_calls=st.integers(0, 100),
    interruptions=st.floats(0, 10),
)


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("must", MUSTS)
def test_what_must_not_be_lost_is_saved_before_the_call_returns(profile: Any, must: dict[str, Any]) -> None:
    for moment in (YOUNG, OLD):
        decision = decide(Policy(profile), replace(moment, **must))
        assert (decision.save, decision.plain, decision.wait) == (True, False, True)


@given(policies, moments)
def test_what_must_not_be_lost_is_saved_whatever_else_holds(policy: Policy, moment: Moment) -> None:
    decision = decide(policy, moment)
    if moment.final or moment.forced or moment.effects:
        assert (decision.save, decision.plain, decision.wait) == (True, False, True)
    elif moment.seconds < policy.floor and moment.calls < policy.floor_calls:
        assert not decision.save
    assert decision == decide(policy, moment)
    assert decision.because


@given(policies, moments, st.sampled_from((*REASONS, *MUSTS)))
def test_one_more_reason_never_makes_less_of_a_call(
    policy: Policy, moment: Moment, more: dict[str, Any]
) -> None:
    before, after = decide(policy, moment), decide(policy, replace(moment, **more))
    assert after.save >= before.save
    if before.save:
        assert after.plain <= before.plain
        assert after.wait >= before.wait


@given(policies, moments, st.floats(0, 1e6))
def test_the_longer_ago_the_last_save_the_sooner_the_next(
    policy: Policy, moment: Moment, later: float
) -> None:
    since = moment.since_save or 0.0
    before = decide(policy, replace(moment, since_save=since))
    assert decide(policy, replace(moment, since_save=since + later)).save >= before.save


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("reason", [{}, *REASONS])
def test_nothing_is_saved_below_the_floor(profile: Any, reason: dict[str, Any]) -> None:
    policy = Policy(profile, floor=60, floor_calls=10, interruptions=1e9)
    for seconds, calls, above in ((59, 9, False), (60, 1, True), (0, 10, True)):
        moment = Moment(seconds=seconds, calls=calls, last_save=0.0, **reason)
        assert decide(policy, moment).save == above, (seconds, calls)
    assert decide(policy, Moment(12.0404, 3, **reason)).because == (
        "too early: 12 s and 3 calls; from 60 s or 10 calls on"
    )
    assert "too early: 0 s and" in decide(policy, Moment(0.00052, 3, **reason)).because


@pytest.mark.parametrize(
    ("profile", "reason", "plain", "wait"),
    [
        ("every-step", {}, True, True),
        ("every-step", {"proved": True}, False, True),
        ("every-step", {"waiting": True}, False, True),
        ("milestones", {"proved": True}, False, False),
        ("milestones", {"milestone": "build"}, False, False),
        ("milestones", {"phase_changed": True}, False, False),
        ("milestones", {"waiting": True}, False, True),
        ("async", {}, True, False),
        ("async", {"phase_changed": True}, False, False),
        ("async", {"waiting": True}, False, False),
    ],
)
def test_what_each_profile_does(profile: Any, reason: dict[str, Any], plain: bool, wait: bool) -> None:
    decision = decide(Policy(profile), replace(OLD, **reason))
    assert (decision.save, decision.plain, decision.wait) == (True, plain, wait)


def test_a_call_without_news_is_saved_once_the_interval_has_passed() -> None:
    policy = Policy(interruptions=2)  # one every 1,800 s; a save of 1 s: sqrt(2 × 1 × 1800) = 60 s
    moment = replace(OLD, last_save=1.0)
    assert decide(policy, replace(moment, since_save=59.9)) == Decision(
        save=False, because="nothing new: 60 s since the last save, and one every 60 s pays"
    )
    assert decide(policy, replace(moment, since_save=60)) == Decision(
        save=True, because="60 s since the last save, and one every 60 s pays", plain=True, wait=False
    )
    first = decide(policy, replace(moment, since_save=None, seconds=61))
    assert first == Decision(save=True, because="61 s of work, and one every 60 s pays")


def test_without_a_measured_save_the_interval_is_that_of_the_size() -> None:
    policy = Policy()
    assert policy.interval(0) < policy.interval(10**9)
    assert policy.interval(10**9) == interval(Costs().save_seconds(10**9), policy.interruptions)
    assert policy.interval(10**9, last_save=1.0) == interval(1.0, policy.interruptions)


def test_what_nothing_interrupts_is_saved_for_a_reason_only() -> None:
    policy = Policy(interruptions=0)
    long = replace(OLD, since_save=1e9)
    assert not decide(policy, long).save
    assert decide(policy, long).because == "nothing new, and nothing interrupts the run"
    assert decide(policy, replace(long, proved=True)).save


@pytest.mark.parametrize(
    ("moment", "because"),
    [
        ({"final": True, "effects": 1}, "the run ends"),
        ({"effects": 1, "forced": True}, "1 effect that cannot be done again"),
        ({"effects": 2}, "2 effects that cannot be done again"),
        ({"forced": True}, "asked for"),
        ({"waiting": True, "milestone": "x"}, "before a wait"),
        ({"milestone": "build", "proved": True}, "milestone: build"),
        ({"milestone": "a\x1b[2J\nb"}, r"milestone: a\x1b[2J b"),
        ({"milestone": "m" * 100}, f"milestone: {'m' * 59}…"),
        ({"proved": True, "phase_changed": True}, "evidence passed"),
        ({"phase_changed": True}, "phase change"),
    ],
)
def test_the_strongest_reason_is_said(moment: dict[str, Any], because: str) -> None:
    assert decide(Policy(), replace(OLD, **moment)).because == because
    assert decide(Policy("async"), OLD).because == "profile async"


def test_evidence_passes_with_exit_status_0_alone() -> None:
    failed, passed = Evidence(command="make", exit_status=1), Evidence(command="make test", exit_status=0)
    assert not proves(())
    assert not proves([failed, Evidence(command="look")])
    assert proves([failed, passed])


def test_the_worked_examples() -> None:
    first, migration, lint = (advise(question) for _, question in EXAMPLES)
    one = first.estimate
    assert one.expected_loss == pytest.approx(0.80)
    assert one.create + one.store == pytest.approx(0.12)
    assert one.probability * one.restore == pytest.approx(0.05)
    assert one.pays
    assert one.words() == "10 % × $8 = $0.80 against $0.12 + $0.05 (10 % × $0.50): pays"
    assert migration.estimate.replay == pytest.approx(37)
    assert migration.estimate.expected_loss == pytest.approx(1.85)
    assert migration.estimate.pays
    # $0.12 are 46.7 s of a run at $9.25 an hour; an interruption every 78 h: sqrt(2 × 46.7 s × 78 h) = 85 min
    assert migration.interval / 60 == pytest.approx(85.3, abs=0.1)
    assert not lint.estimate.pays
    assert lint.estimate.break_even is None


def test_the_lint_fix_does_not_pay_with_measured_costs_either() -> None:
    for size in (0, 1_000_000, 100_000_000):
        assert not advise(Question(hours=2 / 60, per_hour=9.25, size=size)).estimate.pays
        assert advise(Question(hours=4, per_hour=9.25, size=size)).estimate.pays


amounts = st.floats(0, 1e6)


@given(st.floats(0, 0.99), amounts, amounts, amounts, amounts)
def test_it_pays_from_the_break_even_on(
    p: float, replay: float, create: float, store: float, restore: float
) -> None:
    one = Estimate(p, replay, create, store, restore)
    least = one.break_even
    if least is None:
        assert not one.pays
    elif abs(p - least) > 1e-6:
        assert one.pays == (p > least)


def test_what_costs_more_than_the_work_pays_at_no_probability() -> None:
    assert Estimate(0.5, replay=1, create=1.5).break_even is None
    assert Estimate(0.5, replay=1, create=0.1, restore=1).break_even is None
    assert Estimate(0.5, replay=1, create=0.1).break_even == 0.1


@given(st.floats(0.001, 0.999), st.floats(0.01, 1e4))
def test_probability_and_rate_say_the_same(p: float, hours: float) -> None:
    assert probability(rate(p, hours), hours) == pytest.approx(p)


@pytest.mark.parametrize(("cost", "per_hour"), [(0.5, 0.0128), (46.7, 0.0128), (2, 1)])
def test_no_other_interval_wastes_less(cost: float, per_hour: float) -> None:
    def waste(between: float) -> float:
        """For a second of work: what checkpoints take, and half an interval for each interruption."""
        return cost / between + per_hour / 3600 * between / 2

    best = interval(cost, per_hour)
    assert all(waste(best) < waste(best * factor) for factor in (0.5, 0.9, 1.1, 2))
    assert math.isinf(interval(cost, 0))


def test_costs_grow_with_the_size_and_with_the_hour() -> None:
    costs = Costs()
    small, large = (estimate(costs, size, 0.1, 1, per_hour=10) for size in (10**5, 10**8))
    assert small.create < large.create
    assert small.store < large.store
    assert small.restore < large.restore
    # 100 MB at 45 MB/s and a start are 2.37 s; at $10 an hour $0.0066, and three requests for $0.000015
    assert large.create == pytest.approx(0.0066 + 0.000015, abs=2e-5)
    # 16 MB for 180 days at $0.023 a GB and month
    assert large.store == pytest.approx(0.016 * 0.023 * 6)
    assert estimate(costs, 10**5, 0.1, 1, per_hour=100).create > small.create


def test_two_of_stake_hours_and_price_make_the_third() -> None:
    assert advise(Question(replay=8, hours=4)).per_hour == 2
    assert advise(Question(replay=8, per_hour=4)).hours == 2
    assert advise(Question(hours=2, per_hour=4)).estimate.replay == 8
    assert advise(Question(hours=2, per_hour=4, probability=0.5)).interruptions == rate(0.5, 2)
    both = advise(Question(hours=2, per_hour=4, probability=0.5, interruptions=3, create=1, restore=1))
    assert (both.estimate.probability, both.interruptions, both.assumed) == (0.5, 3, ())
    assumed = advise(Question(replay=8)).assumed
    assert [words.split(" ")[0] for words in assumed] == ["an", "an", "create", "restore"]


@pytest.mark.parametrize(
    ("question", "said"),
    [
        (Question(), "nothing says what an interruption would take away"),
        (Question(replay=1, hours=1, per_hour=1), "say the same twice"),
        (Question(hours=1, probability=1), "--probability cannot be 100 %"),
        (Question(hours=1, probability=-0.1), "--probability cannot be -0.1"),
        (Question(hours=0), "--hours cannot be 0"),
        (Question(hours=1, per_hour=0), "--per-hour cannot be 0"),
        (Question(replay=0), "--replay cannot be 0"),
        (Question(hours=math.nan), "--hours cannot be nan"),
        (Question(hours=1, interruptions=math.inf), "--interruptions cannot be inf"),
        (Question(hours=1, create=-1), "--create cannot be -1"),
        (Question(hours=1, size=-1), "--size cannot be -1"),
    ],
)
def test_numbers_that_make_no_sense_are_refused(question: Question, said: str) -> None:
    with pytest.raises(UsageError, match=said) as caught:
        advise(question)
    assert caught.value.remedy


START = datetime(2026, 3, 1, tzinfo=UTC)


def record(seq: int, minutes: float, **other: Any) -> Record:
    return Record(
        store="s", run="r", task="t", seq=seq, schema_version=2, min_reader=2, created_at=START,
        recorded_at=START, checkpoint_at=START + timedelta(minutes=minutes), writer="w", recipients=(),
        **{
            "retention": "live",
            "outcome": "running",
            "sizes": Sizes(raw=5),
            "bundle": BundleRef(
                name="b", payload_sha256="0" * 64, payload_length=1, manifest_sha256="0" * 64, members=1,
                unpacked=1,
            ),
            **other,
        },
    )  # fmt: skip


def test_the_course_of_a_run_by_its_records() -> None:
    claim = record(3, 500, kind="claim", bundle=None)
    records = [record(1, 10), record(2, 40), claim, record(4, 60)]
    found = course(records, START + timedelta(minutes=75))
    assert (found.checkpoints, found.seconds, found.longest) == (3, 3600, 1800)
    assert (found.mean, found.since, found.size, found.per_hour) == (1200, 900, 5, None)
    assert (found.silent, course(records, START + timedelta(minutes=150)).since) == (None, 5400)


def test_the_time_since_a_run_died_is_no_work() -> None:
    """Not that of one that says nothing any more, nor what lies between a death and a claim."""
    spent = Spend(seconds=59, cost=1)
    records = [record(1, 1, spend=spent)]
    found = course(records, START + timedelta(minutes=12))
    assert (found.since, found.silent, found.per_hour) == (None, 660, None)
    claim = record(2, 1, kind="claim", bundle=None)
    claim = claim.model_copy(update={"recorded_at": START + timedelta(minutes=10)})
    found = course([*records, claim], START + timedelta(minutes=12))
    assert (found.since, found.silent) == (120, None)
    minute = record(1, 1, spend=spent.model_copy(update={"seconds": 60.0}))
    assert course([minute], START).per_hour == 60


def test_the_course_goes_by_the_work_that_the_run_counted() -> None:
    """Between a death and a resume no work is done, however long that takes."""
    first = record(1, 10, spend=Spend(seconds=600, cost=1))
    last = record(2, 10_000, outcome="failed", spend=Spend(seconds=1800, cost=4))
    found = course([first, last], START + timedelta(days=30))
    assert (found.seconds, found.longest, found.per_hour, found.since) == (1800, 1200, 8, None)
    euros = last.model_copy(update={"spend": Spend(seconds=1800, cost=4, currency="EUR")})
    assert course([first, euros], START).per_hour is None


def test_a_run_without_a_checkpoint_has_no_course() -> None:
    with pytest.raises(NoSuchRunError, match="run r has no checkpoint yet"):
        course([record(1, 1, kind="claim", bundle=None)], START)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (span(0.42), "0.42 s"),
        (span(12), "12 s"),
        (span(119.9), "120 s"),
        (span(520), "8.7 min"),
        (span(14_400), "4 h"),
        (span(78 * 3600), "78 h"),
        (span(12 * 86_400), "12 days"),
        (usd(0), "$0"),
        (usd(37), "$37"),
        (usd(1234.5), "$1,234.50"),
        (usd(0.8), "$0.80"),
        (usd(0.025), "$0.025"),
        (usd(0.00132), "$0.0013"),
        (usd(0.0000153), "$0.000015"),
        (usd(1e-9), "under $0.000001"),
        (share(0.1), "10 %"),
        (share(0.000427), "0.0427 %"),
        (counted(1, "call"), "1 call"),
        (counted(2000, "call"), "2,000 calls"),
    ],
)
def test_how_numbers_are_said(said: str, words: str) -> None:
    assert said == words
