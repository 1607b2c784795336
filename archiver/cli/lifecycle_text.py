"""What `archiver lifecycle` says: rules as lines, what they do to objects, and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from archiver.errors import ArchiverError
    from archiver.lifecycle.applying import Plan
    from archiver.lifecycle.bucket import Bucket
    from archiver.lifecycle.checking import Early, OfRule, Report
    from archiver.lifecycle.judge import Finding
    from archiver.lifecycle.parse import Move, Rule
    from archiver.lifecycle.rules import RawRule


def show(bucket: Bucket, as_json: bool) -> None:
    """The rules that are there, those that are missing, and what is to be said of them."""
    from archiver.cli import output
    from archiver.lifecycle.judge import judge
    from archiver.lifecycle.rules import drift, is_own, ours

    wanted, raw = bucket.wanted, bucket.configuration.rules
    drifts = drift(raw, wanted)
    findings = judge(bucket.rules, wanted)
    if as_json:
        output.document(
            {
                "bucket": bucket.s3.address.bucket,
                "prefix": wanted.prefix,
                "versioning": bucket.versioning,
                "rules": [{"own": is_own(rule, wanted.prefix), "rule": _plain(rule)} for rule in raw],
                "wanted": ours(raw, wanted),
                "drift": [{"rule": one.name, "state": one.kind, "text": one.text} for one in drifts],
                "findings": [_finding(one) for one in findings],
                "remarks": list(bucket.remarks),
            }
        )
        return
    by_name = {one.name: one for one in drifts}
    rows = []
    for rule in raw:
        own, name = is_own(rule, wanted.prefix), str(rule.get("ID") or "")
        differs = by_name.get(name) if own else None
        state = (differs.kind if differs else "ok") if own else _state(rule)
        rows.append(_row(rule, own, state, differs.text if differs else ""))
    missing = {one.name: one.text for one in drifts if one.kind == "missing"}
    rows += [
        _row(one, True, "missing", missing[one["ID"]]) for one in ours(raw, wanted) if one["ID"] in missing
    ]
    columns = ("WHOSE", "RULE", "STATE", "PREFIX", "ABOUT", "DOES", "WRONG")
    output.table(columns, rows, fold=("DOES", "WRONG"))
    for one in findings:
        output.problem(
            one.verdict, one.text, one.remedy, style="1;31" if one.verdict == "failure" else "1;33"
        )
    _remarks(list(bucket.remarks))
    if output.tty():
        output.line("" if rows else "The bucket has no rules.")
        output.line(
            "The own rules are as they should be."
            if not drifts
            else "`archiver lifecycle apply` puts the own rules right; `check` says what all of them delete."
        )


def _state(rule: RawRule) -> str:
    return "enabled" if rule.get("Status") == "Enabled" else "disabled"


def _row(rule: RawRule, own: bool, state: str, wrong: str) -> tuple[object, ...]:
    from archiver.lifecycle.parse import rule_of

    read = rule_of(rule, "")
    whose = "own" if own else "other"
    return whose, str(rule.get("ID") or ""), state, read.prefix, _about(read), _does(read), wrong


def _about(rule: Rule) -> str:
    said = [f"{key}={value}" for key, value in sorted(rule.tags.items())]
    said += [] if rule.greater is None else [f"more than {rule.greater} bytes"]
    said += [] if rule.less is None else [f"less than {rule.less} bytes"]
    return ", ".join(said) or "everything"


def _does(rule: Rule) -> str:
    left = f" but for {rule.newer}" if rule.newer else ""
    said = [
        *([] if rule.days is None else [f"expires after {_days(rule.days)}"]),
        *([] if rule.date is None else [f"expires on {rule.date:%Y-%m-%d}"]),
        *(
            []
            if rule.noncurrent_days is None
            else [f"removes old versions{left} after {_days(rule.noncurrent_days)}"]
        ),
        *(["removes markers that hide nothing"] if rule.markers else []),
        *([] if rule.abort_days is None else [f"aborts uploads after {_days(rule.abort_days)}"]),
        *(_move(one) for one in rule.moves),
    ]
    return ", ".join(said) or "nothing that is known here"


def _move(move: Move) -> str:
    what = "old versions " if move.noncurrent else ""
    when = f"on {move.date:%Y-%m-%d}" if move.date else f"after {_days(move.days or 0)}"
    return f"moves {what}to {move.storage} {when}"


def _days(count: int) -> str:
    return f"{count} day{'' if count == 1 else 's'}"


def checked(report: Report, by_records: bool, error: ArchiverError | None, as_json: bool) -> None:
    """What the rules do to what lies in the store."""
    from archiver.cli import output
    from archiver.cli.program import described
    from archiver.cli.text import counted

    if as_json:
        document = {**_report(report, by_records), "error": described(error) if error else None}
        output.document(document)
    else:
        _table(report)
        if output.tty():
            of = f" of {report.total}" if report.looked != report.total else ""
            output.line(f"{counted(report.looked, 'version')}{of} looked at, promises from "
                        f"{'verified records' if by_records else 'tags'}.")  # fmt: skip
    if report.uncovered:
        output.note(f"No rule expires all of: {', '.join(report.uncovered)}.")
    if report.unclassed:
        named = ", ".join(report.unclassed_names)
        output.note(
            f"{counted(report.unclassed, 'object')} without a class, which no own rule takes: {named}"
        )
    for storage, count in report.moved.items():
        output.note(f"{counted(count, 'object')} will be moved to {storage}.")
    for one in report.findings:
        if one.verdict == "failure":
            output.problem("warning", one.text, one.remedy, style="1;33")
    _remarks(report.remarks)
    if error is not None:
        output.problem("error", str(error), error.remedy)


def _table(report: Report) -> None:
    from archiver.cli import output

    rows = [
        (
            "early" if one.early else "ok",
            one.rule.id,
            "own" if one.own else "other",
            one.takes,
            one.early,
            output.when(one.next) if one.next else "",
            "; ".join(_named(early) for early in one.first),
        )
        for one in report.rules
    ]
    columns = ("", "RULE", "WHOSE", "TAKES", "TOO EARLY", "THE FIRST ON", "TOO EARLY ARE")
    output.table(columns, rows, fold=("TOO EARLY ARE",))


def _named(early: Early) -> str:
    until = "without end" if early.promised is None else f"until {early.promised:%Y-%m-%d}"
    version = f" version {early.version}" if early.version else ""
    return f"{early.name}{version} on {early.at:%Y-%m-%d}, promised {until} ({early.why})"


def planned(found: Plan, report: Report) -> None:
    """What a person is asked about."""
    from archiver.cli import output

    for line in found.diff():
        output.line(line)
    for one in report.unsafe:
        output.problem("warning", _unsafe(one), None, style="1;33")


def _unsafe(one: OfRule) -> str:
    return f"{one.rule.name} takes {one.early} before their promise ends: {_named(one.first[0])}"


def applied(found: Plan, report: Report, *, done: bool, asked: bool, as_json: bool) -> None:
    """What was put, or would be."""
    from archiver.cli import output
    from archiver.lifecycle.checking import FEW

    changes = _changes(found)
    if as_json:
        output.document(
            {
                "put": done,
                "changed": found.changes,
                "rules": [{"rule": name, "change": change} for change, name in changes],
                "merged": [_plain(rule) for rule in found.merged],
                "check": _report(report, by_records=None),
            }
        )
    elif not output.tty():
        for cells in changes:
            output.row(cells)
    else:
        if not asked:
            planned(found, report)
        output.line(_said(found, done, asked))
    if not output.tty() or as_json:
        for one in report.unsafe[:FEW]:
            output.problem("warning", _unsafe(one), None, style="1;33")
    _remarks(report.remarks)


def _said(found: Plan, done: bool, asked: bool) -> str:
    from archiver.cli.text import counted

    others = counted(len(found.others), "rule")
    if done:
        return f"Put, and read back; {others} of others stayed as they were."
    if not found.changes:
        return "The rules are as they should be; nothing was put."
    return "Nothing was put." if asked else f"This would be put; {others} of others would stay as they are."


def _changes(found: Plan) -> list[tuple[str, str]]:
    from archiver.lifecycle.rules import same

    before = {str(rule.get("ID") or ""): rule for rule in found.before}
    after = {str(rule.get("ID") or ""): rule for rule in found.merged}
    kept = [
        ("added" if name not in before else "kept" if same(before[name], rule) else "changed", name)
        for name, rule in after.items()
    ]
    return [*kept, *(("removed", name) for name in before if name not in after)]


def _remarks(remarks: list[str], most: int = 10) -> None:
    from archiver.cli import output

    for one in remarks[:most]:
        output.problem("note", one, None, style="1;33")
    if len(remarks) > most:
        output.problem("note", f"{len(remarks) - most} more of the kind", None, style="1;33")


def _report(report: Report, by_records: bool | None) -> dict[str, Any]:
    return {
        "looked": report.looked,
        "total": report.total,
        "early": report.early,
        **({} if by_records is None else {"promises": "records" if by_records else "tags"}),
        "rules": [_of_rule(one) for one in report.rules],
        "uncovered": list(report.uncovered),
        "unclassed": {"objects": report.unclassed, "first": report.unclassed_names},
        "moved": report.moved,
        "findings": [_finding(one) for one in report.findings],
        "remarks": report.remarks,
    }


def _of_rule(one: OfRule) -> dict[str, Any]:
    from archiver.model import utc_text

    return {
        "rule": one.rule.id,
        "own": one.own,
        "takes": one.takes,
        "next": utc_text(one.next) if one.next else None,
        "early": one.early,
        "first": [
            {
                "name": early.name,
                "version": early.version,
                "at": utc_text(early.at),
                "promised": utc_text(early.promised) if early.promised else None,
                "why": early.why,
            }
            for early in one.first
        ],
    }


def _finding(one: Finding) -> dict[str, Any]:
    return {"verdict": one.verdict, "text": one.text, "remedy": one.remedy, "rules": list(one.rules)}


def _plain(rule: RawRule) -> Any:
    """A rule with the dates of it as text."""
    from archiver import jsonio
    from archiver.lifecycle.applying import text

    return jsonio.loads(text(rule).encode())
