"""The command line: one function a command, each in its own file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup

from archiver.cli import output
from archiver.cli.advise import advise
from archiver.cli.archive import archive
from archiver.cli.artifact import artifact
from archiver.cli.audit import audit_list, audit_verify
from archiver.cli.check import check
from archiver.cli.diff import diff
from archiver.cli.doctor import doctor
from archiver.cli.drill import drill
from archiver.cli.erase import erase
from archiver.cli.expire import expire
from archiver.cli.export import export
from archiver.cli.find_credential import find_credential
from archiver.cli.hold import hold
from archiver.cli.hook import hook_claude_code
from archiver.cli.init import init
from archiver.cli.keygen import keygen
from archiver.cli.lifecycle import lifecycle_apply, lifecycle_check, lifecycle_show
from archiver.cli.list_runs import list_runs
from archiver.cli.migrate import migrate
from archiver.cli.options import VersionOption, use_config
from archiver.cli.recipients import recipients_list
from archiver.cli.redact import redact
from archiver.cli.rekey import rekey
from archiver.cli.release import release
from archiver.cli.repair import repair
from archiver.cli.restore import restore
from archiver.cli.rm import rm
from archiver.cli.rules import rules_check, rules_list, rules_test
from archiver.cli.scan import scan
from archiver.cli.schema import schema
from archiver.cli.show import show
from archiver.cli.stats import stats
from archiver.cli.sweep import sweep
from archiver.cli.sync import sync
from archiver.cli.verify import verify
from archiver.cli.witness import witness_forget, witness_list
from archiver.errors import UsageError

GROUPS = {
    "audit": "Who opened, restored and rekeyed what; plain `audit` is `audit list`.",
    "hook": "Have harnesses save their sessions by themselves.",
    "lifecycle": "What the rules of a bucket let expire, and when.",
    "recipients": "Who can open what is saved.",
    "rules": "What redaction looks for.",
    "witness": "What was seen of runs before, remembered outside their store.",
}
"""First words of commands that have two."""
PLAIN = {"audit": "list"}
"""What the first word alone, or with anything but a second one, is short for."""

COMMANDS: dict[str, Callable[..., Any]] = {
    "archive": archive,
    "list": list_runs,
    "show": show,
    "diff": diff,
    "artifact": artifact,
    "restore": restore,
    "verify": verify,
    "sweep": sweep,
    "sync": sync,
    "hook claude-code": hook_claude_code,
    "hold": hold,
    "release": release,
    "rm": rm,
    "erase": erase,
    "expire": expire,
    "lifecycle show": lifecycle_show,
    "lifecycle check": lifecycle_check,
    "lifecycle apply": lifecycle_apply,
    "stats": stats,
    "check": check,
    "repair": repair,
    "migrate": migrate,
    "scan": scan,
    "redact": redact,
    "find-credential": find_credential,
    "rules list": rules_list,
    "rules check": rules_check,
    "rules test": rules_test,
    "init": init,
    "doctor": doctor,
    "keygen": keygen,
    "recipients list": recipients_list,
    "rekey": rekey,
    "witness list": witness_list,
    "witness forget": witness_forget,
    "audit list": audit_list,
    "audit verify": audit_verify,
    "export": export,
    "drill": drill,
    "advise": advise,
    "schema": schema,
}


class _Argument(TyperArgument):
    """An argument whose help does not name the type that the program has for it."""

    def display_type_rich(self, ctx: Any) -> str:  # noqa: ARG002  # as the library has it
        return ""


class _Command(TyperCommand):
    """A command whose usage names what is required without braces, as manuals do."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        for parameter in self.params:
            if isinstance(parameter, TyperArgument):
                parameter.__class__ = _Argument

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return [piece.replace("{", "").replace("}", "") for piece in super().collect_usage_pieces(ctx)]


class _Group(TyperGroup):
    """A group that takes what is no command of it for the arguments of the one in `PLAIN`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        plain = PLAIN.get(ctx.info_name.rpartition(" ")[2])
        known = (*self.commands, *ctx.help_option_names)
        if plain is not None and (not args or args[0] not in known):
            args = [plain, *args]
        return super().parse_args(ctx, args)


def whole() -> typer.Typer:
    """The program with all its commands."""
    app = _new(completion=True)
    app.callback(invoke_without_command=True)(archiver)
    for name, function in COMMANDS.items():
        if " " not in name:
            app.command(name, cls=_Command)(function)
    for name, what in GROUPS.items():
        app.add_typer(group(name), name=name, help=what)
    return app


def group(name: str) -> typer.Typer:
    """The commands that begin with this word, as a program of its own."""
    app = _new(completion=False)
    app.callback(help=GROUPS[name], cls=_Group)(lambda: None)
    for words, function in COMMANDS.items():
        first, _, second = words.partition(" ")
        if first == name:
            app.command(second, cls=_Command)(function)
    return app


def single(name: str, *, completion: bool = False) -> typer.Typer:
    """One command as a program of its own: without the group around it, its help is there twice as fast."""
    app = _new(completion=completion)
    app.command(name.rpartition(" ")[2], cls=_Command)(COMMANDS[name])
    return app


def _new(*, completion: bool) -> typer.Typer:
    """Plain help and our own error messages: neither needs rich, which takes long to import."""
    return typer.Typer(
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        add_completion=completion,
        context_settings={"help_option_names": ["--help", "-h"], "max_content_width": 100},
    )


def archiver(
    context: typer.Context,
    config: Annotated[
        Path | None,
        typer.Option("--config", help="Configuration file instead of the one found.", metavar="FILE"),
    ] = None,
    _version_asked: VersionOption = False,
) -> None:
    """Archive AI-agent runs, redacted and sealed, and restore them.

    Exit codes: 0 done, 2 usage, 3 stale or refused, 4 damaged or incomplete, 5 schema unsupported,
    6 key unavailable, 7 a person must decide, 8 store unreachable or denied, 9 no such run, 1 anything else
    (of `scan`: credentials found; of `find-credential`: not found; of `diff --exit-code`: changed).
    """
    use_config(config)
    if context.invoked_subcommand is None:
        output.paragraph(context.get_help())
        raise typer.Exit(UsageError.exit_code)
