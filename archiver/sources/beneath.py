"""Whether files lie in a folder by their own names, and not through a link that somebody put there."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from archiver.sources.found import FileStamp

_FOLDER: Final = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def led_astray(root: Path, files: Iterable[FileStamp]) -> Path | None:
    """The first of these files that is not what lies at its path below `root`, with no link on the way.

    What was opened is compared with what each step leads to, so a link that is there for a moment is seen.
    `root` itself may be a link. Raises `OSError` where a folder on the way may not be entered.
    """
    return next((one.path for one in files if _at(root, one.path) != (one.device, one.inode)), None)


def _at(root: Path, path: Path) -> tuple[int, int] | None:
    """Device and inode of the regular file; None where a link, or nothing, lies on the way."""
    *folders, name = path.relative_to(root).parts
    at = os.open(root, _FOLDER & ~os.O_NOFOLLOW)
    try:
        for step in folders:
            below = os.open(step, _FOLDER, dir_fd=at)
            os.close(at)
            at = below
        seen = os.stat(name, dir_fd=at, follow_symlinks=False)
    except (FileNotFoundError, NotADirectoryError):  # a link is no folder
        return None
    finally:
        os.close(at)
    return (seen.st_dev, seen.st_ino) if stat.S_ISREG(seen.st_mode) else None
