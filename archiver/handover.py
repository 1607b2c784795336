"""What a restore hands over: the files of the folder, and where each part of the transcript lies in it."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import accumulate, count
from pathlib import Path, PurePosixPath
from typing import Any, Protocol

from archiver import jsonio, members, target
from archiver.errors import ArchiverError, StoreUnreachableError
from archiver.model import Checkpoint, Items, Transcript, TranscriptPart
from archiver.model.report import RestoreReport
from archiver.report_text import markdown
from archiver.resuming import going_on
from archiver.scratch import Scratch
from archiver.shellwords import word
from archiver.target import REPORT, WORKSPACE
from archiver.transcripts import nested
from archiver.transcripts.native import write_native

TRANSCRIPT = "transcript"
ORIGINAL = "original"
FULL = "full"
REPORT_TEXT = "REPORT.md"
_DEPTH = 16
"""Components of a path below the transcript's folder."""

_FIRST = ("# not before somebody has decided on the effects of which nobody knows whether they happened",)


LayOut = Callable[[Path], tuple[str, ...]]
"""Makes the workspace that was saved in a new folder, where one was; what is to be said of it."""


class Commit(Protocol):
    """What has to be done just before the folder appears, and keeps it from appearing when it fails."""

    seq: int
    """The number of the claim that it makes."""

    def commit(self) -> None: ...


def write(
    checkpoint: Checkpoint,
    original: Transcript,
    report: RestoreReport,
    unpacked: Path,
    into: Path,
    scratch: Scratch,
    replaced: str | None = None,
    claim: Commit | None = None,
    lay_out: LayOut = lambda _: (),
) -> RestoreReport:
    """Write everything into a private folder and rename it to `into`; the report names what to do next.

    `lay_out` makes the workspace beside the rest. `claim` is committed when all is written and before
    anything appears. A folder in which an earlier restore of the run `replaced` was handed over makes room.
    """
    out = scratch.path / "out"
    try:
        out.mkdir(mode=0o700)
        _write_parts(checkpoint, original, report, unpacked, out)
        report = report.model_copy(update={"warnings": (*report.warnings, *lay_out(out / WORKSPACE))})
        report = _finished(report, checkpoint, into, claim, laid_out=(out / WORKSPACE).is_dir())
        _write(out / REPORT, jsonio.pretty(report.as_document(), sort=False))
        _write(out / REPORT_TEXT, markdown(report, checkpoint).encode())
    except OSError as error:
        raise target.failed(into, error) from error
    if claim is None:
        target.appear(out, into, scratch, replaced)
    else:
        _claimed(claim, lambda: target.appear(out, into, scratch, replaced))
    return report


def _claimed(claim: Commit, appear: Callable[[], None]) -> None:
    """Commit the claim, then have the folder appear; an error in between says what became of the run."""
    try:
        claim.commit()
    except StoreUnreachableError as error:  # the answer may be all that was lost
        error.args = (f"{error}; record {claim.seq} may have been written, and the run be taken over",)
        raise
    try:
        appear()
    except ArchiverError as error:
        error.args = (f"{error}; the run was taken over all the same, with record {claim.seq}",)
        error.details["claimed"] = claim.seq
        raise
    except BaseException:  # what is asked to end hands over what is claimed; once more, if it has begun
        with suppress(ArchiverError):
            appear()
        raise


def _write_parts(
    checkpoint: Checkpoint, original: Transcript, report: RestoreReport, unpacked: Path, out: Path
) -> None:
    _write_transcript(checkpoint.transcript, out / TRANSCRIPT)
    if report.repairs:
        _write_transcript(original, out / ORIGINAL / TRANSCRIPT)
    if report.migrations:
        _make(out / ORIGINAL)
        (unpacked / members.STATE).rename(out / ORIGINAL / members.STATE)
    if checkpoint.full_transcript is not None:
        _write_transcript(checkpoint.full_transcript, out / FULL)
    for name in (members.EVIDENCE, members.RECEIPT, "artifacts"):
        if (unpacked / name).exists():
            (unpacked / name).rename(out / name)
    _write_effects(members.effect_lines(checkpoint), unpacked / members.EFFECTS, out)
    _write(out / members.STATE, jsonio.pretty(checkpoint.document(exclude=members.ITEMS)))


def _write_effects(effects: bytes, saved: Path, out: Path) -> None:
    """What is known of effects now, and beside it what was saved, if that differs; old bundles hold none."""
    if saved.exists() and saved.read_bytes() != effects:
        _make(out / ORIGINAL)
        saved.rename(out / ORIGINAL / members.EFFECTS)
    _write(out / members.EFFECTS, effects)


def _finished(
    report: RestoreReport, checkpoint: Checkpoint, into: Path, claim: Commit | None, *, laid_out: bool
) -> RestoreReport:
    """The report with what to do next; `laid_out`: the workspace lies there too."""
    paths = native_paths(checkpoint.transcript)
    folder = into.absolute() / TRANSCRIPT
    found = going_on(checkpoint, folder, paths)
    place = word(str(into.absolute() / WORKSPACE))
    steps = (f"# its workspace, as it was saved: {place}", *found.steps) if laid_out else found.steps
    changes: dict[str, Any] = {
        "folder": str(into),
        "next_steps": (*_FIRST, *steps) if report.undecided else steps,
        "warnings": (*report.warnings, *found.cautions),
    }
    if claim is not None:
        changes |= {"claimed": claim.seq, "next_seq": claim.seq + 1, "may_go_on": True}
    return report.model_copy(update=changes)


def _write_transcript(transcript: Transcript, folder: Path) -> None:
    for part, path in zip(transcript.parts, native_paths(transcript), strict=True):
        place = folder / path
        _make(place.parent)
        with target.new_file(place) as file:
            write_native(part, file.write)


def _make(folder: Path) -> None:
    """Make a folder and those above it, each private: `parents` of `mkdir` has them made for everybody."""
    if not folder.is_dir():
        _make(folder.parent)
        folder.mkdir(mode=0o700)


def _write(path: Path, data: bytes) -> None:
    with target.new_file(path) as file:
        file.write(data)


def native_paths(transcript: Transcript) -> tuple[PurePosixPath, ...]:
    """Where each part goes below the transcript's folder: its own name if it is safe and free, or a number.

    No path is another or a folder of another, also where a file system takes letters of either case, or
    either way of writing an accent, for the same.
    """
    files: set[str] = set()
    folders: set[str] = set()
    paths = []
    for number, part in enumerate(transcript.parts, start=1):
        for name in _names(part.name, number):
            *above, key = _keys(name)
            if key not in files and key not in folders and files.isdisjoint(above):
                break
        files.add(key)
        folders.update(above)
        paths.append(PurePosixPath(name))
    return tuple(paths)


def _names(name: str, number: int) -> Iterator[str]:
    """The part's own name if it is safe, then numbered ones without end."""
    if _safe(name):
        yield name
    yield f"part-{number:04d}"
    for more in count(2):
        yield f"part-{number:04d}-{more}"


def _keys(name: str) -> list[str]:
    """What a file system may know the folders of a path and the path by, the path last."""
    same = unicodedata.normalize("NFD", unicodedata.normalize("NFD", name).casefold())
    return list(accumulate(same.split("/"), "{}/{}".format))


def _safe(name: str) -> bool:
    """A relative path that stays below its folder and not deep, in printable characters."""
    pieces = name.split("/")
    return (
        0 < len(name) <= 400
        and len(pieces) <= _DEPTH
        and name.isprintable()
        and "\\" not in name
        and all(piece not in ("", ".", "..") and len(piece.encode()) <= 200 for piece in pieces)
    )


def transcript_in(transcript: Transcript, folder: Path) -> Transcript:
    """The transcript with its items read from the native files in the folder that was handed over."""
    parts = []
    for part, path in zip(transcript.parts, native_paths(transcript), strict=True):
        parts.append(part.model_copy(update={"items": _items(part, folder / TRANSCRIPT / path)}))
    return transcript.model_copy(update={"parts": tuple(parts)})


def _items(part: TranscriptPart, path: Path) -> Items:
    size = path.stat().st_size
    if part.media != "json" and not part.nested_at:
        return Items.in_file(path, count=part.items.count, size=size, raw=part.media == "raw")

    def pairs() -> Iterator[tuple[bytes, Any]]:
        if part.media != "json":
            return Items.in_file(path, count=None, size=size).pairs()
        document = jsonio.loads(path.read_bytes())
        for key in part.items_at:
            document = document[key]
        return ((jsonio.dumps(value), value) for value in document)

    def blocks() -> Iterator[bytes]:
        items = nested.split(pairs(), part.nested_at) if part.nested_at else pairs()
        return (line + b"\n" for line, _ in items)

    return Items(blocks, count=part.items.count, size=size)
