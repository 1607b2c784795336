"""`archiver doctor`: what does the store really enforce, and can this configuration rely on it?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from archiver.cli.options import (
    ConfigOption,
    IdentityOption,
    JsonOption,
    StoreOption,
    WritersOption,
    settings_of,
)

if TYPE_CHECKING:
    from archiver.doctor import Check

_STYLES = {"ok": "32", "warning": "1;33", "failure": "1;31", "unknown": "36"}


def doctor(
    repair: Annotated[
        bool,
        typer.Option(
            "--repair", help="Abort uploads that were begun more than a day ago and never finished."
        ),
    ] = False,
    config: ConfigOption = None,
    store: StoreOption = None,
    identity: IdentityOption = None,
    writers: WritersOption = None,
    as_json: JsonOption = False,
) -> None:
    """Look at what the store enforces, and at the keys.

    Tries everything with small objects that nothing else reads, and removes them where it may delete. A
    warning is to be weighed; `unknown` could not be seen and promises nothing. Exits 0 without a failure, 4
    when something is damaged, else with the highest code of what failed (8 for a store that lets two writers
    win).

    In a pipe each line has: ok, warning, failure or unknown; what was looked at; what was found; what to do.
    """
    from archiver.cli import output
    from archiver.doctor import examine, exit_code

    settings = settings_of(config, store, identity, writers)
    checks: list[Check] = []
    for check in examine(settings, repair=repair):
        checks.append(check)
        if as_json:
            continue
        if output.tty():
            _say(check)
        else:
            output.row((check.verdict, check.name, check.text, check.remedy or ""))
        output.flush()
    if as_json:
        output.document(_document(checks))
    elif output.tty():
        output.line(_summary(checks))
    code = exit_code(checks)
    if code:
        raise typer.Exit(code)


def _say(check: Check) -> None:
    from archiver.cli import output

    texts = [check.text, *([f"→ {check.remedy}"] if check.remedy and check.verdict != "ok" else [])]
    output.labelled(check.verdict, _STYLES[check.verdict], check.name, texts)


def _summary(checks: list[Check]) -> str:
    counts = {word: sum(check.verdict == word for check in checks) for word in _STYLES}
    return f"{', '.join(f'{count} {word}' for word, count in counts.items() if count)}."


def _document(checks: list[Check]) -> dict[str, Any]:
    from archiver.doctor import exit_code, fencing

    return {
        "ok": exit_code(checks) == 0,
        "exit_code": exit_code(checks),
        "fencing": fencing(checks),
        "checks": [
            {
                "check": check.name,
                "verdict": check.verdict,
                "text": check.text,
                "remedy": check.remedy,
                "exit_code": check.exit_code,
            }
            for check in checks
        ],
    }
