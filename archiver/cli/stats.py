"""`archiver stats`: what a store says about its runs, added up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from archiver.cli.completing import runs
from archiver.cli.options import (
    ConfigOption,
    IdentityOption,
    JsonOption,
    StoreOption,
    WritersOption,
    open_for,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from archiver.spool import Depth
    from archiver.statistics import Audited, Statistics, Sums, Timing


def stats(
    run: Annotated[
        list[str] | None,
        typer.Argument(
            help="Ids of runs; else all of the store.", metavar="RUN", show_default=False, autocompletion=runs
        ),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            "--since",
            help="Only what was saved since then: `2026-03-01`, a full time, or `7d`.",
            metavar="TIME",
        ),
    ] = None,
    config: ConfigOption = None,
    store: StoreOption = None,
    identity: IdentityOption = None,
    writers: WritersOption = None,
    as_json: JsonOption = False,
) -> None:
    """Add up what a store says: runs, checkpoints, bytes, credentials replaced, effects, resumes.

    Reads all records of all runs, each chain verified, and all that was written down about them in the audit.
    A run that is damaged, or behind what was seen of it, is counted as `damaged`, named, and what of it holds
    together is in the sums; the exit code is then as that of `list`.

    What the audit tells (restores, stale ones, duplicate effects prevented, latencies) is what somebody wrote
    down, with a key that is trusted or on this machine; docs/MEASURES.md says what a store cannot know.

    In a pipe each line has: name, number, with the names of the JSON.
    """
    from archiver import statistics
    from archiver.cli import output, problems
    from archiver.cli.progress import counted
    from archiver.cli.text import since_when

    start = since_when(since) if since else None
    setup = open_for("read", config, store, identity, writers)
    with counted("runs and audit entries read", as_json) as tick:
        found = statistics.gather(setup, run or (), since=start, told=tick)
    _refuse_unknown(run or (), found)
    _show(found, as_json)
    for warning in found.warnings:
        output.problem("warning", warning, None, style="1;33")
    broken = [(_place(head.run, head.seq), head.error) for head in found.broken if head.error is not None]
    problems.report((f"{place}: {error}", error) for place, error in broken)
    if broken:
        raise typer.Exit(max(error.exit_code for _, error in broken))


def _refuse_unknown(named: Collection[str], found: Statistics) -> None:
    """Where the store has none of the runs that were named there is nothing to add up."""
    from archiver.errors import NoSuchRunError

    unknown = [head.error for head in found.broken if isinstance(head.error, NoSuchRunError)]
    if unknown and len(unknown) == len(set(named)):
        raise unknown[0]


def _show(found: Statistics, as_json: bool) -> None:
    from archiver.cli import output

    document = _document(found)
    if as_json:
        output.document(document)
    elif output.tty():
        output.facts([*_of_runs(found.sums), *_of_audit(found.audited), ("spool", _spool(found.waiting))])
    else:
        del document["errors"]
        for name, value in _flat(document, ""):
            output.row((name, value))


def _place(run: str, seq: int) -> str:
    return f"run {run}, record {seq}" if seq else f"run {run}"


def _document(found: Statistics) -> dict[str, Any]:
    from archiver.cli.program import described
    from archiver.model import utc_text

    sums, audited = found.sums, found.audited
    avoided = sums.avoided
    return {
        "runs": {"total": sums.runs.total(), **_sorted(sums.runs)},
        "records": {kind: sums.records[kind] for kind in ("checkpoint", "claim", "skipped")},
        "bytes": {
            "raw": sums.raw,
            "compacted": sums.compacted,
            "stored": sums.stored,
            "compacted_of_raw": _share(sums.compacted, sums.raw),
            "stored_of_raw": _share(sums.stored, sums.raw),
        },
        "findings": _sorted(sums.findings),
        "left_out": sums.left_out,
        "effects": {status: sums.effects[status] for status in _STATUSES},
        "replay_avoided": {
            "resumes": sums.records["claim"],
            "resumes_of_unknown_use": avoided.unknown,
            "seconds": avoided.seconds,
            "tokens": avoided.tokens,
            "cost": dict(sorted(avoided.cost.items())),
        },
        "audit": {
            "restores": audited.restores,
            "stale_restores_refused": audited.refused,
            "stale_probes_accepted": _sorted(audited.accepted),
            "sessions": audited.sessions,
            "duplicate_effects_prevented": audited.duplicates_prevented,
            "steps_replayed": audited.steps_replayed,
            "failed_saves": audited.failed,
            "create_seconds": _timing(audited.create),
            "restore_seconds": _timing(audited.restore),
            "unread": audited.unread,
            "unknown_signers": audited.unknown,
        },
        "spool": None
        if found.waiting is None
        else {
            "entries": found.waiting.entries,
            "bytes": found.waiting.bytes,
            "forks": found.waiting.forks,
            "oldest": utc_text(found.waiting.oldest) if found.waiting.oldest else None,
        },
        "errors": [{"run": h.run, "seq": h.seq, **described(h.error)} for h in found.broken if h.error],
    }


_STATUSES = ("proposed", "in_progress", "confirmed", "uncertain", "undecided")


def _sorted(counts: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(counts.items()))


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 6) if whole else None


def _timing(timing: Timing) -> dict[str, Any] | None:
    """None where nobody has measured it."""
    if not timing.count:
        return None
    return {"count": timing.count, "mean": timing.mean, "slowest": timing.slowest}


def _flat(document: Mapping[str, Any], before: str) -> Iterator[tuple[str, Any]]:
    """Each number with the names that lead to it; what is not known has none, and stands as such."""
    for name, value in document.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", "" if value is None else value


def _of_runs(sums: Sums) -> Iterator[tuple[str, str]]:
    from archiver.cli.text import counted, counts, number, size

    total = sums.runs.total()
    yield "runs", f"{number(total)}{_listed(sums.runs)}"
    skipped = sums.records["skipped"]
    more = f", {counted(skipped, 'skipped one')} that had no room in the spool" if skipped else ""
    yield "checkpoints", f"{number(sums.records['checkpoint'])}{more}"
    yield "raw", size(sums.raw)
    yield "compacted", f"{size(sums.compacted)}{_percent(sums.compacted, sums.raw)}"
    yield "stored", f"{size(sums.stored)}{_percent(sums.stored, sums.raw)}"
    yield "credentials replaced", counts(sums.findings) or "none"
    yield "left out", counted(sums.left_out, "member") if sums.left_out else ""
    yield "effects", _listed({name: sums.effects[name] for name in _STATUSES}).removeprefix(": ") or "none"
    yield "resumes", number(sums.records["claim"])
    yield "replay avoided", _avoided(sums)


def _avoided(sums: Sums) -> str:
    from archiver.cli.text import counted, number
    from archiver.policy.words import span, usd

    avoided = sums.avoided
    parts = [span(avoided.seconds)] if avoided.seconds else []
    for currency, amount in sorted(avoided.cost.items()):
        parts.append(usd(amount) if currency == "USD" else f"{amount:,.2f} {currency}")
    if avoided.tokens:
        parts.append(f"{number(avoided.tokens)} tokens")
    if avoided.unknown:
        parts.append(f"not known of {counted(avoided.unknown, 'resume')}, whose checkpoints say no use")
    return ", ".join(parts) or "none"


def _of_audit(audited: Audited) -> Iterator[tuple[str, str]]:
    from archiver.cli.text import counted, number

    refused = f", {number(audited.refused)} refused as stale" if audited.refused else ""
    yield "restores", f"{number(audited.restores)}{refused}"
    yield "went on in spite of", ", ".join(f"{p} ({number(n)})" for p, n in sorted(audited.accepted.items()))
    if audited.sessions:
        said = f" (said by {counted(audited.sessions, 'session')})"
        yield "duplicate effects prevented", f"{number(audited.duplicates_prevented)}{said}"
        yield "steps replayed", f"{number(audited.steps_replayed)}{said}"
        yield "failed saves", number(audited.failed) if audited.failed else ""
    else:
        yield "duplicate effects prevented", "not known: no session of the library has said"
    yield "create latency", _latency(audited.create)
    yield "restore latency", _latency(audited.restore)
    yield "audit objects not counted", _uncounted(audited)


def _spool(depth: Depth | None) -> str:
    from archiver.cli.text import counted, moment, size

    if depth is None:
        return "not known: the configuration does not say which store this is"
    if not depth.entries and not depth.forks:
        return "nothing waits on this machine"
    since = f", since {moment(depth.oldest)} UTC" if depth.oldest else ""
    waiting = (
        f"{counted(depth.entries, 'object')} wait{'s' if depth.entries == 1 else ''} on this machine{since}"
    )
    forks = f", {counted(depth.forks, 'fork')}" if depth.forks else ""
    return f"{waiting}{forks}; {size(depth.bytes)}"


def _latency(timing: Timing) -> str:
    from archiver.cli.text import counted
    from archiver.policy.words import span

    if timing.mean is None:
        return "not known: no session of the library has said"
    times = counted(timing.count, "time")
    return f"{span(timing.mean)} on average, {span(timing.slowest)} at most, measured {times}"


def _uncounted(audited: Audited) -> str:
    from archiver.cli.text import number

    parts = []
    if audited.unknown:
        parts.append(f"{number(audited.unknown)} signed by unknown keys")
    if audited.unread:
        parts.append(f"{number(audited.unread)} that do not open or do not hold")
    return ", ".join(parts)


def _listed(counts: Mapping[str, int]) -> str:
    """`: 3 failed, 1 running`, without what there is none of."""
    from archiver.cli.text import number

    parts = [f"{number(n)} {name.replace('_', ' ')}" for name, n in sorted(counts.items()) if n]
    return f": {', '.join(parts)}" if parts else ""


def _percent(part: int, whole: int) -> str:
    if not whole:
        return ""
    share = 100 * part / whole
    return f" ({share:,.0f} % of raw)" if share >= 10 else f" ({share:.2g} % of raw)"
