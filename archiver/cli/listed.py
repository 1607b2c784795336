"""What `archiver list` says of a run: the cells of its row, and until when it is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from archiver.cli import output

if TYPE_CHECKING:
    from collections.abc import Sequence

    from archiver.catalog import Head
    from archiver.model import Record
    from archiver.tagging.outlook import Outlook

_COLUMNS = ("RUN", "NO", "SAVED (UTC)", "OUTCOME", "TASK", "STORED", "FOUND", "PHASE", "NOTE", "EXPIRES")
_OBJECTIVE = "OBJECTIVE"
_LONG = ("STATE (UTC)", "DIALECT", _OBJECTIVE, "CUT")
_MOST_SHOWN = 200
"""Characters of an objective that a terminal may have room for."""


def show(rows: Sequence[Sequence[object]], *, long: bool) -> None:
    """Print the rows; at a terminal phase, and without `long` objective, are there if they have room."""
    more = _LONG if long else (_OBJECTIVE,) if output.tty() else ()
    output.table(
        (*_COLUMNS, *more),
        rows,
        cut=("TASK", "PHASE", "NOTE", _OBJECTIVE),
        middle=("RUN",),
        spare=() if long else ("PHASE", _OBJECTIVE),
    )


def row(head: Head, outlook: Outlook | None, *, long: bool) -> tuple[Any, ...]:
    """The cells of one run, under the columns that `show` gives them."""
    return (*_row(head), _expires(outlook), *_more(head.record, long))


def _more(record: Record | None, long: bool) -> tuple[str, ...]:
    from archiver.cli.text import moment
    from archiver.model import utc_text

    people = output.tty()
    if record is None:
        cells: tuple[str, ...] = ("", "", "", "")
    else:
        at = record.checkpoint_at
        objective = record.objective[:_MOST_SHOWN] if people else record.objective
        cut = str(record.cut) if record.cut or not people else ""
        cells = (moment(at) if people else utc_text(at), record.dialect, objective, cut)
    return cells if long else cells[2:3] if people else ()


def _row(head: Head) -> tuple[Any, ...]:
    if head.record is None:
        return (head.run, head.seq, "", _wrong(head), "", "", "", "", "")
    return _record_row(head.record, _wrong(head) if head.error is not None else head.record.outcome)


def _expires(outlook: Outlook | None) -> str:
    if outlook is None:
        return ""
    if outlook.erased:
        return "erased"
    if outlook.removed or outlook.held:
        return "removed" if outlook.removed else "held"
    return outlook.expires_on.date().isoformat() if outlook.expires_on else ""


def kept(outlook: Outlook | None) -> dict[str, Any]:
    """The same as fields beside those of the record; `retention` is the class by now."""
    from archiver.model import utc_text

    if outlook is None:
        return {}
    end = utc_text(outlook.expires_on) if outlook.expires_on else None
    known = {} if outlook.retention is None else {"retention": outlook.retention}
    return {
        **known,
        "expires_on": end,
        "held": outlook.held,
        "removed": outlook.removed,
        "erased": outlook.erased,
    }


def _wrong(head: Head) -> str:
    return f"error: {type(head.error).__name__}"


def _record_row(record: Record, outcome: str) -> tuple[Any, ...]:
    from archiver.cli.text import moment, size
    from archiver.model import utc_text

    people = output.tty()
    return (
        record.run,
        record.seq,
        moment(record.recorded_at) if people else utc_text(record.recorded_at),
        outcome,
        "" if people and record.task == record.run else record.task,
        size(record.sizes.stored) if people else record.sizes.stored,
        (sum(record.findings.values()) or "") if people else sum(record.findings.values()),
        record.phase,
        record.note,
    )
