"""The part of `archiver scan` that looks into stored bundles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from archiver.cli import output

if TYPE_CHECKING:
    from archiver.model import Receipt
    from archiver.scan import Checked
    from archiver.setup import Setup


def scan_stored(setup: Setup, runs: list[str], *, newest: bool, quiet: bool, as_json: bool) -> int:
    """Print what is found in each checkpoint, as it is found; returns the exit code."""
    from archiver import scan as room
    from archiver.cli.progress import counted as counting
    from archiver.scan.loading import keyed_redactors

    told = _Told(quiet, as_json)
    with counting("checkpoints scanned", as_json or quiet) as tick:
        for checked in room.examine(setup, dict.fromkeys(runs), keyed_redactors(setup), newest=newest):
            tick()
            told.add(checked)
    return told.end()


class _Told:
    """What was found; a checkpoint without findings is only counted."""

    def __init__(self, quiet: bool, as_json: bool) -> None:
        self._quiet = quiet
        self._as_json = as_json
        self._count = 0
        self._closed = 0
        self._last: Receipt | None = None
        self._found: list[Checked] = []
        self._broken: list[Checked] = []

    def add(self, checked: Checked) -> None:
        from archiver.cli.receipts import table

        if checked.error is not None:
            self._closed += checked.is_closed
            self._broken.append(checked)
            return
        self._count += 1
        self._last = checked.receipt or self._last
        if checked.receipt is None or not checked.receipt.findings:
            return
        self._found.append(checked)
        if not (self._as_json or self._quiet):
            output.heading(f"run {checked.run}, checkpoint {checked.seq}")
            table(checked.receipt, checked.run, checked.seq)

    def end(self) -> int:
        """Say what is left to say; returns the exit code."""
        from archiver.cli import problems
        from archiver.cli.receipts import not_searched
        from archiver.cli.text import counted

        code = self._code()
        if self._as_json:
            output.document(self._document(code))
        elif not self._quiet:
            if output.tty():
                found = counted(len(self._found), "checkpoint")
                output.line(f"{counted(self._count, 'checkpoint')} scanned, {found} with credentials.")
            if self._last is not None:
                not_searched(self._last)  # known values are the same for all
            self._advise()
        if self._closed:
            count = counted(self._closed, "checkpoint")
            output.problem("note", f"no identity at hand opens {count}", None, style="1;33")
        problems.report(
            (f"run {one.run}{_number(one)}: {one.error}", one.error) for one in self._broken if one.error
        )
        return code

    def _code(self) -> int:
        codes = {one.error.exit_code for one in self._broken if one.error}
        if codes:
            return 4 if 4 in codes else max(codes)
        return 1 if self._found else 0

    def _advise(self) -> None:
        from archiver.cli.receipts import bullets
        from archiver.cli.text import command
        from archiver.rotation import lines

        findings = [one for checked in self._found if checked.receipt for one in checked.receipt.findings]
        if not findings:
            return
        bullets(lines(findings))
        advice = (
            "A stored bundle is never rewritten: whoever has an identity can read it. Rotate these first; "
            "`archiver archive` of the same transcript stores it anew without these."
        )
        following = f"next: {command('archiver show', self._found[0].run)}"
        if output.tty():
            output.folded("", advice)
            output.line(following)
        else:
            output.note(advice)
            output.note(following)

    def _document(self, code: int) -> dict[str, Any]:
        from archiver.cli.program import described
        from archiver.cli.receipts import rotations

        return {
            "scanned": self._count,
            "found": [
                {
                    "run": one.run,
                    "seq": one.seq,
                    "receipt": one.receipt.document(),
                    "rotate": rotations(one.receipt),
                }
                for one in self._found
                if one.receipt
            ],
            "not_opened": self._closed,
            "errors": [
                {"run": one.run, "seq": one.seq, **described(one.error)} for one in self._broken if one.error
            ],
            "exit_code": code,
        }


def _number(checked: Checked) -> str:
    return f", checkpoint {checked.seq}" if checked.seq is not None else ""
