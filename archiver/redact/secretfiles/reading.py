"""The text of a file that may be anything: bounded, never a pipe or a device, and every failure is typed."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

MAX_FILE: Final = 4 << 20
"""Bytes a file of credentials may have."""
_MARKS: Final = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))


class UnusableFileError(Exception):
    """Why a file gives no values; it never shows any of its content."""


class AbsentFileError(UnusableFileError):
    """Nothing lies there."""


def read(path: Path) -> str:
    """The text of a regular file; `UnusableFileError` says why there is none."""
    try:
        # Without O_NONBLOCK, a pipe that nobody writes to would hold the save up for ever.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise AbsentFileError("there is no such file") from error
    except (OSError, ValueError) as error:
        raise UnusableFileError(f"it cannot be read: {_reason(error)}") from error
    try:
        with os.fdopen(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise UnusableFileError("it is no regular file")
            data = file.read(MAX_FILE + 1)
    except OSError as error:
        raise UnusableFileError(f"it cannot be read: {_reason(error)}") from error
    return decoded(data)


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or type(error).__name__


def decoded(data: bytes) -> str:
    """The text of a whole file; `UnusableFileError` where it is none, or too long."""
    if len(data) > MAX_FILE:
        raise UnusableFileError(f"it has more than {MAX_FILE >> 20} MiB")
    encoding = next((name for mark, name in _MARKS if data.startswith(mark)), "utf-8")
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        raise UnusableFileError("it is not a text file in UTF-8") from None
    if "\0" in text:
        raise UnusableFileError("it is not a text file")
    return text.replace("\r\n", "\n")
