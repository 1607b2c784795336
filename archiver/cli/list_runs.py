"""`archiver list`: the newest checkpoint of each run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from archiver.cli.options import (
    OUTCOMES,
    ConfigOption,
    IdentityOption,
    JsonOption,
    Outcome,
    StoreOption,
    WritersOption,
    open_for,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from archiver.catalog import Head
    from archiver.setup import Setup
    from archiver.tagging.outlook import Outlooks
    from archiver.witnessed import Witnessed


def list_runs(
    newest: Annotated[
        int | None,
        typer.Option(
            "--newest",
            help="Only the N runs saved last, found quickly through hints; a run without a hint is missing.",
            metavar="N",
            min=1,
        ),
    ] = None,
    task: Annotated[str | None, typer.Option("--task", help="Only runs of this task.", metavar="ID")] = None,
    outcome: Annotated[
        Outcome | None, typer.Option("--outcome", help=f"Only runs that are {OUTCOMES}.", metavar="OUTCOME")
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            "--since", help="Only runs saved since then: `2026-03-01`, a full time, or `7d`.", metavar="TIME"
        ),
    ] = None,
    schema: Annotated[
        str | None,
        typer.Option(
            "--schema",
            help="Every checkpoint, not only the newest, that was saved in such a schema version: `2`, `<2`, "
            "`>=2`.",
            metavar="VERSION",
        ),
    ] = None,
    long: Annotated[
        bool,
        typer.Option("--long", help="Also the time of the state, the dialect and the objective of each run."),
    ] = False,
    config: ConfigOption = None,
    store: StoreOption = None,
    identity: IdentityOption = None,
    writers: WritersOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the newest checkpoint of each run.

    Goes through all runs, unless `--newest` asks for a few. A run whose hint was never written, because its
    writer died in that moment or could not, appears only in the full list.

    In a pipe each line has: run, number, saved at, outcome, task, stored bytes, credentials replaced, phase,
    note, expires on. The last says until when the newest checkpoint is there at least: a day, `held`,
    `removed`, or `erased` where a writer has saved something under an erased run since. With `--long` four
    more follow: state of (when what was saved was so), dialect, objective, and how many outputs limits had no
    room for. At a terminal the objective is cut, and without `--long` it is there only where it has room.

    A run whose record cannot be read is listed with its error, whatever is asked for; so is one of which the
    store has less than was seen before, or nothing any more.

    `--schema '<2'` finds what has to be drained before a release stops reading a version: all records of all
    runs are read, and `archiver migrate` saves the newest checkpoint of a run anew.
    """
    from archiver import draining
    from archiver.cli import listed, output, problems
    from archiver.cli.program import described
    from archiver.cli.text import counted, since_when
    from archiver.tagging.outlook import Outlooks

    start = since_when(since) if since else None
    _refuse_both(newest, schema)
    versions = None if schema is None else draining.versions(schema)
    setup = open_for("read", config, store, identity, writers)
    found = _Found(as_json, long, Outlooks(setup) if schema is None else None)
    stopped = _collect(setup, newest, versions, lambda head: _wanted(head, task, outcome, start), found)
    if as_json:
        errors = [{"run": h.run, "seq": h.seq, **described(h.error)} for h in found.broken if h.error]
        output.document({"runs": found.shown(), "errors": errors, "stopped": stopped or None})
    else:
        listed.show(found.shown(), long=long)
        if output.tty() and not found.shown():
            output.line(_none(schema, filtered=start is not None or bool(task or outcome)))
    if stopped:
        output.problem("note", stopped, None, style="1;33")
    for warning in found.warnings:
        output.problem("warning", warning, None, style="1;33")
    if found.away:
        runs = f"the newest record of {counted(found.away, 'run')}"
        text = f"{runs} was sealed while KMS was away, and not to its key"
        output.problem("warning", text, "archiver rekey --all --dry-run", style="1;33")
    problems.report((f"run {h.run}, record {h.seq}: {h.error}", h.error) for h in found.broken if h.error)
    if found.broken:
        raise typer.Exit(max(head.error.exit_code for head in found.broken if head.error))


def _refuse_both(newest: int | None, schema: str | None) -> None:
    if newest is not None and schema is not None:
        from archiver.errors import UsageError

        raise UsageError(
            "--newest looks at a few runs, --schema at all checkpoints", remedy="leave out one of the two"
        )


def _collect(
    setup: Setup,
    newest: int | None,
    versions: Callable[[int], bool] | None,
    wanted: Callable[[Head], bool],
    found: _Found,
) -> str:
    """Fill `found`; returns why the search ended early, if it did."""
    from datetime import UTC, datetime

    from archiver.witnessed import Witnessed

    witnessed = Witnessed(setup, datetime.now(UTC))
    stopped = ""
    if newest is None:
        from archiver.cli.progress import counted

        what = "runs read" if versions is None else "checkpoints found"
        with counted(what, found.as_json) as tick:
            for head in _all(setup, versions, witnessed):
                tick()
                if wanted(head):
                    found.add(head)
    else:
        from archiver import newest as room

        answer = room.newest(setup, newest, wanted)
        for head in witnessed.heads(answer.heads):
            found.add(head)
        stopped = answer.stopped
    found.witnessed = witnessed.warnings
    return stopped


def _all(setup: Setup, versions: Callable[[int], bool] | None, witnessed: Witnessed) -> Iterator[Head]:
    """Newest records or, of some schema versions, all checkpoints; and the runs that are gone though seen."""
    from archiver import draining
    from archiver.catalog import Catalog

    if versions is not None:
        yield from draining.checkpoints(setup, versions)
        yield from witnessed.vanished(set(Catalog(setup).runs()))
        return
    known: set[str] = set()
    for head in witnessed.heads(Catalog(setup).heads()):
        known.add(head.run)
        yield head
    yield from witnessed.vanished(known)


class _Found:
    """What is going to be shown, in as little memory as that takes: there may be very many runs."""

    def __init__(self, as_json: bool, long: bool, outlooks: Outlooks | None) -> None:
        """Without `outlooks`, for checkpoints that are not the newest, nothing is said of their end."""
        self.as_json = as_json
        self._long = long
        self._outlooks = outlooks
        self._rows: list[tuple[tuple[float, str], Any]] = []
        self.broken: list[Head] = []
        self.away = 0
        """Runs whose newest record lacks a recipient that was away."""
        self.witnessed: tuple[str, ...] = ()

    @property
    def warnings(self) -> tuple[str, ...]:
        """What could not be looked at."""
        return (*self.witnessed, *(self._outlooks.warnings if self._outlooks else ()))

    def add(self, head: Head) -> None:
        from archiver import jsonio
        from archiver.cli import listed, output
        from archiver.newest import place

        if head.error is not None:
            self.broken.append(head)
        self.away += bool(head.missing)
        outlook = self._outlooks.of(head.record) if self._outlooks and head.record is not None else None
        if not self.as_json:
            self._rows.append((place(head), listed.row(head, outlook, long=self._long)))
        elif head.record is not None:
            document = {**head.record.document(), **listed.kept(outlook)}
            self._rows.append((place(head), document if output.tty() else jsonio.held(document)))

    def shown(self) -> list[Any]:
        """Rows or documents, newest first; what cannot be read before all."""
        self._rows.sort(key=lambda row: row[0])
        return [row for _, row in self._rows]


def _none(schema: str | None, *, filtered: bool) -> str:
    if schema is not None:
        return f"No {'such ' if filtered else ''}checkpoint was saved in schema {schema}."
    return "No such runs." if filtered else "No runs."


def _wanted(head: Head, task: str | None, outcome: str | None, start: datetime | None) -> bool:
    record = head.record
    return (
        record is None
        or head.error is not None
        or (
            (task is None or record.task == task)
            and (outcome is None or record.outcome == outcome)
            and (start is None or record.recorded_at >= start)
        )
    )
