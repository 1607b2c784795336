"""Compiled databases and other small files kept between processes, in the user's own cache folder.

A database is machine code's next of kin: one that somebody else wrote must never be loaded. So the folder is
0700 and the file 0600, both owned by this user, the content carries its own digest, and any doubt means a
fresh compilation. A cache that cannot be written is no error.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

_LIMIT = 256 << 20
_MOST = 24
"""Files of a kind that are kept; one set of rules needs about eight databases."""
_DATABASE: Final = "vsdb"


def load(key: str, kind: str = _DATABASE) -> bytes | None:
    """What is kept under `key`, a database unless `kind` says else; None when none can be trusted."""
    name = f"{key}.{kind}"
    content = load_file(name, _LIMIT)
    if content is None:
        return None
    digest, body = content[:32], content[32:]
    if not body or hashlib.sha256(body).digest() != digest:
        return None
    with contextlib.suppress(OSError, RuntimeError):
        os.utime(_folder() / name, follow_symlinks=False)
    return body


def store(key: str, body: bytes, kind: str = _DATABASE) -> None:
    """Keep a database or another body under `key` if the folder is private and can be written.

    Those of its kind that were not used for longest make room for it.
    """
    store_file(f"{key}.{kind}", hashlib.sha256(body).digest() + body)
    with contextlib.suppress(OSError, RuntimeError):
        held = sorted(_folder().glob(f"*.{kind}"), key=lambda path: path.lstat().st_mtime_ns, reverse=True)
        for path in held[_MOST:]:
            path.unlink(missing_ok=True)


def load_file(name: str, limit: int) -> bytes | None:
    """The content of a file of the cache, or None when there is none that only this user can have written."""
    try:
        folder = _folder()
        if not _private(folder.lstat(), stat.S_ISDIR):
            return None
        handle = os.open(folder / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(handle, "rb") as file:  # noqa: PTH123 - an already opened descriptor
            return file.read(limit) if _private(os.fstat(file.fileno()), stat.S_ISREG) else None
    except (OSError, RuntimeError):
        return None


def store_file(name: str, content: bytes) -> None:
    """Put a file into the cache, whole or not at all, if the folder is private and can be written."""
    with contextlib.suppress(OSError, RuntimeError):
        folder = _folder()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _private(folder.lstat(), stat.S_ISDIR):
            return
        handle, made = tempfile.mkstemp(prefix=".new-", dir=folder)
        try:
            with open(handle, "wb") as file:  # noqa: PTH123 - an already opened descriptor
                file.write(content)
            Path(made).replace(folder / name)
        except OSError:
            Path(made).unlink(missing_ok=True)


def place() -> str:
    """The cache folder; empty where there is none."""
    try:
        return str(_folder())
    except RuntimeError:
        return ""


def _folder() -> Path:
    home = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(home) if Path(home).is_absolute() else Path.home() / ".cache"
    return base / "checkpoint-archiver" / "redact"


def _private(info: os.stat_result, kind: Callable[[int], bool]) -> bool:
    return (kind(info.st_mode)) and info.st_uid == os.getuid() and not info.st_mode & 0o077
