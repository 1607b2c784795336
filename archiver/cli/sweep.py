"""`archiver sweep`: archive completed runs, once or again and again."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from archiver.cli.options import (
    ConfigOption,
    IdentityOption,
    JsonOption,
    SigningKeyOption,
    StoreOption,
    WritersOption,
    open_for,
    settings_of,
)
from archiver.errors import AWAY, StoreError, SweepRunningError, UsageError

if TYPE_CHECKING:
    from archiver.config import Settings
    from archiver.setup import Setup
    from archiver.sources import Source
    from archiver.sweep.report import Report

TERMINATED = 143
"""The exit code of a sweep that SIGTERM has ended before it was through, as shells know it."""


def sweep(
    watch: Annotated[
        bool, typer.Option("--watch", help="Go on, with a look every `sweep.every`, until SIGTERM.")
    ] = False,
    every: Annotated[
        str | None,
        typer.Option("--every", help="With --watch: this instead of `sweep.every`.", metavar="TIME"),
    ] = None,
    source: Annotated[
        list[str] | None,
        typer.Option(
            "--source",
            help="Only this source: its kind, its path, or KIND=PATH for one that is not configured; "
            "repeatable.",
            metavar="KIND|PATH",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would be done with each run, and why.")
    ] = False,
    retention: Annotated[
        bool, typer.Option("--retention/--no-retention", help="Also change classes of what is stored.")
    ] = True,
    wait: Annotated[
        str | None,
        typer.Option("--wait", help="How long to wait for another sweep on this machine.", metavar="TIME"),
    ] = None,
    if_free: Annotated[
        bool, typer.Option("--if-free", help="End with 0 where another sweep is at work on this machine.")
    ] = False,
    log: Annotated[
        Path | None, typer.Option("--log", help="JSON lines file instead of `sweep.log`.", metavar="FILE")
    ] = None,
    config: ConfigOption = None,
    store: StoreOption = None,
    identity: IdentityOption = None,
    writers: WritersOption = None,
    signing_key: SigningKeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Archive completed runs.

    Delivers what waits in the spool, goes through all sources of `[sweep]`, saves each run that is complete
    and whose content is not in the store yet, and gives what is stored its class where this machine is the
    one to do that. It can be ended at any point and run again, and many machines may do it at once: each
    content is saved once. A run that goes on is left to a later sweep, and is no error. One at a time on a
    machine: another one ends with 3, or with --if-free with 0.

    In a pipe each run that was touched is a line: what became of it, run, number, outcome, stored bytes, kind
    of source, its path, why. With --dry-run each run is, and nothing is changed. What is wrong with a run
    counts once, as 4, until its files change; a source that is not there counts each time, as 2.
    """
    from archiver.sweep.sweeping import Options

    if watch and dry_run:
        raise UsageError("--watch and --dry-run exclude each other", remedy="leave one of them out")
    if every is not None and not watch:
        raise UsageError("--every goes with --watch", remedy="leave it out, or add --watch")
    settings = settings_of(config, store, identity, writers, signing_key)
    sources = _sources(settings, source or [])
    options = Options(dry_run, retention, _time("--wait", wait) or timedelta(), log)
    opening = (config, store, identity, writers, signing_key)
    with _ending() as stop:
        if watch:
            pause = _time("--every", every) or settings.sweep.every
            _watch(opening, sources, options, stop, pause, as_json)
            return
        try:
            report = _look(open_for("write", *opening, make=not dry_run), sources, options, stop, as_json)
        except SweepRunningError as error:
            if not if_free:
                raise
            _leave(error, as_json)
            return
    _say(report, as_json)
    if report.stopped:
        raise typer.Exit(TERMINATED)
    if report.exit_code:
        raise typer.Exit(report.exit_code)


def _leave(error: SweepRunningError, as_json: bool) -> None:
    """Say that another sweep does the work."""
    from archiver.cli import output

    if as_json:
        output.document({"sweep": None, "at_work": error.details})
    output.note(f"Nothing to do here: {error}.")


def _time(option: str, text: str | None) -> timedelta | None:
    from archiver.config.values import duration

    try:
        return duration(text) if text is not None else None
    except ValueError as error:
        raise UsageError(f"{option}: {error}", remedy="write it as 10m or 30s") from error


def _sources(settings: Settings, named: list[str]) -> list[Source]:
    """The configured sources, or those of them that are named; KIND=PATH needs no configuration."""
    from archiver.config.paths import absolute
    from archiver.config.sweeping import SourceSettings
    from archiver.sources import configured

    found: list[Source] = list(configured(settings))
    if not named:
        return found
    kinds = ("claude-code", "codex", "messages", "folder")
    chosen: list[Source] = []
    for word in named:
        kind, _, path = word.partition("=")
        if path and kind in kinds:
            one = SourceSettings.model_validate({"kind": kind, "path": absolute(path)})
            sweeping = settings.sweep.model_copy(update={"sources": (one,)})
            typed = configured(settings.model_copy(update={"sweep": sweeping}))
            chosen += [replace(place, configured=False) for place in typed]
            continue
        if path and "/" not in kind:
            raise UsageError(
                f"there is no kind of source {kind!r}",
                remedy=f"write KIND=PATH with one of these kinds: {', '.join(kinds)}",
            )
        where = None if word in kinds else absolute(word)
        fitting = [one for one in found if one.kind == word or one.path == where]
        if not fitting:
            there = ", ".join(f"{one.kind} {one.path}" for one in found) or "none"
            raise UsageError(
                f"no source is {word!r}; there are: {there}",
                remedy=f"name a kind ({', '.join(kinds)}), a path of those, or KIND=PATH",
            )
        chosen += fitting
    return list({(one.kind, one.path): one for one in chosen}.values())


class _Stop(threading.Event):
    """Set when it is to end."""

    idle = False
    """Whether nothing is under way."""


@contextmanager
def _ending() -> Iterator[_Stop]:
    """An event that SIGTERM sets; a second one ends the program as it ends others."""
    from archiver.cli import output

    stop = _Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = signal.getsignal(signal.SIGTERM)

    def end(_number: int, _frame: object) -> None:
        stop.set()
        signal.signal(signal.SIGTERM, before)
        if not stop.idle:
            output.note("Told to end: the runs under way are finished first.")

    signal.signal(signal.SIGTERM, end)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGTERM, before)


def _watch(
    opening: tuple[Any, ...],
    sources: list[Source],
    options: Any,
    stop: _Stop,
    every: timedelta,
    as_json: bool,
) -> None:
    """A look, and the next one so much later; what is wrong with one look is said, and the next one comes."""
    from archiver.cli import output

    setup: Setup | None = None
    while not stop.is_set():
        try:
            setup = setup or open_for("write", *opening)
            report = _look(setup, sources, options, stop, as_json)
            _say(report, as_json)
        except (SweepRunningError, StoreError, *AWAY) as error:
            output.problem("error", str(error), error.remedy)
        output.flush()
        stop.idle = True
        stop.wait(every.total_seconds())
        stop.idle = False
    output.note("Ended.")


def _look(setup: Setup, sources: list[Source], options: Any, stop: threading.Event, as_json: bool) -> Report:
    from archiver.cli import output
    from archiver.cli.progress import counted
    from archiver.sweep.sweeping import Sweep

    work = Sweep(setup, sources, options, stop)
    with counted("runs done", as_json) as tick:
        for row in work:
            tick()
            if not as_json and not output.tty():
                _line(row)
    return work.report


def _line(row: Any) -> None:
    from archiver.cli import output

    size = row.size if row.what == "archived" else ""  # of other runs nothing was stored, or is known
    output.row((row.what, row.run, row.seq or "", row.outcome, size, row.kind, row.key, row.why))


def _say(report: Report, as_json: bool) -> None:
    from archiver.cli import problems, swept

    if as_json:
        swept.document(report)
    else:
        swept.summary(report)
    problems.report((f"{where}: {error}", error) for where, error in report.errors)
