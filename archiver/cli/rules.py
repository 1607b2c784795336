"""`archiver rules list | check | test`: what redaction looks for, and whether rules do what they should."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from archiver.cli.options import ConfigOption, JsonOption, settings_of
from archiver.errors import InputNotFoundError, UsageError

if TYPE_CHECKING:
    from archiver.redact import Chosen
    from archiver.redact.rule_check import Checked
    from archiver.redact.rule_trial import Trial
    from archiver.redact.rules import Rule

FOUND = 1
_MOST = 64 << 20
_CONTEXT = 30
"""Characters of a line that are shown before and after a secret."""

PackOption = Annotated[
    list[str] | None,
    typer.Option(
        "--pack",
        help="`default`, `own`, `emails`, `hosts` or `identifiers`; repeatable.",
        metavar="PACK",
        show_default=False,
    ),
]
RuleFileOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--rule-file",
        help="A rule file besides the configured ones; repeatable.",
        metavar="FILE",
        show_default=False,
    ),
]


def rules_list(
    pack: PackOption = None,
    search: Annotated[
        str | None,
        typer.Option("--search", help="Only rules that have this in id, kind or meaning.", metavar="WORD"),
    ] = None,
    rule_file: RuleFileOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the rules of redaction: those in force, or those of the packs named.

    In a pipe each line has: id, kind, what it is, where its format is stated, number of forms, pack, file; at
    a terminal the two after the third are left out, and files that are not your own.
    """
    from archiver.cli import output
    from archiver.redact import rules
    from archiver.redact.rules import OWN

    chosen = _chosen(config, pack, rule_file)
    found = [rule for rule in rules.load(chosen).rules if _asked(rule, pack, search)]
    if as_json:
        output.document({"rules": [_document(rule) for rule in found]})
        return
    if not output.tty():
        for one in found:
            output.row((one.id, one.kind, one.about, one.source, one.formats, one.pack, _file(one)))
    elif found:
        output.table(
            ("ID", "KIND", "WHAT", "PACK", "FILE"),
            [(one.id, one.kind, one.about, one.pack, _file(one) if one.pack == OWN else "") for one in found],
            cut=("WHAT", "KIND"),
        )
    else:
        output.line("No rule fits.")


def _file(rule: Rule) -> str:
    return Path(rule.origin).name


def _chosen(config: Path | None, packs: list[str] | None, files: list[Path] | None) -> Chosen:
    """The configured rules, and those that the flags name besides."""
    from dataclasses import replace

    from archiver.redact.rules import DEFAULT, OWN, PACKS
    from archiver.setup import chosen_rules

    unknown = set(packs or ()) - {DEFAULT, OWN, *PACKS}
    if unknown:
        raise UsageError(
            f"there is no pack {min(unknown)!r}",
            remedy=f"the packs are {', '.join((DEFAULT, OWN, *PACKS))}",
        )
    configured = chosen_rules(settings_of(config))
    named = [name for name in packs or () if name in PACKS]
    return replace(
        configured,
        packs=tuple(dict.fromkeys((*configured.packs, *named))),
        files=(*configured.files, *(files or ())),
    )


def _asked(rule: Rule, packs: list[str] | None, search: str | None) -> bool:
    word = (search or "").lower()
    return (not packs or rule.pack in packs) and any(
        word in text.lower() for text in (rule.id, rule.kind, rule.about)
    )


def _document(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.id,
        "kind": rule.kind,
        "about": rule.about,
        "source": rule.source,
        "forms": rule.formats,
        "pack": rule.pack,
        "file": rule.origin or None,
    }


def rules_check(
    file: Annotated[Path, typer.Argument(help="A rule file, of our form or of gitleaks'.", metavar="FILE")],
    as_json: JsonOption = False,
) -> None:
    """Check a rule file: its form, its examples, and what its expressions cost.

    Each rule has to find what its `match` says and not what its `reject` says; a rule without examples is
    tried with some made from its forms. Expressions that could take for ever are refused. Exits 0 when all is
    well and 1 when something is wrong.

    In a pipe each line has: problem or note, file, line (0 where it is not known), what it says.
    """
    from archiver.cli import output
    from archiver.cli.text import counted
    from archiver.redact.rule_check import check

    checked = check(str(file), _text_of(file))
    if as_json:
        output.document(_checked(checked))
    elif output.tty():
        for problem in checked.problems:
            output.problem("error", _at(problem.name, problem.line, problem.message), None)
        for note in checked.notes:
            output.problem("note", _at(note.name, note.line, note.message), None, style="1;33")
        rules, problems = counted(checked.rules, "rule"), counted(len(checked.problems), "problem")
        output.line(f"{file}: {rules}, {problems}")
    else:
        for kind, listed in (("problem", checked.problems), ("note", checked.notes)):
            for one in listed:
                output.row((kind, one.name, one.line, one.message))
    if checked.problems:
        raise typer.Exit(FOUND)


def _text_of(file: Path) -> str:
    try:
        return _read(file).decode("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"{file} is not UTF-8 text", remedy="name a rule file") from error


def _checked(checked: Checked) -> dict[str, Any]:
    return {
        "file": checked.name,
        "rules": checked.rules,
        "problems": [{"line": one.line or None, "message": one.message} for one in checked.problems],
        "notes": [{"line": one.line or None, "message": one.message} for one in checked.notes],
    }


def _at(name: str, line: int, message: str) -> str:
    return f"{name}:{line}: {message}" if line else f"{name}: {message}"


def rules_test(
    text: Annotated[
        str | None,
        typer.Argument(help="The text, or `-` for standard input.", metavar="TEXT", show_default=False),
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--file", help="Read the text from a file.", metavar="FILE")
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Also say what was looked at and not found, and why.")
    ] = False,
    pack: PackOption = None,
    rule_file: RuleFileOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say which rules find what in a text; the values found are not printed.

    Only rules are asked, not the known values of files and the environment. A text on the command line stays
    in the history of the shell: give a real credential on standard input. Exits 1 when something was found
    and 0 when nothing was, as `archiver scan` does.

    In a pipe each line has: line, first column, last column (in characters, from 1), rule, kind; with
    --explain then `-`, `-` or the place in the line, the rule, and why nothing was found.
    """
    from archiver.redact.rule_trial import trial

    data = _given(text, file)
    result = trial(data, _chosen(config, pack, rule_file), explain=explain)
    _print(data, result, "json" if as_json else "plain")
    if result.found:
        raise typer.Exit(FOUND)


def _given(text: str | None, file: Path | None) -> bytes:
    if (text is None) == (file is None):
        raise UsageError("there is not one text to test", remedy="give a text, `-`, or --file FILE")
    if file is not None:
        return _read(file)
    if text == "-":
        return sys.stdin.buffer.read(_MOST) if hasattr(sys.stdin, "buffer") else sys.stdin.read().encode()
    return os.fsencode(text or "")


def _read(file: Path) -> bytes:
    try:
        with file.open("rb") as opened:
            return opened.read(_MOST)
    except OSError as error:
        raise InputNotFoundError(f"{file} cannot be read: {error.strerror}", remedy="name a file") from error


def _print(data: bytes, result: Trial, form: Literal["json", "plain"]) -> None:
    from archiver.cli import output

    found = [
        (one, *_place(data, one.start), _place(data, max(one.start, one.end - 1))) for one in result.found
    ]
    vain = [(one, *_place(data, max(0, one.end - 1))) for one in result.vain]
    if form == "json":
        output.document(
            {
                "found": [
                    {
                        "line": line,
                        "column": column,
                        "end_line": last[0],
                        "end_column": last[1],
                        "rule": one.rule,
                        "kind": one.kind,
                    }
                    for one, line, column, last in found
                ],
                "not_found": [
                    {"line": line, "column": column, "rule": one.rule, "why": one.why}
                    for one, line, column in vain
                ],
            }
        )
        return
    for one, line, column, last in found:
        if not output.tty():
            output.row(
                (line, column, last[1] if last[0] == line else f"{last[0]}:{last[1]}", one.rule, one.kind)
            )
            continue
        output.line(f"{line}:{column}  {one.rule} ({one.kind})")
        shown, carets = _shown(data, result, one.start, one.end)
        output.line(f"    {shown}")
        output.line(f"    {carets}")
    for missed, line, column in vain:
        if output.tty():
            output.line(f"{line}:{column}  not {missed.rule}: {missed.why}")
        else:
            output.row((line, column, "-", missed.rule, missed.why))
    if output.tty() and not found:
        output.line("Nothing was found.")


def _place(data: bytes, at: int) -> tuple[int, int]:
    """Line and column (in characters) of a byte, from 1."""
    begin = data.rfind(b"\n", 0, at) + 1
    return data.count(b"\n", 0, at) + 1, len(data[begin:at].decode("utf-8", "replace")) + 1


def _shown(data: bytes, result: Trial, start: int, end: int) -> tuple[str, str]:
    """The line around a secret with every secret in it as dots, and carets below this one."""
    begin = data.rfind(b"\n", 0, start) + 1
    stop = data.find(b"\n", start)
    stop = len(data) if stop < 0 else stop
    masked = bytearray(data[begin:stop])
    for one in result.found:
        for at in range(max(one.start, begin), min(one.end, stop)):
            masked[at - begin] = 0x2E
    before = bytes(masked[: start - begin]).decode("utf-8", "replace")[-_CONTEXT:]
    inside = "." * min(12, end - start)
    after = bytes(masked[min(end, stop) - begin :]).decode("utf-8", "replace")[:_CONTEXT]
    before, after = (text.replace("\t", " ") for text in (before, after))
    return f"{before}{inside}{after}", " " * len(before) + "^" * len(inside)
