"""`archiver recipients list`: who can open what is saved, and what was."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from archiver.cli.options import (
    ConfigOption,
    IdentityOption,
    JsonOption,
    StoreOption,
    WritersOption,
    open_for,
    settings_of,
)
from archiver.errors import UsageError

if TYPE_CHECKING:
    from archiver.recipients import Configured, RunSealed

_SHOWN = 8
"""Digits of a fingerprint in the table of runs; the table of recipients has all of them."""
_WAYS = {
    "here": "own identity",
    "kms": "KMS",
    "offline": "identity elsewhere",
}


def recipients_list(
    run: Annotated[
        str | None, typer.Option("--run", help="Also whom this run is sealed to.", metavar="RUN")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Also whom each run is sealed to.")] = False,
    config: ConfigOption = None,
    store: StoreOption = None,
    identity: IdentityOption = None,
    writers: WritersOption = None,
    as_json: JsonOption = False,
) -> None:
    """List who can open what is saved.

    Shows the recipients that the next save seals to. With --run or --all also to whom the newest record of a
    run and its bundle are sealed, which of your identities open them, and what to think of before a key is
    lost: a run that only one key opens, or none of the break-glass recipients.

    In a pipe a recipient is a line of: recipient, fingerprint, kind, what opens it (here, kms or offline),
    yes or no (opens here), its text, break-glass or -. An object is a line of: object, run, number, name,
    fingerprints, your own of them, signed or hint, remarks. Where your identities do not open an object, its
    header is only a hint.
    """
    from archiver.cli import output, problems
    from archiver.recipients import configured, of_runs
    from archiver.setup import keys

    if run is not None and every:
        raise UsageError("--run names one run, and --all means every run", remedy="leave one of them out")
    settings = settings_of(config, store, identity, writers)
    identities = keys.load_identities(settings)
    emergency = keys.break_glass(settings)
    known = configured(keys.recipients(settings, identities), identities, emergency)
    runs: list[RunSealed] = []
    if run is not None or every:
        runs = list(of_runs(open_for("read", config, store, identity, writers), run))
    named = bool(settings.keys.recipients)
    if as_json:
        output.document(_document(known, runs, named=named))
    elif output.tty():
        _show(known, runs, named=named)
    else:
        for row in (*map(_recipient_row, known), *(row for one in runs for row in _run_rows(one))):
            output.row(row)
    for fingerprint in emergency.keys() - {one.fingerprint for one in known}:
        output.problem(
            "warning",
            f"keys.break_glass names {emergency[fingerprint]}, which is no recipient of what is saved",
            "add its recipient to keys.recipients, or correct keys.break_glass",
            style="1;33",
        )
    problems.report((f"run {one.run}: {one.error}", one.error) for one in runs if one.error)
    codes = {one.error.exit_code for one in runs if one.error}
    if codes:
        raise typer.Exit(4 if 4 in codes else max(codes))


def _recipient_row(one: Configured) -> tuple[Any, ...]:
    opens, loud = "yes" if one.opens else "no", "break-glass" if one.break_glass else ""
    return "recipient", one.fingerprint, one.kind, one.way, opens, one.text, loud


def _run_rows(one: RunSealed) -> list[tuple[Any, ...]]:
    return [
        (
            "object",
            one.run,
            one.seq,
            sealed.name,
            ",".join(sealed.recipients),
            ",".join(sealed.mine),
            "signed" if sealed.authentic else "hint",
            "; ".join(one.remarks),
        )
        for sealed in one.objects
    ]


def _show(known: tuple[Configured, ...], runs: list[RunSealed], *, named: bool) -> None:
    from archiver.cli import output

    if not known:
        output.line("No recipient is configured: nothing can be sealed.")
    elif not named:
        output.note("keys.recipients names none: these are the recipients of your identities.")
    output.table(
        ("FINGERPRINT", "KIND", "OPENED BY", "HERE", "LOUD", "RECIPIENT"),
        [
            (
                one.fingerprint,
                one.kind,
                _WAYS[one.way],
                "yes" if one.opens else "no",
                "BREAK-GLASS" if one.break_glass else "",
                one.text,
            )
            for one in known
        ],
        cut=("RECIPIENT",),
    )
    if runs:
        output.heading("Runs")
        output.table(
            ("RUN", "NO", "OBJECT", "SEALED TO", "YOURS", "REMARKS"),
            [cells for one in runs for cells in _shown_rows(one)],
            middle=("RUN",),
            fold=("REMARKS",),
        )
    if any("sealed to other recipients than the configured ones" in one.remarks for one in runs):
        output.problem(
            "note",
            "some runs are sealed to other recipients than the configured ones",
            "archiver rekey RUN --dry-run, or --all",
            style="1;33",
        )


def _shown_rows(one: RunSealed) -> list[tuple[Any, ...]]:
    return [
        (
            one.run if not at else "",
            one.seq if not at else "",
            sealed.name.partition("/")[0].removesuffix("s"),
            " ".join(fingerprint[:_SHOWN] for fingerprint in sealed.recipients)
            + ("" if sealed.authentic else " (hint)"),
            " ".join(fingerprint[:_SHOWN] for fingerprint in sealed.mine) or "none",
            "; ".join(one.remarks) if not at else "",
        )
        for at, sealed in enumerate(one.objects)
    ]


def _document(known: tuple[Configured, ...], runs: list[RunSealed], *, named: bool) -> dict[str, Any]:
    from archiver.cli.program import described

    return {
        "named": named,
        "recipients": [
            {
                "fingerprint": one.fingerprint,
                "kind": one.kind,
                "recipient": one.text,
                "way": one.way,
                "opens_here": one.opens,
                "break_glass": one.break_glass,
            }
            for one in known
        ],
        "runs": [
            {
                "run": one.run,
                "seq": one.seq,
                "objects": [
                    {
                        "object": sealed.name,
                        "recipients": list(sealed.recipients),
                        "authentic": sealed.authentic,
                        "yours": list(sealed.mine),
                    }
                    for sealed in one.objects
                ],
                "remarks": list(one.remarks),
                "error": described(one.error) if one.error else None,
            }
            for one in runs
        ],
    }
