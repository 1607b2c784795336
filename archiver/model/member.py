"""One file of a bundle."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Member:
    """A file of a bundle: its path in the archive and its bytes, in memory or in a private file."""

    path: str
    source: bytes | Path
    size: int
    sha256: str
    mode: int = 0o644
