"""What several commands take, and the way from there to an open store."""

from __future__ import annotations

import os
import sys
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from archiver.cli.completing import runs

if TYPE_CHECKING:
    from archiver.config import Settings
    from archiver.setup import Setup

Outcome = Literal["running", "succeeded", "failed", "cancelled", "crashed"]
OUTCOMES = "running, succeeded, failed, cancelled or crashed"


def _version(asked: bool) -> None:
    if asked:
        from archiver import __version__
        from archiver.cli import output

        output.line(f"archiver {__version__}")
        raise typer.Exit


VersionOption = Annotated[
    bool, typer.Option("--version", help="Print the version and exit.", callback=_version, is_eager=True)
]
ConfigOption = Annotated[
    Path | None,
    typer.Option("--config", help="Configuration file instead of the one found.", metavar="FILE"),
]
StoreOption = Annotated[
    str | None, typer.Option("--store", help="Store instead of the configured one.", metavar="URL")
]
IdentityOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--identity",
        "-i",
        help="age identity file instead of the configured ones; repeatable.",
        metavar="FILE",
    ),
]
WritersOption = Annotated[
    Path | None,
    typer.Option("--writers", help="writers.toml: whose signatures to believe.", metavar="FILE"),
]
SigningKeyOption = Annotated[
    Path | None,
    typer.Option("--signing-key", help="Key to sign with instead of the configured one.", metavar="FILE"),
]
PacksOption = Annotated[
    list[str] | None,
    typer.Option(
        "--pack",
        help="`emails`, `hosts` or `identifiers`, besides the configured ones; repeatable.",
        metavar="PACK",
        show_default=False,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
BecauseOption = Annotated[
    str, typer.Option("--because", help="Why you do this; it is written down.", metavar="TEXT")
]
RunArgument = Annotated[str, typer.Argument(help="Id of the run.", metavar="RUN", autocompletion=runs)]

_config: ContextVar[Path | None] = ContextVar("_config", default=None)


def use_config(config: Path | None) -> None:
    """Remember the `--config` that stands before the command."""
    _config.set(config)


def config_flag(config: Path | None) -> Path | None:
    """The `--config` of the command, or else the one before it."""
    return config or _config.get()


def settings_of(
    config: Path | None,
    store: str | None = None,
    identity: list[Path] | None = None,
    writers: Path | None = None,
    signing_key: Path | None = None,
) -> Settings:
    """The settings, with what the flags say on top."""
    from archiver.config import load

    flags: dict[str, dict[str, object]] = {"store": {}, "keys": {}}
    if store is not None:
        # Who names a store means that one: the id of the configured store does not apply to it.
        flags["store"] = {"url": store, "id": None}
    if identity:
        flags["keys"]["identities"] = tuple(identity)
    if writers is not None:
        flags["keys"]["writers"] = writers
    if signing_key is not None:
        flags["keys"]["signing_key"] = signing_key
    return load(config_flag(config), flags)


def with_packs(settings: Settings, packs: list[str] | None) -> Settings:
    """The settings with further packs of rules."""
    from archiver.errors import UsageError
    from archiver.redact.rules import PACKS

    if unknown := set(packs or ()) - set(PACKS):
        raise UsageError(f"there is no pack {min(unknown)!r}", remedy=f"the packs are {', '.join(PACKS)}")
    if not packs:
        return settings
    asked = tuple(dict.fromkeys((*settings.redaction.packs, *packs)))
    redaction = settings.redaction.model_copy(update={"packs": asked})
    return settings.model_copy(update={"redaction": redaction})


def refuse_empty(paths: list[str]) -> None:
    """An empty path, mostly a variable of the shell that is not set, would be the current folder."""
    from archiver.errors import UsageError

    if "" in paths:
        raise UsageError("one of the paths is empty", remedy="name a file or folder; `.` is the current one")


def open_for(
    need: Literal["read", "write"],
    config: Path | None,
    store: str | None = None,
    identity: list[Path] | None = None,
    writers: Path | None = None,
    signing_key: Path | None = None,
    *,
    make: bool = True,
) -> Setup:
    """The open store with its keys; what was made at first use is said on standard error.

    Without `make` nothing is made, as a dry run needs it.
    """
    from archiver.cli.audited import opened
    from archiver.cli.output import note, problem
    from archiver.setup import open_setup

    settings = settings_of(config, store, identity, writers, signing_key)
    setup = open_setup(settings, need, interactive=interactive(), make=make)
    setup.session.flags = _flags(config_flag(config), store, identity, writers, signing_key)
    opened(setup)
    for warning in setup.warnings:
        problem("warning", warning, None, style="1;33")
    if setup.made is not None:
        from archiver.cli.explain import first_use

        for line in first_use(setup.made):
            note(line)
    return setup


def _flags(
    config: Path | None,
    store: str | None,
    identity: list[Path] | None,
    writers: Path | None,
    signing_key: Path | None,
) -> tuple[tuple[str, str], ...]:
    """What was said of store and keys, so that a command which is advised means the same from any folder."""
    from archiver.config.paths import absolute

    given = (
        ("--config", config),
        ("--store", None if store is None else store if "://" in store else Path(store)),
        *(("--identity", path) for path in identity or ()),
        ("--writers", writers),
        ("--signing-key", signing_key),
    )
    return tuple(
        (name, value if isinstance(value, str) else str(absolute(value)))
        for name, value in given
        if value is not None
    )


def interactive() -> bool:
    """Whether a person is there to read what is said."""
    streams = (sys.stdin, sys.stdout)
    return all(stream is not None and stream.isatty() for stream in streams) and not os.environ.get("CI")
