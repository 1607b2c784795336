"""Every way in which a command can end: exit code, message, next step, JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from archiver import errors
from archiver.cli import app, output
from archiver.cli.rich_table import fitted
from archiver.errors import (
    ArchiverError,
    ClockSkewError,
    EffectDoneError,
    KeyUnavailableError,
    MalformedTranscriptError,
    NotSerialisableError,
)

from .conftest import Command

EXIT_CODES = {
    name: code
    for code, names in {
        2: "UsageError ConfigError InvalidNameError InputNotFoundError NotSerialisableError "
        "InvalidDocumentError",
        3: "RefusedError StaleCheckpointError StaleWriterError LimitExceededError AlreadyExistsError "
        "RedactionUnavailableError RedactedValueError AuditError WitnessError UntrustedWriterError "
        "BundleTooOldError EffectNotRecordedError EffectDoneError RunFinishedError RunHeldError "
        "SweepRunningError UnsafeLifecycleError",
        4: "DamagedError MalformedTranscriptError ContainerError HeaderError HeaderMacError PayloadError "
        "SignatureError RecordError ChainError MissingRecordError RolledBackError ForkError "
        "BundleMissingError DigestMismatchError ContextMismatchError ArchiveFormatError WrappedKeyError "
        "MovedKeyError RecipientMismatchError",
        5: "UnsupportedSchemaError",
        6: "KeyUnavailableError InvalidKeyError ForeignKeyError KmsDeniedError KmsKeyDisabledError "
        "KmsExpiredError KmsUnreachableError",
        7: "NeedsDecisionError BudgetExhaustedError",
        8: "StoreError StoreUnreachableError StoreMissingError StoreDeniedError StoreFullError "
        "ObjectNotFoundError ClockSkewError UnconfirmedError UnfencedStoreError",
        9: "NoSuchRunError NoSuchArtifactError BundleExpiredError BundleRemovedError RunErasedError",
    }.items()
    for name in names.split()
}
"""The promise to scripts: a code never changes its meaning."""


@pytest.fixture
def raising(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Have `archiver schema` raise something."""

    def have(error: BaseException) -> None:
        def schema(as_json: bool = typer.Option(False, "--json")) -> None:
            raise error

        monkeypatch.setitem(app.COMMANDS, "schema", schema)

    return have


def made(name: str) -> ArchiverError:
    kind = getattr(errors, name)
    extra: dict[str, Any] = {}
    if issubclass(kind, MalformedTranscriptError):
        extra = {"line": 1, "column": 2}
    elif issubclass(kind, NotSerialisableError):
        extra = {"path": "$"}
    elif issubclass(kind, EffectDoneError):
        extra = {"result": None}
    elif issubclass(kind, ClockSkewError):
        extra = {"seconds": 901.0}
    error = kind("what happened", remedy="what to do", **extra)
    assert isinstance(error, ArchiverError)
    return error


@pytest.mark.parametrize("name", EXIT_CODES)
def test_every_error_has_its_exit_code_message_and_next_step(
    command: Command, raising: Any, name: str
) -> None:
    raising(made(name))
    outcome = command("schema")
    assert outcome.code == EXIT_CODES[name]
    assert (outcome.out, outcome.err) == ("", "error: what happened\nnext: what to do\n")
    outcome = command("schema", "--json")
    assert outcome.code == EXIT_CODES[name]
    assert outcome.json == {
        "error": {
            "type": name,
            "message": "what happened",
            "remedy": "what to do",
            "exit_code": EXIT_CODES[name],
        }
    }
    assert outcome.err == "error: what happened\nnext: what to do\n"


def test_no_error_is_left_out() -> None:
    kinds = {
        name
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, ArchiverError) and kind is not ArchiverError
    }
    assert kinds == EXIT_CODES.keys()


def test_texts_of_errors_cannot_steer_the_terminal(command: Command, raising: Any) -> None:
    raising(KeyUnavailableError("run \x1b]52;c;x\x07\u202e", remedy="line one\n\x9b31m[bold]two"))
    for terminal in (False, True):
        outcome = command("schema", "--json", terminal=terminal)
        for text in (
            outcome.out,
            outcome.err.replace("\x1b[1;31m", "").replace("\x1b[1m", "").replace("\x1b[0m", ""),
        ):
            assert not any(c in text for c in "\x1b\x07\x9b\u202e")
        assert "[bold]two" in outcome.err
        assert outcome.json["error"]["message"] == "run \x1b]52;c;x\x07\u202e"


def test_an_unexpected_error_is_one_line_and_says_how_to_report_it(
    command: Command, raising: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    raising(ZeroDivisionError("first line\nsecond"))
    outcome = command("schema")
    assert outcome.code == 1
    assert outcome.err.splitlines() == [
        "error: this is a bug: ZeroDivisionError: first line",
        "next: run it again with ARCHIVER_DEBUG=1 and report what it prints, without secrets, as an issue",
    ]
    assert command("schema", "--json").json["error"]["exit_code"] == 1
    monkeypatch.setenv("ARCHIVER_DEBUG", "1")
    assert "Traceback" in command("schema").err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nonsense"], "No such command 'nonsense'."),
        (["lits"], "No such command 'lits'."),
        (["restore"], "Missing argument 'RUN'."),
        (["show", "run", "more"], "unexpected extra argument"),
        (["list", "--sinse", "7d"], "No such option: --sinse"),
        (["restore", "run", "--at", "zero"], "Invalid value for '--at'"),
        (["restore", "run", "--at", "0"], "Invalid value for '--at'"),
        (["show", "run", "--tail", "-1"], "Invalid value for '--tail'"),
        (["archive", "x", "--outcome", "great"], "'great' is not one of 'running'"),
        (["list", "--since", "yesterday"], "neither a time nor a length of time"),
        (["schema", "nonsense"], "there is no schema 'nonsense'"),
    ],
)
def test_usage_errors(command: Command, arguments: list[str], message: str) -> None:
    outcome = command(*arguments)
    assert outcome.code == 2
    assert message in outcome.err
    assert "Value error" not in outcome.err
    assert outcome.err.splitlines()[0].startswith("error: ")
    assert outcome.err.splitlines()[-1].startswith("next: ")
    assert outcome.out == ""


def test_usage_errors_as_json(command: Command) -> None:
    outcome = command("restore", "--json")
    assert outcome.code == 2
    assert outcome.json["error"]["message"] == "Missing argument 'RUN'."
    assert outcome.json["error"]["remedy"] == "see `archiver restore --help`"
    # After `--` it would be a name, not a wish.
    assert command("show", "--", "--json").out == ""


def test_the_restore_program(command: Command) -> None:
    outcome = command("restore", name="restore")
    assert (outcome.code, outcome.err.splitlines()[-1]) == (2, "next: see `restore --help`")
    assert "Usage: restore [OPTIONS]" in command("restore", "--help", name="restore").out


def test_help_and_version(command: Command) -> None:
    for arguments in (["--help"], ["-h"], ["list", "--help"], ["restore", "-h"]):
        outcome = command(*arguments)
        assert (outcome.code, outcome.err) == (0, "")
        assert "Usage: archiver" in outcome.out
    assert command().code == 2
    assert "Usage: archiver" in command().out
    assert command("--version").out.startswith("archiver 0.")


def test_an_exit_code_of_its_own(command: Command, raising: Any) -> None:
    raising(typer.Exit(7))
    assert command("schema").code == 7
    raising(KeyboardInterrupt())
    assert command("schema").code == 130
    raising(typer.Abort())
    assert command("schema").code == 130


def test_config_before_and_after_the_command(command: Command) -> None:
    before = command("--config", "/none/before.toml", "list")
    after = command("list", "--config", "/none/after.toml")
    both = command("--config", "/none/before.toml", "list", "--config", "/none/after.toml")
    assert "/none/before.toml" in before.err
    assert "/none/after.toml" in after.err
    assert "/none/after.toml" in both.err
    assert "/none/" not in command("list").err


@pytest.mark.parametrize(
    ("variables", "coloured"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False), ({"TERM": ""}, False)],
)
def test_colours(
    command: Command, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], coloured: bool
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert ("\x1b[" in command("list", terminal=True).err) == coloured
    assert "\x1b[" not in command("list").err


MARKUP = "[bold red]x[/] [link=https://example.org]y[/link] :skull: [/nope]"


def test_tables_take_text_as_text(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "tty", lambda: True)
    monkeypatch.setenv("COLUMNS", "40")
    output.table(
        ("RUN", "EMPTY", "NOTE"), [(MARKUP, "", "a\x1b[31m\nb" * 9), ("日本", "", "")], cut=("NOTE",)
    )
    shown = capsys.readouterr().out
    assert MARKUP in shown  # the first column is never cut, though the table is wider than the terminal
    assert "EMPTY" not in shown
    assert "\x1b" not in shown
    assert "日本" in shown
    assert "…" in shown


def test_a_table_without_rows_is_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "tty", lambda: True)
    output.table(("RUN",), [])
    assert capsys.readouterr().out == ""


def test_lines_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    output.table(("A", "B", "C"), [("x\ty", "", "1\n2"), (0, None, MARKUP)])
    output.facts((("name", "value"), ("empty", ""), ("zero", 0)))
    assert capsys.readouterr().out.splitlines() == [
        "x y\t-\t1⏎2",
        f"0\tNone\t{MARKUP}",
        "name\tvalue",
        "zero\t0",
    ]


def test_json_in_a_pipe_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    output.document({"b": "\x9b\x7f", "a": ["é"]})
    shown = capsys.readouterr().out
    assert shown.count("\n") == 1
    assert json.loads(shown) == {"b": "\x9b\x7f", "a": ["é"]}
    assert "é" in shown
    assert "\x9b" not in shown


@given(st.lists(st.tuples(st.integers(1, 200), st.integers(1, 200)), max_size=8), st.integers(0, 400))
def test_column_widths(columns: list[tuple[int, int]], space: int) -> None:
    natural = [max(pair) for pair in columns]
    shortest = [min(pair) for pair in columns]
    widths = fitted(natural, shortest, space)
    assert all(low <= width <= high for low, width, high in zip(shortest, widths, natural, strict=True))
    assert sum(widths) <= max(space, sum(shortest))
    assert widths == natural or sum(widths) >= min(space, sum(natural))
