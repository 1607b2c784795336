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
    bullets(lines(receipt.findings))


def bullets(steps: list[str]) -> None:
    """What to rotate, one a line; at a terminal folded under its bullet."""
    if not output.tty():
        output.note("rotate these:")
        for one in steps:
            output.note(f"- {one}")
        return
    output.heading("Rotate these")
    for one in steps:
        output.folded("- ", one)


def not_searched(receipt: Receipt) -> None:
    """Known values that were not searched for, and files of them that could not be read, by their names."""
    for name in receipt.too_short:
        text = f"the value of {name} is too short or too common to search for"
        output.problem("note", text, None, style="1;33")
    for unread in receipt.unread:
        text = f"what stands in {unread}; it was not searched for"
        output.problem("note", text, None, style="1;33")


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
