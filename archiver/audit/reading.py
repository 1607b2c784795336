"""Read the local file again: what it says, and whether each line follows the one before it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final, Literal

from pydantic import ValidationError

from archiver import jsonio
from archiver.audit import journal
from archiver.errors import InputNotFoundError
from archiver.model.audit import AUDIT_FORMAT, AuditLine

if TYPE_CHECKING:
    from hashlib import _Hash

MAX_LINE: Final = 1 << 20
"""Bytes of a line; none that is written has as many."""


@dataclass(frozen=True, slots=True)
class Read:
    """One line of a file; what is wrong with it, or is only to be mentioned, comes with it."""

    file: Path
    number: int
    """From 1."""
    line: AuditLine | None = None
    state: Literal["ok", "note", "broken"] = "ok"
    said: str = ""


def read(path: Path) -> Iterator[Read]:
    """The lines of a file in their order; nothing for a file that is not there. `InputNotFoundError`."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    except OSError as error:
        raise _unreadable(path, error.strerror or str(error)) from error
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise _unreadable(path, "it is no ordinary file")
    with os.fdopen(handle, "rb") as file:
        try:
            yield from _linked(path, file)
        except OSError as error:
            raise _unreadable(path, error.strerror or str(error)) from error


def _linked(path: Path, file: BinaryIO) -> Iterator[Read]:
    before: str | None = None
    waiting: Read | None = None
    """A line that is no line of ours: whether it was only cut off is known by the one after it."""
    for number, (content, sha256, whole) in enumerate(_lines(file), start=1):
        line, said = _parsed(content)
        if waiting is not None:
            covered = line is not None and line.previous == before
            yield _cut_off(waiting) if covered else waiting
            waiting = None
        if line is None:
            waiting = Read(path, number, None, "broken", said)
            if not whole:
                waiting = _cut_off(waiting)
        else:
            state, said = _follows(line, before, path, number)
            yield Read(path, number, line, state, said)
        before = sha256
    if waiting is not None:
        yield waiting


def _cut_off(read: Read) -> Read:
    return Read(read.file, read.number, None, "note", "cut off: whoever wrote it was killed, or had no room")


def _follows(
    line: AuditLine, before: str | None, path: Path, number: int
) -> tuple[Literal["ok", "note", "broken"], str]:
    if number > 1:
        if line.previous == before:
            return "ok", ""
        return "broken", (
            f"it does not follow line {number - 1}: either that one was changed, or lines between the two "
            "were added or taken out"
        )
    if line.previous is None:
        return "ok", ""
    older = journal.before(path)
    if older == line.previous:
        return "ok", f"goes on from {journal.older(path).name}"
    return "note", (
        f"goes on from a line that is not the last of {journal.older(path).name}: what is older was moved, "
        "or taken out"
    )


def _lines(file: BinaryIO) -> Iterator[tuple[bytes, str, bool]]:
    """Each line without its end, or the beginning of one that is too long, its digest, and if it has an end.

    An empty line at the end of the file is none.
    """
    while piece := file.readline(MAX_LINE):
        content, rest = piece, piece
        sha256: _Hash = journal.new_digest()
        while not rest.endswith(b"\n"):
            sha256.update(rest)
            rest = file.readline(MAX_LINE)
            if not rest:
                break
        sha256.update(rest.removesuffix(b"\n"))
        if len(content) == MAX_LINE and not content.endswith(b"\n"):
            content = b""
        yield content.removesuffix(b"\n"), sha256.hexdigest(), rest.endswith(b"\n")


def _parsed(content: bytes) -> tuple[AuditLine | None, str]:
    if not content:
        return None, "an empty line, or one longer than any that is written"
    try:
        document = jsonio.loads(content)
    except ValueError:
        return None, "it is not JSON"
    version = document.get("format") if isinstance(document, dict) else None
    if isinstance(version, int) and version > AUDIT_FORMAT:
        return None, f"it has format {version}; this release reads {AUDIT_FORMAT}"
    try:
        return AuditLine.model_validate(document), ""
    except (ValidationError, ValueError):
        return None, "it does not have the shape of an audit line"


def _unreadable(path: Path, why: str) -> InputNotFoundError:
    return InputNotFoundError(
        f"the audit file {path} cannot be read: {why}",
        remedy="check its owner and mode, or name another file",
    )
