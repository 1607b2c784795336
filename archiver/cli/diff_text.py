"""How a difference is printed: a line each, in the order in which somebody asks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from archiver.cli import output

if TYPE_CHECKING:
    from archiver.model.difference import (
        Change,
        Difference,
        FileChanges,
        FolderDifference,
        PartChange,
        Point,
        SpendChange,
    )

NEW: Final = "+"
GONE: Final = "-"
CHANGED: Final = "~"
UNKNOWN: Final = "?"
_COLUMNS: Final = ("PART", "", "WHAT", "BEFORE", "AFTER")
_MOST: Final = 300
"""Characters of a value that a terminal is shown."""

Line = tuple[str, str, object, object, object]


def show(found: Difference | FolderDifference) -> None:
    """Print it: a table at a terminal, lines of five cells in a pipe."""
    from archiver.model.difference import FolderDifference

    if isinstance(found, FolderDifference):
        _show_beside(found)
        return
    rows = [(part, sign, _cell(what), _cell(old), _cell(new)) for part, sign, what, old, new in lines(found)]
    if output.tty():
        output.line(f"Run {found.run}: {_point(found.before)} → {_point(found.after)}.")
        if found.empty:
            output.line("Nothing of the state changed.")
    output.table(_COLUMNS, rows, cut=("BEFORE", "AFTER"), fold=("WHAT",))
    if found.files is not None and found.files.base_before != found.files.base_after:
        text = "the files are differences to two commits: what was committed in between is not among them"
        output.problem("note", text, None, style="1;33")


def _show_beside(found: FolderDifference) -> None:
    rows = [(part, sign, _cell(what), _cell(old), _cell(new)) for part, sign, what, old, new in beside(found)]
    if output.tty():
        point = f"checkpoint {found.seq} of {output.when(found.checkpoint_at)}"
        output.line(f"Run {found.run}: the workspace of {point} → {found.folder}.")
        if found.empty:
            output.line("Nothing that could be compared is another.")
    output.table(_COLUMNS, rows, cut=("BEFORE", "AFTER"), fold=("WHAT",))


def beside(found: FolderDifference) -> Iterator[Line]:
    """What is otherwise in a folder, then what could not be compared, which has the sign `?`."""
    for one in (*found.changes, *found.unknown):
        sign = {"missing": GONE, "extra": NEW, "unknown": UNKNOWN}.get(one.kind, CHANGED)
        part = one.kind if one.kind == "index" else "workspace" if one.path is None else "file"
        if one.path is None:
            yield part, sign, one.what, "", ""
        else:
            yield part, sign, one.path, "", one.what
    for sign, more in (
        (CHANGED, found.differing - len(found.changes)),
        (UNKNOWN, found.not_compared - len(found.unknown)),
    ):
        if more:
            yield "file", sign, f"{more} more", "", ""


def lines(found: Difference) -> Iterator[Line]:
    """Every change as part, sign, what, before and after."""
    yield from _changes("state", found.fields)
    yield from _plan(found)
    yield from _effects(found)
    yield from _results(found)
    if found.spend is not None:
        yield from _spend(found.spend)
    for part in found.transcript:
        yield _part(part)
    yield from _artifacts(found)
    if found.files is not None:
        yield from _files(found.files)
    if found.files_unknown is not None:
        yield "files", CHANGED, found.files_unknown, "", ""
    for one in found.findings:
        yield "found", CHANGED, one.rule, one.before, one.after
    yield from _changes("environment", found.environment)
    for name, old in found.before.sizes:
        new = getattr(found.after.sizes, name)
        if old != new:
            yield "bytes", CHANGED, name, old, new


def _changes(part: str, found: Iterable[Change]) -> Iterator[Line]:
    for one in found:
        sign = NEW if one.before is None else GONE if one.after is None else CHANGED
        yield part, sign, one.name, one.before, one.after


def _plan(found: Difference) -> Iterator[Line]:
    plan = found.plan
    if plan is None:
        return
    for step in plan.completed:
        yield "plan", CHANGED, step.title, "", "completed"
    for step in plan.reopened:
        yield "plan", CHANGED, step.title, "completed", "left to do"
    for step in plan.added:
        yield "plan", NEW, step.title, "", "left to do"
    for step in plan.removed:
        yield "plan", GONE, step.title, "", ""
    yield from _changes("plan", plan.reworded)
    if plan.reordered:
        yield "plan", CHANGED, "the order of what is left or done", "", ""
    for approval in plan.asked:
        yield "approval", NEW, approval.question, "", "waits for a person"
    for approval in plan.answered:
        yield "approval", GONE, approval.question, "waited for a person", ""


def _effects(found: Difference) -> Iterator[Line]:
    effects = found.effects
    if effects is None:
        return
    for new in effects.new:
        yield "effect", NEW, f"{new.tool} {new.key}", "", new.status
    for one in effects.changed:
        also = f" ({', '.join(one.fields)})" if one.fields else ""
        yield "effect", CHANGED, f"{one.tool} {one.key}{also}", one.before, one.after
    for gone in effects.gone:
        yield "effect", GONE, f"{gone.tool} {gone.key}", gone.status, ""


def _results(found: Difference) -> Iterator[Line]:
    if found.evidence is not None:
        for sign, listed in ((NEW, found.evidence.new), (GONE, found.evidence.gone)):
            for one in listed:
                exit_status = "" if one.exit_status is None else f"exit {one.exit_status}"
                said = "; ".join(filter(None, (exit_status, one.summary)))
                yield "evidence", sign, one.command, *_on_its_side(sign, said)
    results = found.results
    if results is None:
        return
    for key in results.new:
        yield "result", NEW, key, "", ""
    for changed in results.changed:
        yield "result", CHANGED, f"{changed.key} ({', '.join(changed.fields)})", "", ""
    for key in results.gone:
        yield "result", GONE, key, "", ""
    for file in results.files_new:
        yield "file named", NEW, file, "", ""
    for file in results.files_gone:
        yield "file named", GONE, file, "", ""


def _on_its_side(sign: str, said: str) -> tuple[str, str]:
    return ("", said) if sign == NEW else (said, "")


def _spend(spend: SpendChange) -> Iterator[Line]:
    for name in ("tokens_in", "tokens_out", "tokens_cached", "iterations"):
        if more := getattr(spend, name):
            yield "spend", CHANGED, name, "", f"{more:+}"
    if spend.seconds:
        yield "spend", CHANGED, "seconds", "", f"{spend.seconds:+.1f}"
    if spend.currency_before is not None:
        yield "spend", CHANGED, "currency", spend.currency_before, spend.currency
    elif spend.cost:
        yield "spend", CHANGED, "cost", "", f"{spend.cost:+.4f} {spend.currency}"


def _part(part: PartChange) -> Line:
    roles = ", ".join(f"{count} {role}" for role, count in part.by_role.items())
    unit = part.unit.removesuffix("s") if part.added == 1 else part.unit
    added = f"{part.added} more {unit}" + (f" ({roles})" if roles else "")
    if part.state == "parted":
        added = f"parts after {part.common}, then {added}"
    if part.header:
        added += ", other header"
    sign = {"added": NEW, "gone": GONE}.get(part.state, CHANGED)
    new = "" if part.state == "gone" else f"{part.after}: {added}"
    return "transcript", sign, part.name, part.before, new


def _artifacts(found: Difference) -> Iterator[Line]:
    if found.artifacts is None:
        return
    for one in found.artifacts.new:
        yield "artifact", NEW, f"{one.sha256[:16]} {one.summary}", "", one.size
    for one in found.artifacts.gone:
        yield "artifact", GONE, f"{one.sha256[:16]} {one.summary}", one.size, ""
    for digest in found.artifacts.described:
        yield "artifact", CHANGED, digest[:16], "", ""


def _files(files: FileChanges) -> Iterator[Line]:
    groups = (
        (NEW, files.paths_added, files.added),
        (CHANGED, files.paths_changed, files.changed),
        (GONE, files.paths_gone, files.gone),
    )
    for sign, paths, count in groups:
        for path in paths:
            yield "file", sign, path, "", ""
        if more := count - len(paths):
            yield "file", sign, f"{more} more", "", ""
    yield from _changes("workspace", files.state)
    if files.base_before != files.base_after:
        yield "workspace", CHANGED, "base", files.base_before, files.base_after


def _cell(value: object) -> object:
    """A value in one cell: text as it is, whatever else as JSON, and at a terminal not all of a long one."""
    text = _text(value)
    if isinstance(text, str) and output.tty():
        from archiver.safetext import shorten

        return shorten(text, _MOST)
    return text


def _text(value: Any) -> object:
    if value is None:
        return ""
    if isinstance(value, str | int) and not isinstance(value, bool):
        return value
    from archiver import jsonio

    return jsonio.dumps(value).decode()


def _point(point: Point) -> str:
    return f"checkpoint {point.seq} of {output.when(point.checkpoint_at)}, {point.outcome}"
