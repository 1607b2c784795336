"""`archiver find-credential`: which runs held a credential."""

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
)

if TYPE_CHECKING:
    from archiver.find_credential import Held


def find_credential(
    newest: Annotated[
        bool, typer.Option("--newest", help="Only look at the newest checkpoint of each run.")
    ] = False,
    config: ConfigOption = None,
    store: StoreOption = None,
    identity: IdentityOption = None,
    writers: WritersOption = None,
    as_json: JsonOption = False,
) -> None:
    """Name the runs that held a credential, which comes on standard input.

    The value is read from standard input, or asked for at a terminal without being shown; one line end is
    not part of it. Each run's receipt knows its credentials by a fingerprint under the run's own key, so
    every bundle is opened; nothing of the value is printed or written. Its usual spellings count too: in
    quotes, in base64, percent-encoded, a key with other line ends, `user:password` of a basic login. What
    redaction did not know when the run was saved is in no receipt; so the bundle is looked through for the
    value itself, and `in clear` says that it is there for everybody who can open the bundle.

    Exits 0 when a run held it, 1 when none did, and with the code of the error when none did among those that
    could be opened.

    In a pipe each line has: run, number, rule, kind, how often, places, and `replaced` or `in clear`.
    """
    from archiver import find_credential as room
    from archiver.cli.progress import counted

    value = room.value_of(_given())
    setup = open_for("read", config, store, identity, writers)
    found: list[Held] = []
    broken: list[Held] = []
    count = 0
    with counted("checkpoints looked at", as_json) as tick:
        for held in room.find(setup, value, newest=newest):
            tick()
            count += 1
            if held.error is not None:
                broken.append(held)
            elif held.findings or held.clear:
                found.append(held)
    code = 0 if found else max((one.error.exit_code for one in broken if one.error), default=1)
    _say(found, broken, count, code, as_json)
    raise typer.Exit(code)


def _given() -> bytes:
    """What is on standard input; at a terminal it is asked for, and not shown as it is typed."""
    import sys

    from archiver.errors import InputNotFoundError
    from archiver.find_credential import LONGEST

    if sys.stdin.isatty():
        import getpass

        try:
            return getpass.getpass("credential (not shown): ").encode("utf-8", "surrogateescape")
        except EOFError:
            return b""
    try:
        return sys.stdin.buffer.read(LONGEST + 1)
    except OSError as error:
        raise InputNotFoundError(f"standard input cannot be read: {error.strerror}") from error


def _say(found: list[Held], broken: list[Held], count: int, code: int, as_json: bool) -> None:
    from archiver.cli import output, problems
    from archiver.cli.text import counted

    if as_json:
        output.document(_document(found, broken, count, code))
    else:
        output.table(_COLUMNS, _rows(found), fold=("WHERE",))
        if output.tty():
            _conclude(found, counted(count, "checkpoint"))
    if closed := sum(held.is_closed for held in broken):
        text = f"no identity at hand opens {counted(closed, 'checkpoint')}"
        output.problem("note", text, None, style="1;33")
    problems.report((f"run {one.run}{_number(one)}: {one.error}", one.error) for one in broken if one.error)


_COLUMNS = ("RUN", "NO", "RULE", "KIND", "FOUND", "WHERE", "STORED")


def _conclude(found: list[Held], checkpoints: str) -> None:
    from archiver.cli import output
    from archiver.cli.text import command, counted

    if not found:
        output.line(f"None of {checkpoints} held it.")
        return
    output.line(f"{counted(len({held.run for held in found}), 'run')} of {checkpoints} looked at held it.")
    if any(held.clear for held in found):
        output.line("`in clear`: whoever can open that bundle can read it there; it is never rewritten.")
    output.line(f"Next: rotate it; {command('archiver show', found[0].run)}")


def _rows(found: list[Held]) -> list[tuple[Any, ...]]:
    return [
        (held.run, held.seq, one.rule, one.kind, one.count, ", ".join(one.places), stored)
        for held in found
        for stored, findings in (("replaced", held.findings), ("in clear", held.clear))
        for one in findings
    ]


def _document(found: list[Held], broken: list[Held], count: int, code: int) -> dict[str, Any]:
    from archiver.cli.program import described

    return {
        "found": [
            {
                "run": held.run,
                "seq": held.seq,
                "findings": [one.document() for one in held.findings],
                "in_clear": [one.document() for one in held.clear],
            }
            for held in found
        ],
        "checkpoints": count,
        "not_opened": sum(held.is_closed for held in broken),
        "errors": [{"run": one.run, "seq": one.seq, **described(one.error)} for one in broken if one.error],
        "exit_code": code,
    }


def _number(held: Held) -> str:
    return f", checkpoint {held.seq}" if held.seq is not None else ""
