"""Which processes of Claude Code run, and in which folder: it keeps no file of its sessions open."""

from __future__ import annotations

import os
import re
import time
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

LONGEST_CALL: Final = 24 * 3600
"""Seconds without a word after which a call is believed to have died, whatever runs."""
_NAME: Final = "claude"
_LOOKED_AT: Final = 2
"""Words of a command line that can name a program: its interpreter, and itself."""


@dataclass(frozen=True, slots=True)
class Harness:
    """A process; `slug` is what its projects' folder calls its folder, `began` seconds since the epoch."""

    process: int
    slug: str
    began: float


def harness_of(process: Path) -> Harness | None:
    """The harness that a folder of `/proc` is of; None for any other program, or one of another user."""
    try:
        words = (process / "cmdline").read_bytes().split(b"\0")[:_LOOKED_AT]
        if not any(_NAME in PurePosixPath(os.fsdecode(word)).parts[-1:] for word in words):
            return None
        slug = re.sub(r"[^A-Za-z0-9]", "-", str((process / "cwd").readlink()))
        behind_name = (process / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
        ago = time.clock_gettime(time.CLOCK_BOOTTIME) - int(behind_name[19]) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, AttributeError):  # ended meanwhile; no Linux
        return None
    return Harness(int(process.name), slug, time.time() - ago)
