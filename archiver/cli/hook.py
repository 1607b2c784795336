"""`archiver hook`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from archiver.cli.options import ConfigOption, JsonOption, config_flag, interactive, settings_of
from archiver.errors import UsageError

if TYPE_CHECKING:
    from archiver.hooks.installing import Change, Installed
    from archiver.hooks.settings_file import Scope

Action = Literal["install", "remove", "status", "run"]


def hook_claude_code(
    action: Annotated[
        Action,
        typer.Argument(help="install, remove, status; run is what the hooks call.", metavar="ACTION"),
    ],
    project: Annotated[
        bool, typer.Option("--project", help="The settings of this folder's project: .claude/settings.json.")
    ] = False,
    local: Annotated[
        bool, typer.Option("--local", help="Yours in this folder: .claude/settings.local.json.")
    ] = False,
    file: Annotated[
        Path | None, typer.Option("--settings", help="Another settings file.", metavar="FILE")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show the change.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Have Claude Code save its sessions by itself.

    install adds hooks for Stop, PreCompact, SubagentStop and SessionEnd to a settings file, the user's where
    no other is named, after showing the change; everything else in it stays as it is. remove takes them away.
    The hooks return at once and never get in the way of the harness: each starts a save in the background,
    one at a time for a session. At a SessionEnd the run is archived as complete, before that as running.

    status says where hooks are installed, how the last save went, and what went wrong lately.

    In a pipe: settings, path, state; status has lines that begin with hooks (settings, path, state, command),
    save (time, event, what, run, number) and problem (time, event, session, error, message).
    """
    if action == "run":
        _run(config)
    if action == "status":
        _status(file, as_json)
        return
    scope, path = _chosen(project, local, file)
    change = _planned(action, scope, path, config)
    if not change.needed or dry_run:
        _say(change, "unchanged" if not change.needed else "planned", as_json)
        return
    if not yes:
        if as_json or not interactive():
            raise UsageError(
                "changing a settings file has to be confirmed, and nobody is here to be asked",
                remedy="look at it with --dry-run, then run it with --yes",
            )
        _show(change)
        if not typer.confirm(f"Write {path}?", err=True):
            _say(change, "left", as_json)
            return
    change.make()
    _say(change, "installed" if action == "install" else "removed", as_json, shown=not yes)


def _run(config: Path | None) -> None:
    """As the program does it without this command line, which takes too long to come up."""
    from archiver.hooks.calling import call

    file = config_flag(config)
    raise typer.Exit(call(["--config", str(file)] if file else []))


def _chosen(project: bool, local: bool, file: Path | None) -> tuple[Scope, Path]:
    from archiver.config.paths import absolute
    from archiver.hooks.settings_file import place

    if project + local + (file is not None) > 1:
        raise UsageError("--project, --local and --settings name different files", remedy="say one of them")
    if file is not None:
        return "file", absolute(file)
    scope: Scope = "project" if project else "local" if local else "user"
    return scope, place(scope)


def _planned(action: Action, scope: Scope, path: Path, config: Path | None) -> Change:
    from archiver.hooks import command, installing

    if action == "remove":
        return installing.remove(scope, path)
    settings = settings_of(config)  # what a hook could not read is said now, while somebody is here
    return installing.install(scope, path, command.command(installing.carried(settings.file)))


def _show(change: Change) -> None:
    from archiver.cli import output

    for line in change.diff():
        output.line(line)


def _say(change: Change, what: str, as_json: bool, *, shown: bool = False) -> None:
    from archiver.cli import output

    file = change.file
    if as_json:
        output.document(
            {"settings": file.scope, "path": str(file.path), "state": what, "diff": change.diff()}
        )
        return
    if what == "planned":
        _show(change)
    elif what in ("installed", "removed") and not shown:
        for line in change.diff():
            output.note(line)
    if not output.tty():
        if what != "planned":
            output.row((file.scope, file.path, what))
        return
    output.line(
        {
            "planned": "Nothing was changed.",
            "left": "Nothing was changed.",
            "unchanged": f"{file.path} is as it should be; nothing was changed.",
            "installed": f"Written to {file.path}. Sessions that begin now are saved; "
            "`archiver hook claude-code status` says how that goes.",
            "removed": f"Removed from {file.path}.",
        }[what]
    )


# --- status -------------------------------------------------------------------------------------------------

_STATES = {
    "installed": "installed",
    "partly": "not for all events",
    "off": "installed, and all hooks are disabled there",
    "no": "not installed",
    "unreadable": "cannot be read",
}
_MOST_PROBLEMS = 5
_SAVES = ("archived", "unchanged", "refused", "failed")


def _status(file: Path | None, as_json: bool) -> None:
    from archiver.cli import output
    from archiver.hooks import log

    places = _places(file)
    lines = log.tail()
    last = next((line for line in reversed(lines) if line.get("event") in _SAVES), None)
    problems = [line for line in lines if line.get("event") in ("refused", "failed")][-_MOST_PROBLEMS:]
    if as_json:
        output.document(
            {
                "hooks": [_described(one) for one in places],
                "last_save": last,
                "last_save_worked": None if last is None else last["event"] in ("archived", "unchanged"),
                "problems": problems,
                "log": str(log.place()),
            }
        )
        return
    if output.tty():
        _tell(places, last, problems, str(log.place()))
        return
    for one in places:
        output.row(("hooks", one.scope, one.path, one.state, " | ".join(one.commands)))
    if last is not None:
        output.row(("save", *(last.get(name) or "" for name in ("time", "hook", "event", "run", "seq"))))
    for line in problems:
        names = ("time", "hook", "path", "error", "message")
        output.row(("problem", *(line.get(name) or "" for name in names)))


def _places(file: Path | None) -> list[Installed]:
    from archiver.config.paths import absolute
    from archiver.hooks import installing
    from archiver.hooks.settings_file import place

    if file is not None:
        return [installing.look("file", absolute(file))]
    scopes: tuple[Scope, ...] = ("user", "project", "local")
    return [installing.look(scope, place(scope)) for scope in scopes]


def _described(one: Installed) -> dict[str, Any]:
    return {
        "settings": one.scope,
        "path": str(one.path),
        "state": one.state,
        "commands": list(one.commands),
        "missing": list(one.missing),
        "error": one.error or None,
    }


def _tell(places: list[Installed], last: dict[str, Any] | None, problems: list[Any], log: str) -> None:
    from archiver.cli import output

    output.table(
        ("SETTINGS", "FILE", "HOOKS", "COMMAND"),
        [
            (one.scope, str(one.path), one.error or _STATES[one.state], " | ".join(one.commands))
            for one in places
        ],
        fold=("FILE", "COMMAND"),
    )
    if last is None:
        output.line("No hook has been called yet.")
        return
    worked = last["event"] in ("archived", "unchanged")
    about = f"run {last['run']}" if last.get("run") else str(last.get("path"))
    output.line(
        f"The last save {'worked' if worked else 'failed'}: {last.get('hook')} at {last['time']}, {about}."
    )
    for line in problems:
        about = f"{line.get('hook') or 'a call'} of {line.get('path') or 'no session'}"
        output.problem(
            str(line["time"]), f"{about}: {line.get('message') or line.get('error')}", line.get("remedy")
        )
    if problems:
        output.line(f"All of it is in {log}.")
