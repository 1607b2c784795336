"""`archiver init`: a store, keys and a configuration."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from archiver.cli.options import ConfigOption, JsonOption, config_flag

if TYPE_CHECKING:
    from archiver.setup import Initialised

_FENCING = {True: "enforced", False: "not enforced", None: "unknown"}


def init(
    store: Annotated[
        str | None,
        typer.Argument(
            help="Folder or s3://BUCKET/PREFIX of the store; without it, a folder in the data home.",
            metavar="STORE",
        ),
    ] = None,
    region: Annotated[
        str | None, typer.Option("--region", help="AWS region of the bucket.", metavar="REGION")
    ] = None,
    endpoint_url: Annotated[
        str | None,
        typer.Option("--endpoint-url", help="Address of an S3 server that is not AWS.", metavar="URL"),
    ] = None,
    profile: Annotated[
        str | None, typer.Option("--profile", help="Profile of the AWS configuration.", metavar="NAME")
    ] = None,
    recipient: Annotated[
        list[str] | None,
        typer.Option(
            "--recipient",
            "-r",
            help="Who else can open what is saved: age1… or the ARN of a KMS key; repeatable.",
            metavar="RECIPIENT",
        ),
    ] = None,
    without_fencing: Annotated[
        bool,
        typer.Option(
            "--without-fencing",
            help="Go on with a store that ignores conditional writes: two writers of one run can both win.",
        ),
    ] = False,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Set up a store, keys and a configuration.

    Proves a round trip, and that of two writers of one name one is refused, before it is done. Keys that are
    there are used and never overwritten. The configuration is written to --config, else to archiver.toml in
    the configuration home. AWS credentials come from where the AWS tools look for them.
    """
    from datetime import UTC, datetime

    from archiver.cli import output
    from archiver.config import FILE_NAME, asked_for, config_home, load
    from archiver.setup import initialise
    from archiver.setup.contents import default_store

    _refuse_aws_flags(store, region, endpoint_url, profile)
    target = asked_for(config_flag(config)) or config_home() / FILE_NAME
    flags: dict[str, dict[str, Any]] = {
        "store": _given(region=region, endpoint_url=endpoint_url, profile=profile),
        "keys": _given(recipients=tuple(recipient) if recipient else None),
    }
    if without_fencing:
        flags["store"]["fencing"] = False
    settings = load(flags=flags, without_file=True)
    made = initialise(store or default_store(), target, settings=settings, now=datetime.now(UTC))
    if as_json:
        output.document(_document(made))
    else:
        _say(made, target)
    for warning in made.warnings:
        output.problem("warning", warning, None, style="1;33")


def _refuse_aws_flags(store: str | None, *flags: str | None) -> None:
    """A mistyped bucket would become a folder, and what was said of a server would go unheard."""
    from archiver.errors import UsageError

    if any(flags) and not (store or "").lower().startswith("s3:"):
        raise UsageError(
            "--region, --endpoint-url and --profile are for buckets, and the store is a folder",
            remedy="name the bucket as s3://BUCKET/PREFIX, or leave them out",
        )


def _given(**values: Any) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


def _document(made: Initialised) -> dict[str, Any]:
    from archiver.cli import explain

    return {
        "store": made.store,
        "store_id": made.store_id,
        "config": str(made.config),
        "new_store": made.new_store,
        "new_identity": made.new_identity,
        "new_signing_key": made.new_signing_key,
        "fencing": _FENCING[made.fenced],
        "probes_left": list(made.left),
        "warnings": list(made.warnings),
        **explain.public_facts(made.keys),
    }


def _say(made: Initialised, target: Path) -> None:
    from archiver.cli import explain, output

    for text in explain.created(made):
        output.line(text)
    output.line("Sealed, signed, stored, read back, opened and verified a probe: the store works.")
    if made.fenced:
        output.line("Of several creators of one name all but one were refused: no writer overwrites another.")
    for text in explain.left(made):
        output.line(text)
    if made.new_identity or made.new_signing_key:
        for text in explain.backup(made.keys, made.config if made.remote else None):
            output.line(text)
    if not made.remote:
        output.line(explain.beside_store(made))
    where = "" if _found(target) else f" --config {shlex.quote(str(target))}"
    if where:
        output.line(f"Use it with{where}, or set ARCHIVER_CONFIG.")
    output.line(f"Next: archiver doctor{where} looks at what the store enforces.")


def _found(config: Path) -> bool:
    """Whether the next command takes this configuration without being told."""
    from archiver.config.loading import find_file
    from archiver.errors import ArchiverError

    try:
        return find_file(None) == config
    except ArchiverError:
        return False
