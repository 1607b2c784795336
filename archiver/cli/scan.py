"""`archiver scan`: what credentials are in files, or in what is stored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from archiver.cli.options import (
    ConfigOption,
    IdentityOption,
    JsonOption,
    PacksOption,
    StoreOption,
    WritersOption,
    open_for,
    refuse_empty,
    settings_of,
    with_packs,
)

if TYPE_CHECKING:
    from archiver.config import Settings
    from archiver.redact import Bytes
    from archiver.scan import Scanned


def scan(
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            help="Files and folders, `-` for standard input; with --stored ids of runs.",
            metavar="PATH",
            show_default=False,
        ),
    ] = None,
    stored: Annotated[
        bool,
        typer.Option("--stored", help="Scan the bundles of the store, of all runs or of those named."),
    ] = False,
    newest: Annotated[
        bool, typer.Option("--newest", help="With --stored: only the newest checkpoint of each run.")
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print errors alone; the exit code says the rest.")
    ] = False,
    pack: PacksOption = None,
    config: ConfigOption = None,
    store: StoreOption = None,
    identity: IdentityOption = None,
    writers: WritersOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say what credentials are in files, or in what is stored, without archiving anything.

    Prints the receipt: rules, counts, places and fingerprints under a key of this scan alone, and what has to
    be rotated; never a value. Rules and packs of the configuration are used, and values that are known from
    the environment and from files of credentials, such as `.env` in the current folder. Folders are walked
    without following links; packed files are looked into as far as possible. With --stored every bundle is
    opened and scanned with the rules and known values of today: what an older version has missed is found.

    Exits 0 when nothing was found, 1 when something was, and with the code of the error when a file or a
    bundle could not be read.

    In a pipe each line has: rule, kind, how often, fingerprint, places; with --stored run and number first.
    """
    from dataclasses import replace

    from archiver.errors import UsageError

    names = paths or []
    if stored:
        from archiver.cli.scan_stored import scan_stored

        setup = open_for("read", config, store, identity, writers)
        setup = replace(setup, settings=with_packs(setup.settings, pack))
        raise typer.Exit(scan_stored(setup, names, newest=newest, quiet=quiet, as_json=as_json))
    if not names:
        raise UsageError(
            "nothing was named to be scanned", remedy="name files or folders, `-`, or say --stored"
        )
    given = {"--newest": newest, "--store": store, "--identity": identity, "--writers": writers}
    for flag in (name for name, value in given.items() if value):
        raise UsageError(f"{flag} is about what is stored", remedy="say --stored too, or leave it out")
    refuse_empty(names)
    scanned = _scan(names, with_packs(settings_of(config), pack), quiet or as_json)
    if as_json:
        from archiver.cli import output

        output.document(_document(scanned))
    elif not quiet:
        _say(scanned)
    _problems(scanned)
    raise typer.Exit(scanned.exit_code)


def _scan(names: list[str], settings: Settings, silent: bool) -> Scanned:
    from archiver import scan as room
    from archiver.cli.progress import shown
    from archiver.scan.loading import redactor_of

    given = _standard_input() if "-" in names else None
    with shown(silent) as progress:
        progress.stage("read the rules")  # after a change they are compiled first, which takes seconds
        redactor = redactor_of(settings)
        return room.scan(dict.fromkeys(names), redactor, standard_input=given, progress=progress)


def _standard_input() -> Bytes:
    import sys

    from archiver.errors import InputNotFoundError
    from archiver.scan.inputs import standard_input

    try:
        return standard_input(sys.stdin.buffer)
    except OSError as error:
        raise InputNotFoundError(f"standard input cannot be read: {error.strerror}") from error


def _say(scanned: Scanned) -> None:
    from archiver.cli import output
    from archiver.cli.receipts import not_searched, rotate, table
    from archiver.cli.text import counted, size

    receipt = scanned.receipt
    if output.tty():
        output.line(f"{counted(scanned.files, 'file')} looked at, {size(scanned.bytes)}.")
        output.line(
            f"{counted(receipt.rules, 'rule')} in force, version {receipt.rules_version}, {receipt.engine}."
        )
    table(receipt)
    not_searched(receipt)
    for one in scanned.unseen:
        output.problem("note", f"{one.name}: {one.why}", None, style="1;33")
    passed = scanned.skipped
    for one in passed[:_FEW]:
        output.problem("note", f"{one.name} was passed over: {one.why}", None, style="1;33")
    if len(passed) > _FEW:
        text = f"{len(passed) - _FEW} more were passed over; --json names them"
        output.problem("note", text, None, style="1;33")
    if scanned.files or not scanned.problems:
        rotate(receipt)


_FEW = 10
"""Files passed over that are named one by one."""


def _problems(scanned: Scanned) -> None:
    from archiver.cli import problems

    problems.report((str(one.error), one.error) for one in scanned.problems)


def _document(scanned: Scanned) -> dict[str, Any]:
    from archiver.cli.program import described
    from archiver.cli.receipts import rotations

    return {
        "files": scanned.files,
        "bytes": scanned.bytes,
        "receipt": scanned.receipt.document(),
        "rotate": rotations(scanned.receipt),
        "not_looked_into": [{"name": one.name, "why": one.why} for one in scanned.unseen],
        "passed_over": [{"name": one.name, "why": one.why} for one in scanned.skipped],
        "errors": [{"name": one.name, **described(one.error)} for one in scanned.problems],
        "exit_code": scanned.exit_code,
    }
