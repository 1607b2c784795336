"""The rules that hold for all probes: unknown is never fresh, and the most cautious answer wins."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver.errors import UsageError
from archiver.freshness import (
    Context,
    Finding,
    FreshnessReport,
    Policy,
    State,
    Verdict,
    all_probes,
    capture_all,
    judge_all,
    register,
    together,
    unregister,
)
from archiver.freshness.age import AgeProbe, span
from archiver.freshness.registry import MAX_CAPTURE, MAX_CAPTURED, MAX_EVIDENCE, MAX_FOREIGN
from archiver.model import JsonValue

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
AGE = AgeProbe()


def context(age: timedelta = timedelta(), **facts: object) -> Context:
    return Context(now=NOW, checkpoint_at=NOW - age, **facts)  # type: ignore[arg-type]  # keyword bundle


@dataclass
class Told:
    """A probe that does as told."""

    name: str
    judgement: Callable[[], Verdict]
    remembers: Callable[[], JsonValue] = lambda: 1

    def capture(self, context: Context) -> JsonValue:
        return self.remembers()

    def judge(self, captured: JsonValue, context: Context) -> Verdict:
        return self.judgement()


def verdict(state: State, probe: str = "p") -> Verdict:
    return Verdict(probe=probe, state=state, evidence="as told")


def fails() -> Verdict:
    raise RuntimeError("broken")


def hangs() -> Verdict:
    threading.Event().wait(30)
    return verdict("FRESH")


def exits() -> Verdict:
    raise SystemExit(0)


def test_what_a_run_states_is_remembered_without_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[threading.Thread] = []

    def capture(self: AgeProbe, context: Context) -> JsonValue:
        asked.append(threading.current_thread())
        raise SystemExit(0)

    monkeypatch.setattr(AgeProbe, "capture", capture)
    captured = capture_all(context())
    assert asked == [threading.current_thread()]
    assert "budget" in captured
    assert "age" not in captured


@pytest.mark.parametrize(
    ("judgement", "words"),
    [
        (fails, "RuntimeError: broken"),
        (hangs, "no answer within"),
        (exits, "SystemExit"),
        (lambda: None, "did not answer for itself"),
        (lambda: verdict("FRESH", "another"), "did not answer for itself"),
        (lambda: verdict("FRESH").model_copy(update={"accepted": True}), "did not answer for itself"),
    ],
    ids=["raises", "hangs", "exits", "nothing", "other name", "accepts itself"],
)
def test_a_probe_that_misbehaves_is_unknown(judgement: Callable[[], Verdict], words: str) -> None:
    report = judge_all({"p": 1}, context(timeout=0.2), probes=[Told("p", judgement)])
    assert report.state == "UNKNOWN"
    assert words in report.verdicts[0].evidence


def test_one_hanging_probe_does_not_hide_the_others() -> None:
    probes = [Told("a", hangs), Told("b", lambda: verdict("STALE", "b"))]
    report = judge_all({"a": 1, "b": 1}, context(timeout=0.2), probes=probes)
    assert [v.state for v in report.verdicts] == ["UNKNOWN", "STALE"]
    assert report.blockers == ("b",)


def test_a_failing_capture_leaves_only_itself_out() -> None:
    def broken() -> JsonValue:
        raise OSError("disk")

    def slow() -> JsonValue:
        threading.Event().wait(30)
        return 1

    probes = [
        Told("broken", fails, broken),
        Told("slow", fails, slow),
        Told("none", fails, lambda: None),
        Told("good", fails, lambda: {"x": [1]}),
    ]
    assert capture_all(context(timeout=0.2), probes=probes) == {"good": {"x": [1]}}


@pytest.mark.parametrize(
    "value",
    [{1, 2}, float("nan"), object(), b"bytes", "x" * MAX_CAPTURE, ["x"] * MAX_CAPTURE],
    ids=["set", "nan", "object", "bytes", "long text", "long list"],
)
def test_what_a_record_cannot_hold_is_left_out(value: JsonValue) -> None:
    probes = [Told("odd", fails, lambda: value), Told("good", fails, lambda: 1)]
    assert capture_all(context(), probes=probes) == {"good": 1}


def test_all_captures_together_are_bounded() -> None:
    probes = [Told(f"p{number}", fails, lambda: "x" * (MAX_CAPTURE - 2)) for number in range(9)]
    captured = capture_all(context(), probes=probes)
    assert len(captured) == MAX_CAPTURED // MAX_CAPTURE
    assert list(captured) == [f"p{number}" for number in range(len(captured))]


def test_what_was_captured_cannot_be_changed_afterwards() -> None:
    value = {"at": 1}
    captured = capture_all(context(), probes=[Told("p", fails, lambda: value)])
    value["at"] = 2
    assert captured == {"p": {"at": 1}}


class UnspeakableError(Exception):
    """An error that cannot be put into words."""

    def __str__(self) -> str:
        raise RuntimeError


def says(evidence: str, remedy: str | None = None) -> Callable[[], Verdict]:
    return lambda: Verdict(probe="p", state="STALE", evidence=evidence, remedy=remedy)


def raises(error: Exception) -> Callable[[], Verdict]:
    def judgement() -> Verdict:
        raise error

    return judgement


@pytest.mark.parametrize(
    "judgement",
    [
        says("\x1b]0;x\x07\u202e" * 1000, "\x1b[31m\n\ud800" * 1000),
        says("x" * 10_000_000),
        raises(RuntimeError("\x1b[31m" * 100_000)),
        raises(UnspeakableError()),
    ],
    ids=["steers", "long", "error that steers", "error without words"],
)
def test_what_a_probe_says_is_short_and_inert(judgement: Callable[[], Verdict]) -> None:
    (found,) = judge_all({"p": 1}, context(), probes=[Told("p", judgement)]).verdicts
    assert found.state in {"STALE", "UNKNOWN"}
    for text in (found.evidence, found.remedy or "-"):
        assert text.isprintable()
        assert 0 < len(text) <= MAX_EVIDENCE


def test_a_verdict_that_holds_what_it_must_not_is_unknown() -> None:
    for odd in (
        Verdict.model_construct(probe="p", state="FINE", evidence="x"),
        Verdict.model_construct(probe="p", state="FRESH", evidence=5),
        Verdict.model_construct(probe="p", state="FRESH"),
        verdict("FRESH").model_copy(update={"recorded": False}),
    ):
        report = judge_all({"p": 1}, context(), probes=[Told("p", lambda odd=odd: odd)])  # type: ignore[misc]  # the default binds the loop's verdict
        assert report.state == "UNKNOWN"


@pytest.fixture
def own() -> Iterator[Told]:
    probe = Told("moon", lambda: verdict("STALE", "moon"))
    register(probe)
    yield probe
    unregister("moon")


def test_a_registered_probe_is_asked(own: Told) -> None:
    register(own)  # again is the same
    assert own in all_probes()
    assert capture_all(context())["moon"] == 1
    report = judge_all({"moon": 1}, context())
    assert "moon" in report.blockers
    unregister("moon")
    assert own not in all_probes()
    assert "moon" not in judge_all({}, context()).warnings


@pytest.mark.parametrize("name", ["", "Moon", "1moon", "moon phase", "moon\n", "-x", "a" * 65, 5, None])
def test_what_cannot_be_a_name(name: str) -> None:
    with pytest.raises(UsageError, match="cannot be the name"):
        register(Told(name, fails))


def test_a_probe_shadows_no_other(own: Told) -> None:
    for name in ("age", "git_commit", "effects", "rollback", "moon"):
        with pytest.raises(UsageError, match="already"):
            register(Told(name, fails))
    assert own in all_probes()


def test_together_names_the_worst_first() -> None:
    found = together(
        "p",
        [
            Finding("FRESH", "a"),
            Finding("UNKNOWN", "b", "look"),
            Finding("STALE", "c", "mend"),
            Finding("UNKNOWN", "d", "look"),
        ],
    )
    assert (found.state, found.evidence, found.remedy) == ("STALE", "c; b; d; a", "mend; look")
    many = together("p", [Finding("FRESH", str(number)) for number in range(20)])
    assert (many.state, many.evidence) == ("FRESH", "0; 1; 2; 3; 4; 5; 6; 7; and 12 more")
    assert together("p", [], nothing="none").evidence == "none"


def test_names_in_the_record_that_this_version_does_not_know_are_unknown() -> None:
    report = judge_all({"age": AGE.capture(context()), "moon_phase": {"full": True}}, context())
    moon = next(v for v in report.verdicts if v.probe == "moon_phase")
    assert (moon.state, moon.evidence) == ("UNKNOWN", "this version has no such probe")
    assert report.state == "UNKNOWN"


def test_names_that_no_probe_can_have_do_not_pass_for_others() -> None:
    strange = {"rollback": 1, "effects": 1, "\x1b[31m": 1, "a b": 1, "": 1, "x" * 65: 1}
    report = judge_all({**strange, "mine": 1}, context(), ["others"], probes=[])
    assert [verdict.probe for verdict in report.verdicts] == ["mine", "others"]
    assert report.verdicts[1].evidence.startswith("the record holds 6 more captures")
    assert (report.verdicts[1].state, report.verdicts[1].accepted) == ("UNKNOWN", True)
    with pytest.raises(UsageError):
        judge_all({}, context(), ["others"], probes=[])


def test_a_record_of_very_many_probes_is_told_in_few_lines() -> None:
    many: dict[str, JsonValue] = {f"probe_{number}": 1 for number in range(5000)}
    report = judge_all(many, context(), policy=Policy(probes={"probe_4999": "block"}), probes=[])
    assert len(report.verdicts) == MAX_FOREIGN + 2
    assert report.blockers == ("probe_4999",)
    assert "others" in report.warnings
    alone = judge_all({}, context(), policy=Policy(probes={"others": "block"}), probes=[])
    assert alone.blockers == ("others",)


def test_what_a_record_does_not_hold_is_unknown() -> None:
    report = judge_all({}, context())
    assert {v.probe for v in report.verdicts} == {probe.name for probe in all_probes()}
    assert report.state == "UNKNOWN"
    assert (report.blockers, report.exit_code) == ((), 0)
    assert FreshnessReport.of([], Policy()).state == "UNKNOWN"


@pytest.mark.parametrize("states", list(product(["FRESH", "STALE", "UNKNOWN"], repeat=3)))
def test_the_most_cautious_wins(states: tuple[State, ...]) -> None:
    report = FreshnessReport.of([verdict(s, str(i)) for i, s in enumerate(states)], Policy())
    worst = "STALE" if "STALE" in states else "UNKNOWN" if "UNKNOWN" in states else "FRESH"
    assert report.state == worst
    assert len(report.blockers) == states.count("STALE")
    assert len(report.warnings) == states.count("UNKNOWN")
    assert report.exit_code == (3 if "STALE" in states else 0)


def test_accepting_lets_the_restore_go_on_and_stays_visible() -> None:
    probes = [Told("p", lambda: verdict("STALE")), Told("q", lambda: verdict("STALE", "q"))]
    captured: dict[str, JsonValue] = {"p": 1, "q": 1}
    report = judge_all(captured, context(), accept=["p"], probes=probes)
    assert (report.blockers, report.warnings, report.exit_code) == (("q",), ("p",), 3)
    assert [v.accepted for v in report.verdicts] == [True, False]
    assert report.state == "STALE"
    assert judge_all(captured, context(), accept=["p", "q"], probes=probes).exit_code == 0


def test_accepting_a_probe_that_nobody_knows_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="'agee'") as caught:
        judge_all({"later": 1}, context(), accept=["agee"])
    assert caught.value.remedy is not None
    assert caught.value.remedy.startswith("--accept takes one of: age, ")
    assert ", later" in caught.value.remedy


@pytest.mark.parametrize(
    ("policy", "blockers", "asks"),
    [
        (Policy(), ("q", "s"), ("q",)),
        (Policy(stale="warn"), ("q",), ("q",)),
        (Policy(unknown="block"), ("q", "s", "u"), ("q",)),
        (Policy(stale="warn", unknown="block"), ("q", "u"), ("q",)),
        (Policy(stale="ask", unknown="ask"), ("q", "s", "u"), ("q", "s", "u")),
        (Policy(probes={"s": "warn", "u": "block", "q": "warn"}), ("u",), ()),
        (Policy(probes={"f": "block"}), ("q", "s"), ("q",)),
    ],
)
def test_policy(policy: Policy, blockers: tuple[str, ...], asks: tuple[str, ...]) -> None:
    verdicts = [verdict("FRESH", "f"), verdict("STALE", "s"), verdict("UNKNOWN", "u")]
    verdicts.append(verdict("STALE", "q").model_copy(update={"ask": True}))
    report = FreshnessReport.of(verdicts, policy)
    assert (report.blockers, report.asks) == (blockers, asks)
    assert report.exit_code == (7 if asks else 3 if blockers else 0)
    accepted = [one.model_copy(update={"accepted": True}) for one in verdicts]
    assert FreshnessReport.of(accepted, policy).exit_code == 0


def test_a_policy_for_a_probe_that_nobody_has_is_not_silent() -> None:
    report = judge_all({}, context(), policy=Policy(probes={"git_comit": "block"}))
    assert report.blockers == ("git_comit",)
    (found,) = (one for one in report.verdicts if one.probe == "git_comit")
    assert (found.state, found.recorded) == ("UNKNOWN", False)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ('{"a": "stop"}', "a: 'stop' is none of block, warn, ask"),
        ("x", "not JSON"),
        ({"a": 1}, "a: 1 is none"),
    ],
)
def test_a_policy_that_cannot_be(value: object, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Policy.model_validate({"probes": value})


@pytest.mark.parametrize(
    ("age", "state"),
    [
        (timedelta(), "FRESH"),
        (timedelta(days=7), "FRESH"),
        (timedelta(days=7, seconds=1), "STALE"),
        (timedelta(minutes=-10), "FRESH"),
        (timedelta(minutes=-10, seconds=-1), "UNKNOWN"),
        (timedelta(days=-400), "UNKNOWN"),
    ],
)
def test_age(age: timedelta, state: State) -> None:
    found = AGE.judge(AGE.capture(context(age)), context(age))
    assert found.state == state
    assert "-" not in found.evidence.split("(")[0]


def test_the_age_limit_is_configurable() -> None:
    old = context(timedelta(hours=3), max_age=timedelta(hours=2))
    assert AGE.judge(AGE.capture(old), old).evidence.startswith("taken 3 hours ago")
    assert AGE.judge(AGE.capture(old), old).state == "STALE"


@given(seconds=st.integers(-(10**9), 10**9))
def test_a_checkpoint_from_the_future_is_never_fresh(seconds: int) -> None:
    at = context(timedelta(seconds=seconds), max_age=timedelta(days=7))
    fresh = AGE.judge(AGE.capture(at), at).state == "FRESH"
    assert fresh == (-600 <= seconds <= 7 * 86_400)


@pytest.mark.parametrize("captured", [None, 1, "x", {}, {"at": 1}, {"at": "yesterday"}, {"at": "2026-01-01"}])
def test_an_age_that_the_record_does_not_hold_is_unknown(captured: JsonValue) -> None:
    report = judge_all({"age": captured}, context(), probes=[AGE])
    assert report.state == "UNKNOWN"


@pytest.mark.parametrize(
    ("length", "words"),
    [
        (timedelta(), "0 seconds"),
        (timedelta(seconds=1), "1 second"),
        (timedelta(seconds=119), "119 seconds"),
        (timedelta(minutes=1), "1 minute"),
        (timedelta(hours=36), "36 hours"),
        (timedelta(days=1), "1 day"),
        (timedelta(days=9, hours=5), "9 days"),
    ],
)
def test_span(length: timedelta, words: str) -> None:
    assert span(length) == words
