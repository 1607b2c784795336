"""Zip archives, and all that are zip archives by another name: jar, wheel, docx, xlsx."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from typing import Final

from archiver.redact.inflate.content import FAULTS, STEP, Budget, Content, UnseenError, why

_ENTRY: Final = b"PK\x01\x02"
_ENCRYPTED: Final = 0x1


class Zip:
    """A zip archive, held in memory until its directory at the end is there."""

    def __init__(self, budget: Budget, depth: int) -> None:
        self._budget = budget
        self._depth = depth
        self._held = bytearray()
        self.failure: str | None = None

    def feed(self, chunk: bytes, /) -> Iterator[bytes]:
        if self.failure is None and len(self._held) + len(chunk) > self._budget.limits.held:
            self.failure = f"zip: larger than {self._budget.limits.held >> 20} MiB"
            self._held = bytearray()
        if self.failure is None:
            self._held += chunk
        return iter(())

    def close(self) -> Iterator[bytes]:
        if self.failure is not None:
            return
        try:
            # Counted before they are read: what stands for an entry in memory is ten times as large.
            self._budget.entry(self._held.count(_ENTRY))
            with zipfile.ZipFile(io.BytesIO(self._held)) as archive:
                self._held = bytearray()
                entries = archive.infolist()
                names = "\n".join(entry.filename for entry in entries).encode("utf-8", "surrogatepass")
                comments = b"\n".join(entry.comment for entry in entries)
                yield b"\n".join((names, archive.comment, comments))
                for entry in entries:
                    yield from self._entry(archive, entry)
        except FAULTS as error:
            self.failure = why("zip", error)

    def _entry(self, archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Iterator[bytes]:
        if entry.flag_bits & _ENCRYPTED:
            raise UnseenError("it is encrypted")
        content = Content(self._budget, self._depth)
        with archive.open(entry) as file:
            while piece := file.read(STEP):
                yield from content.piece(piece)
        yield from content.close()
