"""How receipts are printed: findings as a table or lines, and what to rotate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from archiver.cli import output

if TYPE_CHECKING:
    from archiver.model import Receipt

COLUMNS = ("RULE", "KIND", "FOUND", "FINGERPRINT", "WHERE")


def table(receipt: Receipt, *before: object) -> None:
    """Every finding; in a pipe one a line, behind the cells that `before` names."""
    if output.tty():
        output.table(COLUMNS, rows(receipt), fold=("WHERE",))
        return
    for row in rows(receipt):
        output.row((*before, *row))


def rows(receipt: Receipt) -> list[tuple[Any, ...]]:
    """The worst first."""
    from archiver.rotation import rank

    found = sorted(receipt.findings, key=lambda one: (rank(one.kind), one.kind, one.rule, one.fingerprint))
    return [(one.rule, one.kind, one.count, one.fingerprint, ", ".join(one.places)) for one in found]


def rotate(receipt: Receipt) -> None:
    """What to do about what was found: at a terminal below the table, in a pipe on standard error."""
    from archiver.rotation import lines

    if not receipt.findings:
        if output.tty():
            output.line("No credentials found.")
        return
    say = output.line if output.tty() else output.note
    output.heading("Rotate these")
    if not output.tty():
        say("rotate these:")
    for one in lines(receipt.findings):
        say(f"- {one}")


def rotations(receipt: Receipt) -> list[dict[str, Any]]:
    """The same for JSON, with nothing left out."""
    from archiver.rotation import rotations as found

    return [
        {
            "rule": one.rule,
            "kind": one.kind,
            "about": one.about,
            "different": one.different,
            "count": one.count,
            "places": list(one.places),
            "step": one.step,
        }
        for one in found(receipt.findings)
    ]
