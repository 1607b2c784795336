"""`archiver advise`: whether a checkpoint pays, and how often."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from archiver.cli.completing import runs
from archiver.cli.options import (
    ConfigOption,
    IdentityOption,
    JsonOption,
    StoreOption,
    WritersOption,
    open_for,
)
from archiver.errors import UsageError

if TYPE_CHECKING:
    from archiver.policy.advice import Advice, Question
    from archiver.policy.course import Course

_LEAST = 1e-3
"""Seconds of work that a run has at stake at least: of none there is nothing to weigh."""
FORMULA = "A checkpoint pays when p × replay > create + store + p × restore."


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is no number; write 8 or 0.5") from None


def advise(
    run: Annotated[
        str | None,
        typer.Argument(
            help="Id of a stored run: its records say what an hour costs and what is at stake.",
            metavar="RUN",
            show_default=False,
            autocompletion=runs,
        ),
    ] = None,
    probability: Annotated[
        str | None,
        typer.Option(
            "--probability",
            "-p",
            help="That an interruption comes before the next checkpoint: `10%`.",
            metavar="P",
        ),
    ] = None,
    interruptions: Annotated[
        float | None,
        typer.Option(
            "--interruptions",
            parser=_number,
            help="How many come in an hour of work, on average: `0.05`. Unset: 5% of runs of four hours meet "
            "one.",
            metavar="N",
        ),
    ] = None,
    replay: Annotated[
        float | None,
        typer.Option(
            "--replay", parser=_number, help="What doing the work again costs, in US dollars.", metavar="USD"
        ),
    ] = None,
    hours: Annotated[
        str | None,
        typer.Option("--hours", help="The work since the last checkpoint: `4`, `90m`.", metavar="HOURS"),
    ] = None,
    per_hour: Annotated[
        float | None,
        typer.Option(
            "--per-hour",
            parser=_number,
            help="What an hour of the run costs, in US dollars: model, machine, people who wait.",
            metavar="USD",
        ),
    ] = None,
    create: Annotated[
        float | None,
        typer.Option(
            "--create",
            parser=_number,
            help="What one checkpoint costs to create and store. Unset: by `--size`, as measured.",
            metavar="USD",
        ),
    ] = None,
    restore: Annotated[
        float | None,
        typer.Option(
            "--restore",
            parser=_number,
            help="What a restore of it costs. Unset: by `--size`, as measured.",
            metavar="USD",
        ),
    ] = None,
    size: Annotated[
        str | None, typer.Option("--size", help="Of the state: `10MB`. Unset: 1 MB.", metavar="SIZE")
    ] = None,
    examples: Annotated[
        bool, typer.Option("--examples", help="Explain three worked examples instead.")
    ] = False,
    config: ConfigOption = None,
    store: StoreOption = None,
    identity: IdentityOption = None,
    writers: WritersOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say whether a checkpoint pays, and how often one does.

    One pays when p × replay is more than create + store + p × restore: what an interruption takes away on
    average, against what the checkpoint costs. How often follows from Young's interval, sqrt(2 × create /
    interruptions). Of a stored run its records say what is at stake; without one, `--replay` or `--hours` do.

    In a pipe each line has: what it is, how much it is.
    """
    from archiver.policy.advice import Question

    question = Question(
        probability=_share(probability),
        replay=replay,
        hours=_hours(hours),
        per_hour=per_hour,
        interruptions=interruptions,
        create=create,
        restore=restore,
        size=_size(size),
    )
    if examples:
        _refuse_beside_examples(run, question)
        _examples(as_json)
        return
    if run is None:
        _answer(question, None, as_json)
        return
    if question.hours is not None or question.replay is not None or question.size is not None:
        raise UsageError(
            "--hours, --replay and --size do not go with a run", remedy="its records say them: leave them out"
        )
    course = _course(run, (config, store, identity, writers))
    _answer(_of_run(question, course), course, as_json)


def _share(text: str | None) -> float | None:
    """`10%` or `0.1`."""
    if text is None:
        return None
    bare = text.strip()
    try:
        return float(bare.removesuffix("%")) / 100 if bare.endswith("%") else float(bare)
    except ValueError as error:
        raise UsageError(f"--probability {text!r} is no share", remedy="write it as 10% or 0.1") from error


def _hours(text: str | None) -> float | None:
    """`4` or a length of time with its unit."""
    from archiver.config.values import duration

    if text is None:
        return None
    try:
        return float(text)
    except ValueError:
        pass
    try:
        return duration(text).total_seconds() / 3600
    except ValueError as error:
        raise UsageError(f"--hours {text!r} is no length of time", remedy="write it as 4 or 90m") from error


def _size(text: str | None) -> int | None:
    from archiver.config.values import parse_size

    try:
        return None if text is None else cast("int", parse_size(text))
    except ValueError as error:
        raise UsageError(f"--size: {error}", remedy="write it as 10MB or 64MiB") from error


def _refuse_beside_examples(run: str | None, question: Question) -> None:
    from archiver.policy.advice import Question

    if run is not None or question != Question():
        raise UsageError("--examples has numbers of its own", remedy="leave out the others, or --examples")


def _course(run: str, opening: tuple[Any, ...]) -> Course:
    """The work of a stored run, by its verified records."""
    from archiver.catalog import Catalog
    from archiver.policy.course import course

    chain = Catalog(open_for("read", *opening)).chain(run)
    return course([link.record for link in chain.links], datetime.now(UTC))


def _of_run(question: Question, course: Course) -> Question:
    """The question about a run: what is at stake since its newest checkpoint, or was at most.

    An hour costs what the run says; where it cannot be told from it what `--per-hour` does, else the usual.
    """
    seconds = course.longest if course.since is None else course.since
    return replace(
        question,
        hours=max(seconds, _LEAST) / 3600,
        per_hour=course.per_hour if question.per_hour is None else question.per_hour,
        size=course.size,
    )


def _answer(question: Question, course: Course | None, as_json: bool) -> None:
    from archiver.cli import output
    from archiver.policy.advice import advise as answer

    advice = answer(question)
    if as_json:
        output.document({**_document(advice), "run": None if course is None else _run_document(course)})
    else:
        output.facts([*(_run_facts(course) if course else ()), *_facts(advice)])


def _examples(as_json: bool) -> None:
    from archiver.cli import output
    from archiver.policy.advice import EXAMPLES
    from archiver.policy.advice import advise as answer

    answers = [(what, answer(question)) for what, question in EXAMPLES]
    if as_json:
        output.document({"examples": [{"what": what, **_document(advice)} for what, advice in answers]})
        return
    output.line(FORMULA)
    for what, advice in answers:
        output.line()
        output.line(what)
        output.facts(_facts(advice))


def _run_facts(course: Course) -> list[tuple[str, object]]:
    from archiver.cli.text import counted
    from archiver.policy.words import span, usd

    dear = "; what an hour costs cannot be told from it: --per-hour says it"
    if course.per_hour is not None:
        dear = f", {usd(course.per_hour)} an hour"
    since = "the run has ended"
    if course.silent is not None:
        since = f"{span(course.silent)} without a word: it has died or waits, and none of that counts as work"
    elif course.since is not None:
        since = f"{span(course.since)}, if it works on"
    return [
        ("saved", f"{counted(course.checkpoints, 'checkpoint')} in {span(course.seconds)} of work{dear}"),
        ("between two", f"{span(course.mean)} of work on average, {span(course.longest)} at most"),
        ("since the newest", since),
    ]


def _facts(advice: Advice) -> list[tuple[str, object]]:
    from archiver.policy.words import share, span, usd

    one, per = advice.estimate, advice.interruptions
    p = share(one.probability)
    often = f"one every {span(3600 / per)} of work" if per else "none ever"
    return [
        ("at stake", f"{usd(one.replay)}: {span(advice.hours * 3600)} at {usd(advice.per_hour)} an hour"),
        ("interruption", f"{p}: {often}"),
        ("expected loss", f"{usd(one.expected_loss)} = p × replay = {p} × {usd(one.replay)}"),
        ("create + store", usd(one.create + one.store)),
        ("p × restore", f"{usd(one.probability * one.restore)} = {p} × {usd(one.restore)}"),
        ("verdict", one.words()),
        ("pays", "at no probability" if one.break_even is None else f"from {share(one.break_even)} on"),
        ("how often", f"every {span(advice.interval)} of work" if per else "never"),
        *(("assumed", words) for words in advice.assumed),
    ]


def _document(advice: Advice) -> dict[str, object]:
    one = advice.estimate
    return {
        "probability": one.probability,
        "at_stake_usd": one.replay,
        "expected_loss_usd": one.expected_loss,
        "create_and_store_usd": one.create + one.store,
        "restore_usd": one.restore,
        "cost_usd": one.cost,
        "pays": one.pays,
        "break_even_probability": one.break_even,
        "hours": advice.hours,
        "per_hour_usd": advice.per_hour,
        "interruptions_per_hour": advice.interruptions,
        "interval_seconds": advice.interval if math.isfinite(advice.interval) else None,
        "assumed": list(advice.assumed),
    }


def _run_document(course: Course) -> dict[str, object]:
    return {
        "checkpoints": course.checkpoints,
        "seconds": course.seconds,
        "mean_seconds": course.mean,
        "longest_seconds": course.longest,
        "since_newest_seconds": course.since,
        "silent_seconds": course.silent,
        "per_hour_usd": course.per_hour,
        "size": course.size,
    }
