"""The folder in which a restored checkpoint is handed over; it appears whole or not at all."""

from __future__ import annotations

import errno
import os
import shlex
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from archiver import jsonio, members
from archiver.errors import AlreadyExistsError, InputNotFoundError, StoreFullError
from archiver.model import Checkpoint, Items, Transcript, TranscriptPart
from archiver.model.report import RestoreReport
from archiver.report_text import markdown
from archiver.scratch import Scratch, fsync_folder
from archiver.transcripts import get_dialect
from archiver.transcripts.native import write_native

TRANSCRIPT = "transcript"
ORIGINAL = "original"
FULL = "full"
REPORT = "report.json"
REPORT_TEXT = "REPORT.md"


def check_target(into: Path) -> None:
    """Refuse a target that is not a new name or an empty folder."""
    if into.is_symlink() or (into.exists() and not into.is_dir()):
        raise AlreadyExistsError(
            f"{into} exists and is not a folder", remedy="choose another folder with --into"
        )
    if into.is_dir() and any(into.iterdir()):
        raise AlreadyExistsError(
            f"{into} is not empty; nothing is written over", remedy="choose another folder with --into"
        )


def scratch_parent(into: Path) -> Path:
    """The folder beside the target, made if need be, so that the last step is one rename."""
    parent = into.absolute().parent
    try:
        parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputNotFoundError(f"{parent} cannot be made: {error.strerror}") from error
    return parent


def write(
    checkpoint: Checkpoint,
    original: Transcript,
    report: RestoreReport,
    unpacked: Path,
    into: Path,
    scratch: Scratch,
) -> RestoreReport:
    """Write everything into a private folder and rename it to `into`; the report names what to do next."""
    out = scratch.path / "out"
    try:
        out.mkdir(mode=0o700)
        _write_transcript(checkpoint.transcript, out / TRANSCRIPT)
        if report.repairs:
            _write_transcript(original, out / ORIGINAL)
        if checkpoint.full_transcript is not None:
            _write_transcript(checkpoint.full_transcript, out / FULL)
        for name in (members.EFFECTS, members.EVIDENCE, members.RECEIPT, "artifacts"):
            if (unpacked / name).exists():
                (unpacked / name).rename(out / name)
        state = checkpoint.document(exclude=members.ITEMS)
        _write(out / members.STATE, jsonio.pretty(state))
        report = report.model_copy(update={"folder": str(into), "next_steps": next_steps(checkpoint, into)})
        _write(out / REPORT, jsonio.pretty(report.as_document()))
        _write(out / REPORT_TEXT, markdown(report, checkpoint).encode())
        _rename(out, into)
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        raise StoreFullError(
            f"the checkpoint could not be written to {into}: {error.strerror}",
            remedy="free some disk space" if full else "choose another folder with --into",
        ) from error
    return report


def _rename(out: Path, into: Path) -> None:
    try:
        out.rename(into)  # onto an empty folder this is atomic too; onto anything else it fails
    except OSError as error:
        raise AlreadyExistsError(
            f"{into} came into being meanwhile; nothing is written over", remedy="choose another --into"
        ) from error
    fsync_folder(into.absolute().parent)


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
    """Where each part goes below the transcript's folder: its own name if that is safe, else a number."""
    taken: set[str] = set()
    paths = []
    for number, part in enumerate(transcript.parts, start=1):
        name = part.name if _safe(part.name) and part.name.lower() not in taken else f"part-{number:04d}"
        taken |= {name.lower(), *(str(parent).lower() for parent in PurePosixPath(name).parents)}
        paths.append(PurePosixPath(name))
    return tuple(paths)


def _safe(name: str) -> bool:
    """A relative path that stays below its folder, in printable characters."""
    pieces = name.split("/")
    return (
        0 < len(name) <= 400
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
    if part.media != "json":
        return Items.in_file(path, count=part.items.count, size=size, raw=part.media == "raw")

    def blocks() -> Iterator[bytes]:
        document = jsonio.loads(path.read_bytes())
        for key in part.items_at:
            document = document[key]
        for value in document:
            yield jsonio.dumps(value) + b"\n"

    return Items(blocks, count=part.items.count, size=size)


def next_steps(checkpoint: Checkpoint, into: Path) -> tuple[str, ...]:
    """How to go on from here, for the harness that wrote the transcript."""
    transcript = checkpoint.transcript
    if not transcript.parts:
        return ()
    first = into / TRANSCRIPT / native_paths(transcript)[0]
    if transcript.dialect == "claude-code":
        session = _session(transcript) or PurePosixPath(transcript.parts[0].name).stem
        slug = "".join(c if c.isascii() and c.isalnum() else "-" for c in checkpoint.workspace.path or "")
        target = f"~/.claude/projects/{slug or '<folder of the project>'}"
        project = shlex.quote(checkpoint.workspace.path or "<folder of the project>")
        return (
            f"mkdir -p {target} && cp -Rn {shlex.quote(str(into / TRANSCRIPT))}/. {target}/",
            f"cd {project} && claude --resume {shlex.quote(session)}",
            "cp -n leaves a session of that name that is there as it is: move it away first if it is older",
        )
    if transcript.dialect == "anthropic-messages":
        return (f"send the messages of {first} with the next request",)
    return (f"the transcript is in {first}",)


def _session(transcript: Transcript) -> str | None:
    """The newest session id that the main part states: the one its harness resumes."""
    facts = get_dialect(transcript.dialect).facts
    found = None
    for item in transcript.parts[0].items:
        found = facts(item).session or found
    return found
