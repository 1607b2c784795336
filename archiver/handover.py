"""The folder in which a restored checkpoint is handed over; it appears whole or not at all."""

from __future__ import annotations

import errno
import os
import re
import shutil
import stat
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import accumulate, count
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, Protocol

from archiver import jsonio, members
from archiver.errors import AlreadyExistsError, ArchiverError, InputNotFoundError, StoreFullError
from archiver.model import Checkpoint, Items, Transcript, TranscriptPart
from archiver.model.report import RestoreReport
from archiver.report_text import markdown
from archiver.resuming import going_on
from archiver.scratch import Scratch, fsync_folder
from archiver.transcripts import nested
from archiver.transcripts.native import write_native

TRANSCRIPT = "transcript"
ORIGINAL = "original"
FULL = "full"
REPORT = "report.json"
REPORT_TEXT = "REPORT.md"
_MAX_REPORT = 64 << 20
"""Bytes of a report that are read."""
_WRITTEN = re.compile(
    r"transcript|original|full|artifacts|(effects|evidence)\.jsonl|(receipt|report|checkpoint(\.v\d+)?)\.json"
    r"|REPORT\.md"
)
"""What a restore leaves in its folder."""
_DEPTH = 16
"""Components of a path below the transcript's folder."""
_MOUNTED = (errno.EBUSY, errno.EXDEV, errno.EACCES, errno.EPERM, errno.EROFS)
"""What renaming onto an empty folder says of a mount point, and of one in a folder that cannot be changed."""


class Commit(Protocol):
    """What has to be done just before the folder appears, and keeps it from appearing when it fails."""

    seq: int
    """The number of the claim that it makes."""

    def commit(self) -> None: ...


def check_target(into: Path, replaced: str | None = None) -> None:
    """Refuse a target that is not a new name or an empty folder.

    One in which an earlier restore of the run `replaced` was handed over may be replaced.
    """
    if into.is_symlink() or (into.exists() and not into.is_dir()):
        raise AlreadyExistsError(
            f"{into} exists and is not a folder", remedy="choose another folder with --into"
        )
    if not into.is_dir() or not _entries(into):
        return
    if replaced is None:
        raise AlreadyExistsError(
            f"{into} is not empty; nothing is written over",
            remedy="choose another folder with --into; --force replaces what an earlier restore of the same "
            "run left",
        )
    _demand_restored(into, replaced)


def _entries(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError as error:
        raise InputNotFoundError(f"{folder} cannot be read: {error.strerror}") from error


def _demand_restored(folder: Path, run: str) -> None:
    """Refuse to replace what no restore of the run left: work that somebody put beside it would be lost."""
    strange = [path.name for path in _entries(folder) if not _WRITTEN.fullmatch(path.name)]
    if not strange and _run_restored_in(folder) == run:
        return
    why = f"it holds {strange[0]!r}" if strange else f"its {REPORT} is not that of a restore of this run"
    raise AlreadyExistsError(
        f"{folder} is not what an earlier restore of this run left, so it is not replaced: {why}",
        remedy="choose another folder with --into",
    )


def _run_restored_in(folder: Path) -> str | None:
    """The run in the report that lies there; a link, a pipe or anything else is none."""
    try:
        handle = os.open(folder / REPORT, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return None
        try:
            document = jsonio.loads(file.read(_MAX_REPORT + 1)[:_MAX_REPORT])
        except (OSError, ValueError):
            return None
    if not isinstance(document, dict) or "next_steps" not in document:
        return None
    run = document.get("run")
    return run if isinstance(run, str) else None


@contextmanager
def target(into: Path) -> Iterator[Scratch]:
    """A scratch folder beside the target, so that the last step is one rename.

    Parents that are missing are made, and removed again when the work fails. Beside an existing folder whose
    parent cannot be written, the scratch folder lies with other temporary files.
    """
    parent = into.absolute().parent
    made: list[Path] = []
    try:
        _make(parent, made)
        elsewhere = into.is_dir() and not os.access(parent, os.W_OK | os.X_OK)
        with Scratch(None if elsewhere else parent) as scratch:
            yield scratch
    except BaseException:
        for folder in reversed(made):
            with suppress(OSError):  # somebody else has put something there
                folder.rmdir()
        raise


def _make(folder: Path, made: list[Path]) -> None:
    """Make the folder and the parents that are missing; `made` is told of each."""
    try:
        for place in reversed((folder, *folder.parents)):
            if not place.is_dir():
                place.mkdir()
                made.append(place)
    except OSError as error:
        raise InputNotFoundError(f"{folder} cannot be made: {error.strerror}") from error


def write(
    checkpoint: Checkpoint,
    original: Transcript,
    report: RestoreReport,
    unpacked: Path,
    into: Path,
    scratch: Scratch,
    replaced: str | None = None,
    claim: Commit | None = None,
) -> RestoreReport:
    """Write everything into a private folder and rename it to `into`; the report names what to do next.

    `claim` is committed when all is written and before anything appears. A folder in which an earlier restore
    of the run `replaced` was handed over makes room.
    """
    out = scratch.path / "out"
    try:
        out.mkdir(mode=0o700)
        _write_parts(checkpoint, original, report, unpacked, out)
        report = _finished(report, checkpoint, into, claim)
        _write(out / REPORT, jsonio.pretty(report.as_document()))
        _write(out / REPORT_TEXT, markdown(report, checkpoint).encode())
        if claim is not None:
            claim.commit()
        _appear(out, into, scratch, replaced)
    except OSError as error:
        raise _failed(into, error) from error
    return report


def _write_parts(
    checkpoint: Checkpoint, original: Transcript, report: RestoreReport, unpacked: Path, out: Path
) -> None:
    _write_transcript(checkpoint.transcript, out / TRANSCRIPT)
    if report.repairs:
        _write_transcript(original, out / ORIGINAL / TRANSCRIPT)
    if report.migrations:
        (unpacked / members.STATE).rename(out / f"checkpoint.v{report.record.schema_version}.json")
    if checkpoint.full_transcript is not None:
        _write_transcript(checkpoint.full_transcript, out / FULL)
    for name in (members.EVIDENCE, members.RECEIPT, "artifacts"):
        if (unpacked / name).exists():
            (unpacked / name).rename(out / name)
    effects = members.effect_lines(checkpoint)
    if effects != (unpacked / members.EFFECTS).read_bytes():
        (out / ORIGINAL).mkdir(mode=0o700, exist_ok=True)
        (unpacked / members.EFFECTS).rename(out / ORIGINAL / members.EFFECTS)
    _write(out / members.EFFECTS, effects)
    _write(out / members.STATE, jsonio.pretty(checkpoint.document(exclude=members.ITEMS)))


def _finished(
    report: RestoreReport, checkpoint: Checkpoint, into: Path, claim: Commit | None
) -> RestoreReport:
    """The report with what to do next."""
    paths = native_paths(checkpoint.transcript)
    folder = into.absolute() / TRANSCRIPT
    found = going_on(checkpoint, folder, paths)
    changes: dict[str, Any] = {
        "folder": str(into),
        "next_steps": found.steps,
        "warnings": (*report.warnings, *found.cautions),
    }
    if claim is not None:
        changes |= {"claimed": claim.seq, "next_seq": claim.seq + 1}
    return report.model_copy(update=changes)


def _appear(out: Path, into: Path, scratch: Scratch, replaced: str | None) -> None:
    """Rename to `into`. What an earlier restore left there is first moved away, looked at where nobody else
    can change it, and put back if it is anything else or the rename fails.
    """
    if replaced is None or not into.is_dir() or into.is_symlink() or not _entries(into):
        _rename(out, into)
        return
    old = scratch.path / "replaced"
    into.rename(old)
    try:
        _demand_restored(old, replaced)
        _rename(out, into)
    except BaseException:
        with suppress(OSError):  # somebody has put something there: what was moved stays named in the error
            old.rename(into)
        raise


def _failed(into: Path, error: OSError) -> ArchiverError:
    said = f"the checkpoint could not be written to {into}: {error.strerror}"
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO):
        place = into if into.is_dir() else into.absolute().parent
        return StoreFullError(
            said, remedy=f"free some space on the disk of {place}, or choose another --into"
        )
    return InputNotFoundError(said, remedy="choose another folder with --into")


def _rename(out: Path, into: Path) -> None:
    try:
        out.rename(into)  # onto an empty folder this is atomic too; onto anything else it fails
    except OSError as error:
        if error.errno in _MOUNTED and into.is_dir():
            _fill(out, into)
        elif error.errno in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR):
            raise _in_the_way(into) from error
        else:
            raise
    fsync_folder(into.absolute().parent)


def _in_the_way(into: Path) -> AlreadyExistsError:
    return AlreadyExistsError(
        f"{into} came into being meanwhile; nothing is written over", remedy="choose another --into"
    )


def _check_empty(into: Path, but: Path | None = None) -> None:
    if any(path != but for path in into.iterdir()):
        raise _in_the_way(into)


def _fill(out: Path, into: Path) -> None:
    """Put what is finished into the empty folder `into`, the report last: it says that all is there.

    For a folder that no rename replaces. All is copied to its disk before the first of it appears.
    """
    _check_empty(into)
    moved: list[Path] = []
    try:
        with Scratch(into) as near:
            copy = near.path / "out"
            _copy(out, copy)
            _check_empty(into, but=near.path)
            for entry in sorted(copy.iterdir(), key=lambda path: (path.name == REPORT, path.name)):
                if entry.name == REPORT:
                    fsync_folder(into)
                moved.append(entry.rename(into / entry.name))
    except BaseException:
        for path in reversed(moved):
            _remove(path)
        raise
    fsync_folder(into)


def _copy(source: Path, target: Path) -> None:
    """Copy a file or folder to a new private one, and through to the disk."""
    if source.is_dir():
        target.mkdir(mode=0o700)
        for entry in source.iterdir():
            _copy(entry, target / entry.name)
        fsync_folder(target)
        return
    with source.open("rb") as old, _new(target) as new:
        shutil.copyfileobj(old, new, 1 << 20)
        new.flush()
        os.fsync(new.fileno())


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _write_transcript(transcript: Transcript, folder: Path) -> None:
    for part, path in zip(transcript.parts, native_paths(transcript), strict=True):
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with _new(target) as file:
            write_native(part, file.write)


def _new(path: Path) -> BinaryIO:
    """A new private file."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "wb")


def _write(path: Path, data: bytes) -> None:
    with _new(path) as file:
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
