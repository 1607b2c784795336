"""A private folder for what must not fit in memory, removed when the work ends."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from archiver.errors import InputNotFoundError


@dataclass(frozen=True, slots=True)
class Spooled:
    """A finished private file: its place, size in bytes and SHA-256 (hex)."""

    path: Path
    size: int
    sha256: str


class Spool:
    """Writes one private file and hashes it on the way."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size = 0
        self._hash = hashlib.sha256()
        self._file = path.open("xb", buffering=1 << 18)

    def write(self, data: bytes | memoryview) -> None:
        self._file.write(data)
        self._hash.update(data)
        self.size += len(data)

    def close(self) -> Spooled:
        self._file.close()
        return Spooled(self.path, self.size, self._hash.hexdigest())


class Scratch:
    """A folder of mode 0700 that lives as long as one save or one restore."""

    def __init__(self, parent: Path | None = None) -> None:
        try:
            self.path = Path(tempfile.mkdtemp(prefix="archiver-", dir=parent))
        except OSError as error:
            raise InputNotFoundError(
                f"no private scratch folder could be made: {error.strerror}",
                remedy="free some disk space or set TMPDIR to a folder that can be written",
            ) from error
        self._count = 0

    def new_path(self, label: str = "file") -> Path:
        """A fresh path inside the folder; nothing is there yet."""
        self._count += 1
        return self.path / f"{self._count:05d}-{label}"

    def spool(self, label: str = "spool") -> Spool:
        return Spool(self.new_path(label))

    def __enter__(self) -> Scratch:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        shutil.rmtree(self.path, ignore_errors=True)


def fsync_folder(path: Path) -> None:
    """Make a rename or a new name in `path` survive a power cut."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
