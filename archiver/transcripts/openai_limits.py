"""How many pictures, and how much of them, OpenAI takes in one request (guide "Images and vision")."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Final

from archiver.transcripts.dialect import Path, Problem

MOST_PICTURES: Final = 500
"""Pictures of one request; some models take more, and no documented limit of OpenAI is lower."""
MOST_BYTES: Final = 50 << 20
"""Bytes of one request. Only payloads are counted here: of text, the model's window allows far less."""


class Pictures:
    """Counts what one conversation shows the model; what is over a limit goes, the oldest first."""

    def __init__(self) -> None:
        self._seen: deque[tuple[int, Path, int]] = deque()
        self._bytes = 0
        self._over: list[Problem] = []

    def see(self, item: int, path: Path, size: int) -> None:
        """A picture, file or sound at `path` of the transcript's item; `size` is that of its base64 text."""
        self._seen.append((item, path, size))
        self._bytes += size
        while self._seen and (self._bytes > MOST_BYTES or len(self._seen) > MOST_PICTURES):
            oldest, place, gone = self._seen.popleft()
            self._bytes -= gone
            self._over.append(Problem("too_large", oldest, _detail(gone), path=place))

    def over(self) -> Iterator[Problem]:
        """What has to go, and start anew: another conversation begins, or the model sees these no more."""
        found = self._over
        self.forget()
        return iter(found)

    def forget(self) -> None:
        """What was seen until now is not sent any more."""
        self._seen.clear()
        self._bytes = 0
        self._over = []


def _detail(size: int) -> str:
    if size > MOST_BYTES:
        return f"one payload of {size:,} bytes, more than a request may have"
    return f"more than {MOST_PICTURES} pictures or {MOST_BYTES >> 20} MB of them in one request"
