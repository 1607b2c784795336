"""`archiver witness list` and `archiver witness forget`: what is remembered of runs outside their store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from archiver.cli.options import ConfigOption, JsonOption, RunArgument, interactive, settings_of

if TYPE_CHECKING:
    from archiver.config import Settings
    from archiver.witness import FolderWitness, Remembered

_SHOWN = 12
"""Digits of a digest in the table."""


def witness_list(config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """List the newest record that was seen of each run.

    This memory lies outside the store, on this machine or where trust.witness says. A store that has less
    than was seen was rolled back; one that has another record under a number that was seen, too, is refused.

    In a pipe each line has: store, run, number, when the record was made, when it was seen, its digest, what
    is wrong with the memory.
    """
    from archiver.cli import output, problems

    settings = settings_of(config)
    known = list(_witness(settings))
    if as_json:
        output.document({"remembered": [_document(one) for one in known]})
    else:
        output.table(
            ("STORE", "RUN", "NO", "RECORDED", "SEEN", "DIGEST", "WRONG"),
            [_row(one) for one in known],
            middle=("STORE", "RUN"),
            fold=("WRONG",),
        )
    problems.report((str(one.error), one.error) for one in known if one.error)
    if codes := {one.error.exit_code for one in known if one.error}:
        raise typer.Exit(max(codes))


def witness_forget(
    run: RunArgument,
    store_id: Annotated[
        str | None,
        typer.Option("--store-id", help="Store of the run; else the configured one.", metavar="ID"),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Forget what was seen of a run, so that its store is believed anew.

    For a store that was taken back on purpose, a run that was deleted on purpose, or a memory that is
    damaged. Nothing in the store is changed. Until a restore or a save sees the run again, nobody notices
    what was taken from it. Shows what would be forgotten and asks; where nobody can be, --yes is needed.
    """
    from archiver.cli import output
    from archiver.errors import UsageError

    settings = settings_of(config)
    witness = _witness(settings)
    one = _only(witness, settings, run, store_id)
    said = _said(one)
    if not yes:
        if as_json or not interactive():
            raise UsageError(
                f"forgetting has to be confirmed, and nobody is here to be asked: {said}",
                remedy="with --yes it is forgotten",
            )
        output.note(said)
        if not typer.confirm("Forget it?", err=True):
            output.line("Nothing was changed.")
            return
    witness.forget(one.store, one.run)
    if as_json:
        output.document({"forgotten": _document(one)})
    else:
        output.line(f"Forgotten: {said}")


def _witness(settings: Settings) -> FolderWitness:
    from archiver.errors import ConfigError
    from archiver.setup.witnesses import witness_of

    witness, doubts = witness_of(settings)
    if witness is None:
        raise ConfigError(
            "; ".join(doubts) or "trust.use_witness is false: nothing is remembered of runs",
            remedy="set trust.use_witness or trust.witness in archiver.toml",
        )
    return witness


def _only(witness: FolderWitness, settings: Settings, run: str, store_id: str | None) -> Remembered:
    """What is remembered of the run in one store: the named one, the configured one, or the only one."""
    from archiver.errors import NoSuchRunError, UsageError

    wanted = store_id or settings.store.id
    found = [one for one in witness if one.run == run and wanted in (None, one.store)]
    if len(found) > 1:
        raise UsageError(
            f"runs named {run!r} of {len(found)} stores are remembered",
            remedy=f"name one with --store-id: {', '.join(one.store for one in found)}",
        )
    if not found:
        of = f" of store {wanted}" if wanted else ""
        raise NoSuchRunError(
            f"nothing is remembered of run {run!r}{of}", remedy="`archiver witness list` shows what is"
        )
    return found[0]


def _said(one: Remembered) -> str:
    from archiver.witness import moment

    if one.seen is None:
        return f"run {one.run} of store {one.store}: a memory that cannot be read, {one.where}"
    return (
        f"run {one.run} of store {one.store}: record {one.seen.seq} of {moment(one.seen.recorded_at)}, "
        f"seen on {moment(one.seen.seen_at)}"
    )


def _row(one: Remembered) -> tuple[object, ...]:
    from archiver.cli import output

    seen = one.seen
    if seen is None:
        return one.store, one.run, "", "", "", "", str(one.error)
    digest = seen.sha256[:_SHOWN] if output.tty() else seen.sha256
    return one.store, one.run, seen.seq, output.when(seen.recorded_at), output.when(seen.seen_at), digest, ""


def _document(one: Remembered) -> dict[str, object]:
    from archiver.cli.program import described

    return {
        "store": one.store,
        "run": one.run,
        "where": one.where,
        **(one.seen.document() if one.seen else {}),
        "error": described(one.error) if one.error else None,
    }
