"""`archiver audit list | verify`: who opened and restored what; and whether the local file is whole."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from archiver.cli.completing import runs
from archiver.cli.options import (
    ConfigOption,
    IdentityOption,
    JsonOption,
    StoreOption,
    WritersOption,
    open_for,
    settings_of,
)
from archiver.errors import ArchiverError, DamagedError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from archiver.audit.reading import Read
    from archiver.audit.seen import Said, Seen
    from archiver.setup import Setup


def audit_list(
    run: Annotated[
        str | None,
        typer.Argument(
            help="Id of the run; else the lines of all.",
            metavar="RUN",
            show_default=False,
            autocompletion=runs,
        ),
    ] = None,
    newest: Annotated[
        int | None, typer.Option("--newest", help="Only the newest N.", metavar="N", min=1)
    ] = None,
    config: ConfigOption = None,
    store: StoreOption = None,
    identity: IdentityOption = None,
    writers: WritersOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show who opened, restored or rekeyed what; `archiver audit` and `archiver audit RUN` are short for it.

    Without a run: the lines of the local file. With one: its lines and what the store has of it, each
    object's signature verified; exits 4 if one does not hold.

    In a pipe each line has: time, action, run, number, who, identity, break-glass or -, local, store or both,
    who signed, why.
    """
    _show(run, newest, (config, store, identity, writers), as_json)


def audit_verify(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Files to check instead of the configured one.", metavar="FILE", show_default=False
        ),
    ] = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check that no line of the local file was changed, added or taken out; exits 4 if one was.

    In a pipe each line has: ok, note or broken, file, line, what is said of it; lines of which nothing is to
    be said have none, so a whole file prints nothing.
    """
    _verify(files or [], settings_of(config).audit.file, as_json)


def _part(found: Iterator[Seen | Said], objects: list[Seen], said: list[Said]) -> None:
    """What the store has, and what is wrong with it; what came before an error stays in the two lists."""
    from archiver.audit import seen

    for one in found:
        if isinstance(one, seen.Seen):
            objects.append(one)
        else:
            said.append(one)


def _show(run: str | None, newest: int | None, opening: tuple[Any, ...], as_json: bool) -> None:
    from archiver.audit import journal, seen
    from archiver.cli import output, problems

    said: list[Said] = []
    objects: list[Seen] = []
    failed: ArchiverError | None = None
    settings = settings_of(*opening)
    file = journal.place(settings)
    if run is not None:
        try:
            setup = open_for("read", *opening)
            _part(seen.stored(setup, run, newest), objects, said)
            _refuse_unknown(run, setup, known=bool(objects or said or any(seen.local(file, run))))
        except ArchiverError as error:
            failed = error  # what is known here is shown all the same
    found = seen.merged(seen.local(file, run, newest), iter(objects))
    found = found[-newest:] if newest else found
    if as_json:
        document = {"entries": [_document(one) for one in found], "findings": [_finding(one) for one in said]}
        output.document(document)
    else:
        output.table(_COLUMNS, [_row(one) for one in found], cut=("WHY",), middle=("RUN",))
        if not found and failed is None:
            _say_nothing(run)
    for one in said:
        if one.error is None:
            output.problem("note", f"{one.object}: {one.note}", None, style="1;33")
    broken = [(f"{one.object}: {one.error}", one.error) for one in said if one.error is not None]
    problems.report(broken)
    if failed is not None:
        raise failed
    if broken:
        raise typer.Exit(DamagedError.exit_code)


def _say_nothing(run: str | None) -> None:
    from archiver.cli import output

    if run is not None:
        output.note(f"Nothing was written down about run {run}.")
    elif output.tty():
        output.line("Nothing was written down yet.")


def _refuse_unknown(run: str, setup: Setup, *, known: bool) -> None:
    """`NoSuchRunError` for a run that nothing was written down about and that the store has no record of."""
    from archiver.catalog import Catalog

    if not known and not Catalog(setup).numbers(run):
        Catalog(setup).beginning(run)


_COLUMNS = ("AT (UTC)", "ACTION", "RUN", "NO", "WHO", "IDENTITY", "LOUD", "WHERE", "SIGNED BY", "WHY")


def _row(one: Seen) -> tuple[Any, ...]:
    from archiver.cli import output
    from archiver.cli.text import moment
    from archiver.model import utc_text

    act, people = one.act, output.tty()
    where = "both" if one.line and one.object else "store" if one.object else "local"
    return (
        moment(act.at) if people else utc_text(act.at),
        f"{act.action} in {act.within}" if act.within and act.within != act.action else act.action,
        act.run or "",
        act.seq or "",
        act.who,
        (act.opened_by or "")[: 8 if people else None],
        "BREAK-GLASS" if act.break_glass else "",
        where,
        _signer(one),
        act.why,
    )


def _signer(one: Seen) -> str:
    if one.object is None:
        return ""
    return one.signer or "unknown"


def _document(one: Seen) -> dict[str, Any]:
    return {**one.act.document(), "line": one.line, "object": one.object, "signer": one.signer}


def _finding(one: Said) -> dict[str, Any]:
    from archiver.cli.program import described

    return {
        "object": one.object,
        "note": one.note if one.error is None else "",
        "error": described(one.error) if one.error else None,
    }


def _verify(files: list[Path], configured: Path | None, as_json: bool) -> None:
    from archiver.audit import journal, reading
    from archiver.cli import output
    from archiver.config import state_home
    from archiver.config.paths import absolute, exists
    from archiver.errors import InputNotFoundError

    asked = [absolute(path) for path in files] or [configured or state_home() / journal.FILE_NAME]
    missing = [path for path in asked if not exists(path)]
    if missing and files:
        raise InputNotFoundError(f"there is no audit file {missing[0]}", remedy="name a file that is there")
    checked = 0
    said: list[Read] = []
    for one in (line for path in asked for line in reading.read(path)):
        checked += 1
        if one.said:
            said.append(one)
    broken = sum(one.state == "broken" for one in said)
    if as_json:
        output.document({"ok": not broken, "lines": checked, "findings": [_told(one) for one in said]})
    elif not output.tty():
        for one in said:
            output.row((one.state, one.file, one.number, one.said))
    _say_verified(said, checked, broken, missing, as_json)
    if broken:
        raise typer.Exit(DamagedError.exit_code)


def _say_verified(said: list[Read], checked: int, broken: int, missing: list[Path], as_json: bool) -> None:
    from archiver.cli import output
    from archiver.cli.text import counted

    if output.tty() and not as_json:
        output.line(f"{counted(checked, 'line')} checked, {broken or 'none'} changed, added or taken out.")
    for path in missing:
        output.note(f"{path} is not there: nothing was written down yet, or it was moved")
    for one in said:
        if one.state == "note":
            output.problem("note", f"{one.file}, line {one.number}: {one.said}", None, style="1;33")
    last = [one for one in said if one.state == "broken"][-1:]
    for one in said:
        if one.state == "broken":
            output.problem(
                "error", f"{one.file}, line {one.number}: {one.said}", _REMEDY if [one] == last else None
            )


_REMEDY = (
    "compare with `archiver audit RUN`, which also shows what was signed into the store, and with copies of "
    "the file; find out who could write to it"
)


def _told(one: Read) -> dict[str, Any]:
    return {"file": str(one.file), "line": one.number, "state": one.state, "said": one.said}
