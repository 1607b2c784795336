"""Files of checkpoint documents: flat table rows (version 1) or checkpoints, as JSON or JSON lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from archiver import jsonio
from archiver.errors import InputNotFoundError, InvalidDocumentError, LimitExceededError
from archiver.migrate import migrate
from archiver.model import Checkpoint

MAX_FILE = 256 << 20
"""Bytes of a JSON file of rows; JSON lines have no limit, each line has `MAX_ROW`."""
MAX_ROW = 64 << 20

_HEAD = 1 << 16
_NOTHING = "mend the row and archive the file again; no row of it was saved"


def looks_like_rows(path: Path) -> bool:
    """Whether the file holds checkpoint documents: a row has a task and a goal, a checkpoint a version."""
    if not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            head = file.readline(MAX_ROW).lstrip(b"\xef\xbb\xbf \t\r\n")
            if not head.startswith((b"{", b"[")):
                return False
            first = _first_value(head, path)
    except (OSError, ValueError):
        return False
    return isinstance(first, dict) and (
        {"task_id", "goal", "messages"} <= first.keys() or {"schema_version", "task_id"} <= first.keys()
    )


def _first_value(line: bytes, path: Path) -> Any:
    """The first document of a file: its first line, or the (first element of the) whole file."""
    try:
        value = jsonio.exact(line)
    except ValueError:
        # A transcript may be huge: only a file that names a row's columns early is read whole.
        with path.open("rb") as file:
            head = file.read(_HEAD)
        if b'"task_id"' not in head or path.stat().st_size > MAX_FILE:
            return None
        value = jsonio.exact(path.read_bytes())
    return value[0] if isinstance(value, list) and value else value


def read_rows(path: Path) -> Iterator[Checkpoint]:
    """Each document of the file as a checkpoint of the current schema.

    Raises `InvalidDocumentError` naming file and row, `UnsupportedSchemaError` for a newer version,
    `LimitExceededError` for a row over `MAX_ROW` bytes.
    """
    for number, document in enumerate(documents(path), start=1):
        try:
            yield Checkpoint.model_validate(migrate(document)[0])
        except InvalidDocumentError as error:
            raise InvalidDocumentError(
                f"{path}: row {number}: {error}", remedy=error.remedy or _NOTHING
            ) from error
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(_shown, first["loc"]))
            raise InvalidDocumentError(
                f"{path}: row {number}: {place}: {first['msg']}", remedy=_NOTHING
            ) from error


def _shown(step: int | str) -> str:
    """A step of a path that may stand in a message; a value that slipped into a key's place may not."""
    text = str(step)
    return text if re.fullmatch(r"[A-Za-z_]{1,40}|[0-9]{1,9}", text) else "…"


def documents(path: Path) -> Iterator[Any]:
    """Each JSON document of the file as it stands there; raises as `read_rows` for what is none."""
    try:
        size = path.stat().st_size
        if size <= MAX_FILE:
            try:
                whole = jsonio.exact(path.read_bytes())
            except ValueError:
                pass  # more than one document: JSON lines
            else:
                yield from whole if isinstance(whole, list) else [whole]
                return
        yield from _lines(path)
    except OSError as error:
        raise InputNotFoundError(f"{path} cannot be read: {error.strerror}") from error


def _lines(path: Path) -> Iterator[Any]:
    with path.open("rb") as file:
        number = 0
        while line := file.readline(MAX_ROW + 1):
            number += 1
            if len(line) > MAX_ROW:
                raise LimitExceededError(f"{path}: line {number} is longer than {MAX_ROW} bytes")
            if not line.strip():
                continue
            try:
                yield jsonio.exact(line)
            except ValueError as error:
                raise InvalidDocumentError(f"{path}: line {number} is not JSON: {error}") from error
