"""What came of the calls of hooks, as JSON lines: whoever called did not wait for it."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from archiver.config.homes import state_home
from archiver.errors import ArchiverError
from archiver.safetext import one_line, shorten

MAX_SIZE: Final = 16 << 20
"""Bytes after which the file is put aside as `hooks.jsonl.1`, in the place of the one before."""
USUAL: Final = "run `archiver doctor`; the next event, or a sweep, tries it again"
_TAIL: Final = 256 << 10
_LONGEST: Final = 600


def place() -> Path:
    """The file, which need not be there."""
    return state_home() / "hooks.jsonl"


def failed(hook: str | None, path: str | None, error: BaseException) -> None:
    """Write down what went wrong; of a bug only where it is, because its message may hold anything."""
    if isinstance(error, ArchiverError):
        said, remedy = str(error), error.remedy or USUAL
    elif isinstance(error, OSError):
        said = f"the system says: {error.strerror or type(error).__name__} ({_where(error)})"
        remedy = "check room, owner and mode of the state home and of the session"
    else:
        said, remedy = f"this is a bug, {_where(error)}", "report it as an issue, without secrets"
    write(hook, path, "failed", error=type(error).__name__, message=said, remedy=remedy)


def write(hook: str | None, path: str | None, event: str, *, run: str | None = None, **more: Any) -> None:
    """Append one line: what the harness said, the file of the session, what came of it. Raises `OSError`."""
    more = {name: value for name, value in more.items() if value not in (None, "")}
    line = {"time": _now(), "event": event, "run": run or None, "source": "claude-code", "path": path}
    shown = {
        name: shorten(one_line(value), _LONGEST) if isinstance(value, str) else value
        for name, value in {**line, "hook": hook, **more}.items()
    }
    data = json.dumps(shown, ensure_ascii=True).encode("ascii") + b"\n"
    with _open(place()) as handle:
        size = os.fstat(handle).st_size
        torn = size > 0 and os.pread(handle, 1, size - 1) != b"\n"  # by a disk that was full
        os.write(handle, b"\n" + data if torn else data)


def tail() -> list[dict[str, Any]]:
    """The last lines, the newest last; what is no line of ours is passed over."""
    try:
        with place().open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _TAIL))
            lines = file.read(_TAIL).split(b"\n")
    except FileNotFoundError:
        return []
    read = [_line(line) for line in lines[1 if size > _TAIL else 0 :]]
    return [line for line in read if line is not None]


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _line(data: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and isinstance(value.get("time"), str) else None


@contextmanager
def _open(path: Path) -> Iterator[int]:
    """The file to append to, locked; a full one has been put aside."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    while True:
        handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            if not is_at(handle, path):
                continue  # another process has just put it aside
            if os.fstat(handle).st_size > MAX_SIZE:
                path.replace(path.with_name(f"{path.name}.1"))
                continue
            yield handle
            return
        finally:
            os.close(handle)


def is_at(handle: int, path: Path) -> bool:
    """Whether the open file is still what lies at the path."""
    try:
        return os.path.samestat(os.fstat(handle), path.stat(follow_symlinks=False))
    except FileNotFoundError:
        return False


def _where(error: BaseException) -> str:
    trace, at = error.__traceback__, "at an unknown place"
    while trace is not None:
        at = f"{Path(trace.tb_frame.f_code.co_filename).name}, line {trace.tb_lineno}"
        trace = trace.tb_next
    return at
