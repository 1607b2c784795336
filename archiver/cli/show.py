"""`archiver show`: what is known of one run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from archiver.cli.options import (
    ConfigOption,
    IdentityOption,
    JsonOption,
    RunArgument,
    StoreOption,
    WritersOption,
    open_for,
)

if TYPE_CHECKING:
    from archiver.catalog import Chain
    from archiver.cli.tail import Tail
    from archiver.errors import ArchiverError
    from archiver.model import Record
    from archiver.setup import Setup


def show(
    run: RunArgument,
    tail: Annotated[
        int,
        typer.Option(
            "--tail",
            help="Open the newest bundle: also print the last N items of its transcript, and what workspace "
            "it holds.",
            metavar="N",
            min=0,
        ),
    ] = 0,
    config: ConfigOption = None,
    store: StoreOption = None,
    identity: IdentityOption = None,
    writers: WritersOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show one run: its newest checkpoint and history.

    Verifies the whole chain of records, and compares it with what was seen of the run before: where the store
    has less, or another record, what it has is shown and the exit code is 4.

    In a pipe the last lines have, a checkpoint each: number, kind, saved at, outcome, turn, stored bytes,
    phase, note.
    """
    setup = open_for("read", config, store, identity, writers)
    chain, wrong = _chain(run, setup)
    _show(chain, setup, tail, as_json)
    if wrong is not None:
        raise wrong


def _chain(run: str, setup: Setup) -> tuple[Chain, ArchiverError | None]:
    """The records, and what speaks against them although they hold together."""
    from datetime import UTC, datetime

    from archiver import noting, rollback
    from archiver.catalog import Catalog
    from archiver.errors import ArchiverError, NoSuchRunError

    now, notes = datetime.now(UTC), Catalog(setup).notes
    noting.refuse_erased(run, notes)
    try:
        sight = rollback.look(run, setup)
    except ArchiverError as error:
        return Catalog(setup).chain(run), error
    try:
        chain = Catalog(setup).chain(run)
    except NoSuchRunError as error:
        raise sight.gone(error, 0, now=now) from None
    try:
        sight.judge(chain, remember=False, now=now)
    except ArchiverError as error:
        return chain, error
    return chain, None


def _show(chain: Chain, setup: Setup, tail: int, as_json: bool) -> None:
    from archiver import noting
    from archiver.catalog import Catalog
    from archiver.cli import output
    from archiver.cli.text import counted

    said = noting.said(chain.run, Catalog(setup).notes)
    opened = None
    if tail:
        from archiver.cli.tail import tail_of

        opened = tail_of(chain, setup, tail)
    if as_json:
        output.document(
            {
                "run": chain.run,
                "writer": chain.writer,
                "replaced_before": list(_replaced_before(chain)),
                "records": [link.record.document() for link in chain.links],
                "sealed_to": list(chain.head.seal.recipients),
                "signed": list(said),
                **_opened(opened),
            }
        )
        return
    workspace = ("workspace", _workspace(opened))
    output.facts([*_facts(chain), workspace, *(("administrator", one) for one in said)])
    output.heading("Checkpoints")
    output.table(_COLUMNS, [_row(link.record) for link in chain.links], cut=("PHASE", "NOTE"))
    if opened is not None and opened.items:
        output.heading(f"Last {counted(len(opened.items), 'item')}")
        for item in opened.items:
            output.line(item["text"])


def _opened(tail: Tail | None) -> dict[str, object]:
    """What only the open bundle says; whether there is a workspace is not known without it."""
    if tail is None:
        return {"tail": []}
    found = tail.workspace
    about = None if found is None else {"kind": found.kind, "entries": found.entries, "bytes": found.bytes}
    return {"tail": [item["value"] for item in tail.items], "workspace": about}


def _workspace(tail: Tail | None) -> str:
    from archiver.cli.text import number, size

    if tail is None:
        return ""
    found = tail.workspace
    if found is None:
        return "none"
    entries = "1 entry" if found.entries == 1 else f"{number(found.entries)} entries"
    return f"{found.kind}, {entries}, {size(found.bytes)}"


_COLUMNS = ("NO", "KIND", "SAVED (UTC)", "OUTCOME", "TURN", "STORED", "PHASE", "NOTE")


def _facts(chain: Chain) -> list[tuple[str, object]]:
    from archiver.cli import output
    from archiver.cli.text import counted, counts, number, size, swept

    record = chain.head.record
    spend, sizes = record.spend, record.sizes
    tokens = [number(count) for count in (spend.tokens_in, spend.tokens_out, spend.tokens_cached)]
    done, left = number(record.plan.completed), number(record.plan.remaining)
    return [
        ("run", record.run),
        ("task", record.task),
        ("user", record.user),
        ("from", swept(_saved(chain))),
        ("objective", record.objective),
        ("outcome", record.outcome),
        ("phase", record.phase),
        ("note", record.note),
        ("state of", output.when(record.checkpoint_at)),
        ("saved", output.when(record.recorded_at)),
        ("started", output.when(record.created_at)),
        ("turn", record.turn),
        ("tokens", f"{tokens[0]} in, {tokens[1]} out, {tokens[2]} cached"),
        ("cost", f"{spend.cost:.2f} {spend.currency}" if spend.cost else ""),
        ("plan", f"{done} done, {left} left" if _has_plan(record) else ""),
        *(("waits for a person", approval.question) for approval in record.plan.pending_approvals),
        ("effects", _effects(record)),
        ("undecided effects", ", ".join(record.effects.undecided)),
        ("dialect", record.dialect),
        ("sizes", f"{size(sizes.raw)} read, {size(sizes.compacted)} packed, {size(sizes.stored)} stored"),
        ("bundle", _based(record)),
        ("replaced, rotate", counts(record.findings)),
        *(("replaced earlier, rotate", one) for one in _replaced_before(chain)),
        ("left out", counted(record.left_out, "member") if record.left_out else ""),
        ("without room", counted(record.cut, "output") if record.cut else ""),
        ("class", record.retention),
        ("signed by", f"{chain.writer} ({record.writer})"),
        ("opened by", ", ".join(chain.head.seal.recipients)),
        ("not sealed to", _missing(chain)),
        ("chain", f"{counted(len(chain.links), 'record')}, verified"),
    ]


def _based(record: Record) -> str:
    from archiver.cli.text import counted

    count = len(record.bundle.bases) if record.bundle is not None else 0
    return f"incremental, based on {counted(count, 'earlier bundle')}" if count else ""


def _saved(chain: Chain) -> Record:
    """The newest record that is no claim, where there is one."""
    saved = (link.record for link in reversed(chain.links) if link.record.kind == "checkpoint")
    return next(saved, chain.head.record)


def _missing(chain: Chain) -> str:
    from archiver.cli.text import command

    missing = chain.head.seal.lacks(chain.head.record.missing_recipients)
    if not missing:
        return ""
    return f"{', '.join(missing)}: KMS was away; next: {command('archiver rekey', chain.run, '--dry-run')}"


def _replaced_before(chain: Chain) -> tuple[str, ...]:
    from archiver.rotation import replaced_before

    return replaced_before([link.record for link in chain.links], chain.head.record)


def _effects(record: Record) -> str:
    """How many there are of each status, by the newest record."""
    from archiver.cli.text import number

    found = record.effects
    statuses = (
        ("confirmed", found.confirmed),
        ("proposed", found.proposed),
        ("in progress", found.in_progress),
        ("uncertain", found.uncertain),
    )
    return ", ".join(f"{number(count)} {status}" for status, count in statuses if count)


def _has_plan(record: Record) -> bool:
    return bool(record.plan.completed or record.plan.remaining)


def _row(record: Record) -> tuple[Any, ...]:
    from archiver.cli import output
    from archiver.cli.text import moment, size
    from archiver.model import utc_text

    people = output.tty()
    return (
        record.seq,
        record.kind,
        moment(record.recorded_at) if people else utc_text(record.recorded_at),
        record.outcome,
        record.turn,
        size(record.sizes.stored) if people else record.sizes.stored,
        record.phase,
        record.note,
    )
