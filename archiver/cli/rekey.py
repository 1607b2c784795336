"""`archiver rekey`: seal what is stored to the recipients of the present configuration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from archiver.cli.options import (
    BecauseOption,
    ConfigOption,
    IdentityOption,
    JsonOption,
    SigningKeyOption,
    StoreOption,
    WritersOption,
    interactive,
    open_for,
)
from archiver.errors import ArchiverError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from archiver.notes import Believed
    from archiver.rekey import Plan
    from archiver.setup import Setup

REVOKES_NOTHING = (
    "This revokes nothing: whoever could open these objects before, and kept a copy or a file key or can "
    "read old versions in the store, still can."
)


def rekey(
    run: Annotated[
        str | None, typer.Argument(help="Id of the run.", metavar="RUN", show_default=False)
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Every run of the store.")] = False,
    because: BecauseOption = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be rewritten.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    config: ConfigOption = None,
    store: StoreOption = None,
    identity: IdentityOption = None,
    writers: WritersOption = None,
    signing_key: SigningKeyOption = None,
    as_json: JsonOption = False,
) -> None:
    """Seal stored runs to the configured recipients.

    Rewrites headers only: where an object is sealed to other recipients than the configuration names, its key
    is wrapped anew, and the contents stay as they are, byte for byte. Notes that say how long a run is kept
    are put once more for the new recipients. Needs an identity that opens what is
    there and one that opens the result, and an administrator's signing key for the note that says what was
    done. It can be interrupted at any point and run again.

    It revokes nothing: whoever could open the objects before, and kept a copy or a file key or can read old
    versions in the store, still can. Change what must stay secret from them where it is used.

    In a pipe each line has: run, objects rewritten (with --dry-run: to be rewritten), their bytes, objects
    that were right before, the error's name.
    """
    from archiver import rekey as room
    from archiver.cli import output
    from archiver.cli.progress import counted as counting
    from archiver.cli.progress import shown

    if (run is None) != every:
        raise UsageError("name a run, or say --all", remedy="see `archiver rekey --help`")
    if not (yes or dry_run or (interactive() and not as_json)):
        raise UsageError(
            "rewriting has to be confirmed, and nobody is here to be asked",
            remedy="look at it with --dry-run, then run it with --yes",
        )
    setup = open_for("read", config, store, identity, writers, signing_key)
    runs = _runs(run, setup)
    if dry_run or not yes:
        with counting("runs looked at", as_json) as tick:
            planned = [_planned(plan, tick, said=dry_run and not as_json) for plan in room.plans(runs, setup)]
        if dry_run or not any(row.objects or row.repeats for row in planned):
            _end(planned, setup, as_json, dry_run=True)
            return
        if not _agreed(planned):
            output.line("Nothing was changed.")
            return
    rows: list[_Row] = []
    try:
        with shown(as_json) as progress:
            for done in room.rekey(runs, setup, reason=because, progress=progress):
                row = _Row(
                    done.run,
                    done.rewritten,
                    done.size,
                    done.fitting,
                    done.gone,
                    done.notes,
                    done.error,
                    done.repeated,
                )
                rows.append(row)
                row.say(as_json)
    except ArchiverError:
        if rows:
            output.note(f"Before this: {_total(rows, 'rewritten')} Run it again to go on.")
        raise
    _end(rows, setup, as_json, dry_run=False)


def _runs(run: str | None, setup: Setup) -> list[str]:
    """Of all runs also those of which nothing but notes is left."""
    from archiver.catalog import Catalog
    from archiver.rekey import noted_runs

    return sorted({*Catalog(setup).runs(), *noted_runs(setup)}) if run is None else [run]


@dataclass(frozen=True, slots=True)
class _Row:
    """One run, planned or done."""

    run: str
    objects: int
    size: int
    fitting: int
    gone: tuple[str, ...]
    notes: tuple[str, ...]
    error: ArchiverError | None
    repeats: tuple[Believed, ...] = ()
    """What is said once more, for the new recipients, of how long it is kept."""

    def say(self, as_json: bool) -> None:
        """In a pipe each run is said as soon as it is known."""
        from archiver.cli import output

        if not as_json and not output.tty():
            verdict = type(self.error).__name__ if self.error else ""
            output.row((self.run, self.objects, self.size, self.fitting, verdict))


def _planned(plan: Plan, tick: Callable[[], None], *, said: bool) -> _Row:
    tick()
    row = _Row(plan.run, len(plan.targets), plan.size, plan.fitting, plan.gone, (), plan.error, plan.repeats)
    if said:
        row.say(as_json=False)
    return row


def _agreed(planned: list[_Row]) -> bool:
    from archiver.cli import output

    _table(planned)
    output.line(f"{_total(planned, 'to rewrite')} {REVOKES_NOTHING}")
    _repeats(planned, "to be repeated")
    return typer.confirm("Rewrite the headers?", err=True)


def _end(rows: list[_Row], setup: Setup, as_json: bool, *, dry_run: bool) -> None:
    """Say what came of it all; ends with the code of what went wrong."""
    from archiver.cli import output, problems

    broken = [(row.run, row.error) for row in rows if row.error is not None]
    if as_json:
        output.document(_document(rows, setup, dry_run))
    elif output.tty():
        if dry_run:
            _table(rows)
        output.line(f"{_total(rows, 'to rewrite' if dry_run else 'rewritten')} {REVOKES_NOTHING}")
        for name in (name for row in rows for name in row.gone):
            output.problem("note", f"{name} is gone, so it was passed over", None, style="1;33")
    if not as_json:
        _repeats(rows, "to be repeated" if dry_run else "repeated")
    problems.report((f"run {run}: {error}", error) for run, error in broken)
    if broken:
        codes = {error.exit_code for _, error in broken}
        raise typer.Exit(4 if 4 in codes else max(codes))


def _repeats(rows: list[_Row], verb: str) -> None:
    """The notes that are put once more, so that they can be read with the new keys alone."""
    from archiver import noting
    from archiver.cli import output

    for row in rows:
        for one in row.repeats:
            text = f"{verb} for the new recipients: run {row.run} {noting.words(one)}"
            output.problem("note", text, None, style="1;33")


def _table(rows: list[_Row]) -> None:
    from archiver.cli import output
    from archiver.cli.text import size

    columns = ("RUN", "OBJECTS", "SIZE", "RIGHT ALREADY")
    shown = [(row.run, row.objects, size(row.size), row.fitting) for row in rows if row.objects]
    if shown:
        output.table(columns, shown, middle=("RUN",))


def _total(rows: list[_Row], verb: str) -> str:
    from archiver.cli.text import counted, number, size

    runs = sum(row.objects > 0 for row in rows)
    objects, fitting = sum(row.objects for row in rows), sum(row.fitting for row in rows)
    if not objects:
        return f"Nothing {verb}: {counted(fitting, 'object')} right already."
    where = f"{counted(objects, 'object')} of {counted(runs, 'run')}"
    return f"{where} {verb} ({size(sum(row.size for row in rows))}); {number(fitting)} right already."


def _document(rows: list[_Row], setup: Setup, dry_run: bool) -> dict[str, Any]:
    from archiver.cli.program import described

    return {
        "dry_run": dry_run,
        "recipients": [recipient.fingerprint for recipient in setup.recipients],
        "objects": sum(row.objects for row in rows),
        "bytes": sum(row.size for row in rows),
        "runs": [
            {
                "run": row.run,
                "objects": row.objects,
                "bytes": row.size,
                "fitting": row.fitting,
                "gone": list(row.gone),
                "notes": list(row.notes),
                "repeated": [one.note.kind for one in row.repeats],
                "error": described(row.error) if row.error else None,
            }
            for row in rows
        ],
        "note": REVOKES_NOTHING,
    }
