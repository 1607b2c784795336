"""`archiver lifecycle show | check | apply`: rules of the bucket, what they do, and what they should be."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from archiver.cli.options import (
    BecauseOption,
    ConfigOption,
    IdentityOption,
    JsonOption,
    StoreOption,
    WritersOption,
    interactive,
    open_for,
    settings_of,
)
from archiver.errors import KeyUnavailableError, UsageError

if TYPE_CHECKING:
    from archiver.lifecycle.applying import Plan
    from archiver.lifecycle.bucket import Bucket
    from archiver.lifecycle.checking import Report
    from archiver.setup import Setup

SampleOption = Annotated[
    str | None,
    typer.Option(
        "--sample", help="Look at a random sample of the objects alone: `5%`, or a number.", metavar="SIZE"
    ),
]


def lifecycle_show(
    config: ConfigOption = None, store: StoreOption = None, as_json: JsonOption = False
) -> None:
    """Show the rules of the bucket, and how they differ from those that the classes need.

    Only the rules are read, no object. Rules of this store are `own`; all others are left alone by whatever
    archiver does.

    In a pipe each line has: own or other, the rule, its state (ok, changed, disabled, missing, superfluous;
    of others enabled or disabled), the prefix, what it is about, what it does, what is not as it should be.
    """
    from archiver.cli import lifecycle_text as text
    from archiver.lifecycle import bucket as room

    text.show(room.read(settings_of(config, store)), as_json)


def lifecycle_check(
    sample: SampleOption = None,
    config: ConfigOption = None,
    store: StoreOption = None,
    identity: IdentityOption = None,
    writers: WritersOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say what the rules of the bucket do to what lies in the store.

    Goes through all rules, whosesoever, with the names, tags, sizes and ages of the objects, and of old
    versions where they may be listed. How long an object is promised to be there comes from the verified
    records of its run, or, where no identity opens them, from its tag. Nothing is changed.

    Exits 3 when a rule would delete something before its promise ends.

    In a pipe each line has: ok or early, the rule, own or other, objects that it takes, those of them before
    their promise ends, when it takes the first, the first of those that go too early.
    """
    from archiver.cli import lifecycle_text as text
    from archiver.lifecycle import bucket as room

    bucket = room.read(settings_of(config, store, identity, writers))
    setup = _setup(config, store, identity, writers)
    report = _checked(bucket, setup, sample, as_json)
    error = report.error()
    text.checked(report, setup.identities != (), error, as_json)
    if error is not None:
        raise typer.Exit(error.exit_code)


def lifecycle_apply(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be put.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    despite_others: Annotated[
        bool,
        typer.Option("--despite-others", help="Put them although rules of others delete what is promised."),
    ] = False,
    despite_tags: Annotated[
        bool,
        typer.Option(
            "--despite-tags", help="Put them although they take what is promised and has a wrong tag."
        ),
    ] = False,
    because: BecauseOption = "",
    sample: SampleOption = None,
    config: ConfigOption = None,
    store: StoreOption = None,
    identity: IdentityOption = None,
    writers: WritersOption = None,
    as_json: JsonOption = False,
) -> None:
    """Put the rules that the classes need into the bucket.

    Only own rules are replaced; those of others stay as they are. The rules are read again right before they
    are put, and once more afterwards. Refused while a rule of others deletes what is promised, as `check`
    says it, and where the new rules would delete what is promised because its tag is wrong.

    In a pipe each line has: kept, added, changed or removed, and the rule.
    """
    from archiver.cli import lifecycle_text as text
    from archiver.lifecycle import applying
    from archiver.lifecycle import bucket as room

    if not (yes or dry_run or (interactive() and not as_json)):
        raise UsageError(
            "changing the rules of a bucket has to be confirmed, and nobody is here to be asked",
            remedy="look at it with --dry-run, then run it with --yes",
        )
    bucket = room.read(settings_of(config, store, identity, writers))
    found = applying.plan(bucket)
    setup = _setup(config, store, identity, writers)
    report = _checked(bucket, setup, sample, as_json, found)
    if not despite_others:
        applying.refuse_unsafe(found, report)
    if not despite_tags:
        applying.refuse_newly_unsafe(found, report)
    wanted = found.changes and not dry_run
    if wanted and not yes:
        text.planned(found, report)
        wanted = typer.confirm("Put these rules?", err=True)
    if wanted:
        _put(found, setup, because)
    text.applied(found, report, done=wanted, asked=not yes and not dry_run, as_json=as_json)


def _put(found: Plan, setup: Setup, because: str) -> None:
    from dataclasses import replace

    from archiver import audit
    from archiver.cli import output
    from archiver.lifecycle import applying

    acting = replace(setup, why=because or setup.why)
    detail = {"rules": len(found.merged), "others": len(found.others)}
    for warning in audit.note(acting, "lifecycle", run=None, detail=detail):
        output.problem("warning", warning, None, style="1;33")
    applying.apply(found)


def _setup(
    config: Path | None, store: str | None, identity: list[Path] | None, writers: Path | None
) -> Setup:
    """The open store; where nothing opens what lies in it, the store alone."""
    from archiver.cli import output
    from archiver.cli.audited import opened
    from archiver.lifecycle.opening import without_identity

    try:
        return open_for("read", config, store, identity, writers)
    except KeyUnavailableError as error:
        setup = without_identity(settings_of(config, store, identity, writers))
        opened(setup)
        output.note(f"Promises are read from tags alone: {error}")
        return setup


def _checked(
    bucket: Bucket, setup: Setup, sample: str | None, as_json: bool, found: Plan | None = None
) -> Report:
    from datetime import UTC, datetime

    from archiver.cli.progress import counted
    from archiver.lifecycle.checking import check
    from archiver.sampling import Sample

    rules = None if found is None else found.merged
    picked = None if sample is None else Sample(sample)
    with counted("objects looked at", as_json) as tick:
        return check(
            bucket,
            setup if setup.identities else None,
            now=datetime.now(UTC),
            rules=rules,
            sample=picked,
            tick=tick,
        )
