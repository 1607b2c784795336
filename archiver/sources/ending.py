"""Whether a run is complete and how it ended: by a final marker, or by quiet and its last words.

A marker counts at once. Without one a run is complete when nothing has been written for a while and no
process can write to it.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from archiver.errors import ArchiverError, InputNotFoundError, RefusedError
from archiver.model.run_manifest import MANIFEST_NAME
from archiver.safetext import one_line
from archiver.sources import places, rollouts
from archiver.sources.found import Ending, FileStamp, Found
from archiver.sources.harness import LONGEST_CALL
from archiver.sources.listing import stamp_of
from archiver.sources.opened import OpenFiles
from archiver.sources.session import dialect_of
from archiver.sources.tail import LARGEST, LARGEST_MARKER, MARKER_WINDOW, tails
from archiver.sources.verdict import TURN_ABORTED, TURN_ENDS, Told, Verdict, response_beside
from archiver.transcripts.codex_lines import event_of
from archiver.transcripts.detect import CLAUDE_CODE, CODEX, OPAQUE
from archiver.transcripts.reader import recognise
from archiver.transcripts.source import FileSource

_DAMAGED: Final = Told("crashed", "what it holds is damaged")
_GONE: Final = Ending(False, None, "gone since it was found")
_NOTHING_ASKED: Final = Told("cancelled", "nothing was ever asked")


def ending(found: Found, now: datetime, opened: OpenFiles) -> Ending:
    """Whether it is complete and how it ended, as its files are now.

    Raises `RefusedError` where they may not be read; files that are gone make a run that is not complete.
    """
    if found.outcome not in (None, "running"):
        return Ending(True, found.outcome, f"{MANIFEST_NAME} says {found.outcome}")
    try:
        files = _again(found)
        return _GONE if files is None else _ending(found, files, now, opened)
    except (OSError, InputNotFoundError) as error:
        if _is_gone(found.paths[0]):
            return _GONE
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise RefusedError(
            f"{one_line(found.key)} cannot be looked at: {why}", remedy="check who may read it"
        ) from error


def _is_gone(path: Path) -> bool:
    try:
        return stamp_of(path) is None
    except OSError:
        return False


def _ending(found: Found, files: tuple[FileStamp, ...], now: datetime, opened: OpenFiles) -> Ending:
    source = FileSource.of(found.paths[0])
    if (marker := _marker(source)) is not None:
        return Ending(True, marker.outcome, marker.why)
    if (process := opened.writer(files)) is not None:
        return Ending(False, None, f"open in process {process}")
    quiet, ahead = _quiet(files, now)
    if quiet < found.idle:
        lies = ", as its time lies ahead of the clock" if ahead else ""
        left = _span(found.idle - quiet)
        return Ending(False, None, f"written {_span(quiet)} ago{lies}; complete in {left} unless it goes on")
    running = found.outcome == "running"
    told = Told("crashed", f"{MANIFEST_NAME} says running") if running else _told(source)
    if told.outcome == "crashed" and found.kind == "claude-code" and quiet.total_seconds() < LONGEST_CALL:
        written = now.timestamp() - quiet.total_seconds()
        process = opened.harness(source.path.parent.name, written)
        if process is not None:
            return Ending(False, None, f"{told.why}, and Claude Code still runs there (process {process})")
    return Ending(True, told.outcome, f"quiet for {_span(quiet)}; {told.why}")


def _again(found: Found) -> tuple[FileStamp, ...] | None:
    """The files as they are now; None when a main one is gone. Only that of a harness may be a link."""
    named = frozenset(found.paths)
    links = named if found.kind in ("claude-code", "codex") else frozenset[Path]()
    seen = {stamp.path: stamp_of(stamp.path, follow=stamp.path in links) for stamp in found.files}
    if any(seen.get(path) is None for path in named):
        return None
    return tuple(stamp for stamp in seen.values() if stamp is not None)


def _quiet(files: Iterable[FileStamp], now: datetime) -> tuple[timedelta, bool]:
    """How long nothing was written, and whether a time lies ahead of the clock.

    Whoever sets such a time cannot set when the file was changed last by the clock of the system, so that
    counts then; where it lies ahead as well, the file counts as written now.
    """
    clock = int((now - datetime.fromtimestamp(0, UTC)) / timedelta(microseconds=1)) * 1000
    newest, ahead = 0, False
    for stamp in files:
        written = stamp.mtime_ns
        if written > clock:
            ahead = True
            written = min(_changed(stamp.path), clock)
        newest = max(newest, written)
    return timedelta(microseconds=(clock - newest) // 1000), ahead


def _changed(path: Path) -> int:
    return path.stat().st_ctime_ns


def _span(quiet: timedelta) -> str:
    seconds = int(quiet.total_seconds())
    for size, unit in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= 2 * size:
            return f"{seconds // size} {unit}s"
    return f"{seconds} second{'' if seconds == 1 else 's'}"


def _marker(source: FileSource) -> Told | None:
    """What the last lines say of the end, where a harness that is done wrote that."""
    for tail in tails(source, MARKER_WINDOW, LARGEST_MARKER):
        if tail.torn:
            return None
        for value in tail.backwards():
            found, marker = _final(value, source)
            if found:
                return marker
        if tail.lines and not any(isinstance(value, dict) for value in tail.values()):
            return None
    return None


def _final(value: Any, source: FileSource) -> tuple[bool, Told | None]:
    """Whether a line decides it, and the marker that it is."""
    if not isinstance(value, dict):
        return True, None
    kind = value.get("type")
    if kind == "result" and isinstance(value.get("subtype"), str):
        good = value["subtype"] == "success" and value.get("is_error") is not True
        word = "an error" if value["subtype"] == "success" and not good else one_line(value["subtype"])[:40]
        return True, Told("succeeded" if good else "failed", f"final marker: its result is {word}")
    event = (event_of(value) or {}).get("type")
    if event in TURN_ENDS or event == TURN_ABORTED:
        return True, _of_exec(source, aborted=event == TURN_ABORTED)
    spoken = kind in ("user", "assistant", "response_item", "compacted", None) or event == "task_started"
    return spoken, None


def _of_exec(source: FileSource, *, aborted: bool) -> Told | None:
    """The end of a turn is the end of the run where no person can ask for another one."""
    head = rollouts.head(source.path)
    exec_ = head.get("source") == "exec" or head.get("originator") == "codex_exec"
    if rollouts.is_side(head) or not exec_:
        return None
    if aborted:
        return Told("cancelled", f"final marker: {TURN_ABORTED}")
    told = next(
        (told for tail in tails(source) if (told := Verdict(CODEX).see_all(tail.values()).told())), None
    )
    outcome = told.outcome if told is not None else "succeeded"
    return Told(outcome, "final marker: task_complete")


def _told(source: FileSource) -> Told:
    """How a run ended that left no final marker."""
    try:
        dialect = dialect_of(source)
        if dialect in (CLAUDE_CODE, CODEX):
            return _of_lines(source, dialect)
        return _of_whole(source)
    except InputNotFoundError:
        raise
    except ArchiverError:
        return _DAMAGED


def _of_lines(source: FileSource, dialect: str) -> Told:
    side = places.is_agent(source.path.name)
    for tail in tails(source):
        if tail.torn:
            return Told("crashed", "its last line is torn")
        told = Verdict(dialect, side).see_all(tail.values()).told()
        if told is not None:
            return told
        if tail.whole:
            return _NOTHING_ASKED
    return Told("crashed", f"nothing in its last {LARGEST >> 20} MiB tells how it ended")


def _of_whole(source: FileSource) -> Told:
    """Of a document, or of lines that are messages: each of them is read."""
    dialect, part = recognise(source)
    if dialect == OPAQUE or part.media == "raw":
        return Told("crashed", "nothing in it tells how it ended")
    verdict = Verdict(dialect).see_all(part.items.values()).see_all(response_beside(part))
    return verdict.told() or _NOTHING_ASKED
