"""Run a command and turn whatever comes out of it into an exit code and one message."""

from __future__ import annotations

import errno
import os
import signal
import sys
from typing import NoReturn

import typer
from typer.main import get_command

from archiver.cli import audited, output
from archiver.cli.app import COMMANDS, GROUPS, group, single, whole
from archiver.cli.options import use_config
from archiver.errors import ArchiverError, UsageError

INTERRUPTED = 130


class _Terminated(BaseException):
    """A signal to end as an exception, so that scratch folders are removed on the way out."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.exit_code = 128 + number


def run(name: str, arguments: list[str]) -> int:
    """Run the program `name` and return its exit code; every error becomes a message and a code.

    `restore` is the one program that is a single command; its arguments begin with it as those of `archiver`.
    """
    _prepare()
    use_config(None)
    audited.begin(name, arguments, {*COMMANDS, *GROUPS})
    try:
        code = _code(name, arguments)
    except _Terminated as end:
        code = end.exit_code
    try:
        audited.end()
        output.flush()
    except typer.Exit as end:
        code = end.exit_code
    except ArchiverError as error:
        code = _report(error, as_json=False)
    return code


def _prepare() -> None:
    """Never fail to print because of an encoding, and clean up when asked to end."""
    output.open_missing()
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) == signal.SIG_DFL:  # `nohup` has it ignored, and means it
            signal.signal(number, _terminate)


def _terminate(number: int, _frame: object) -> NoReturn:
    raise _Terminated(number)


def _code(name: str, arguments: list[str]) -> int:
    as_json = _wants_json(arguments)
    try:
        app, name, rest = _chosen(name, arguments)
        code = get_command(app).main(rest, prog_name=name, standalone_mode=False)
        return code if isinstance(code, int) else 0
    except ArchiverError as error:
        return _report(error, as_json)
    except typer.TyperException as error:
        return _report(_usage(error, name), as_json)
    except typer.Exit as end:
        return end.exit_code
    except typer.Abort:
        return INTERRUPTED
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
    except BrokenPipeError:
        return output.PIPE_CLOSED
    except OSError as error:
        # Help is written by the command line library itself; errors of files carry a name.
        if error.filename is None and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO):
            return _report(output.unwritable(error), as_json=False)
        return _unexpected(error, as_json)
    except Exception as error:
        return _unexpected(error, as_json)


def _chosen(name: str, arguments: list[str]) -> tuple[typer.Typer, str, list[str]]:
    """The app to run, its name in messages, and its arguments."""
    words = 2 if arguments and arguments[0] in GROUPS else 1
    command, rest = " ".join(arguments[:words]), arguments[words:]
    if command not in COMMANDS:
        if words == 1:
            return whole(), name, arguments
        return group(arguments[0]), f"{name} {arguments[0]}", arguments[1:]
    if name == command:
        return single(command, completion=True), name, rest
    return single(command), f"{name} {command}", rest


def _wants_json(arguments: list[str]) -> bool:
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return "--json" in options


def _usage(error: typer.TyperException, name: str) -> UsageError:
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else name
    message = error.format_message().replace("Value error, ", "")
    return UsageError(message, remedy=f"see `{command} --help`")


def _report(error: ArchiverError, as_json: bool) -> int:
    try:
        try:
            if as_json:
                output.document({"error": described(error)})
        except ArchiverError as unwritten:
            error = unwritten
        output.problem("error", str(error), error.remedy)
    except typer.Exit as end:
        return end.exit_code
    return error.exit_code


def described(error: ArchiverError) -> dict[str, object]:
    """An error as JSON."""
    return {
        "type": type(error).__name__,
        "message": str(error),
        "remedy": error.remedy,
        "exit_code": error.exit_code,
        **error.details,
    }


def _unexpected(error: Exception, as_json: bool) -> int:
    """A bug: one line and where to report it; ARCHIVER_DEBUG=1 shows the traceback."""
    if os.environ.get("ARCHIVER_DEBUG") == "1":
        import traceback

        traceback.print_exception(error)
    summary = f"this is a bug: {type(error).__name__}: {error}".split("\n", 1)[0]
    remedy = "run it again with ARCHIVER_DEBUG=1 and report what it prints, without secrets, as an issue"
    return _report(ArchiverError(summary, remedy=remedy), as_json)
