"""Snapshots that wait to be sealed: few, and none that a newer one makes needless."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Final

from archiver.errors import ArchiverError
from archiver.loop.snapshot import Snapshot
from archiver.model import Checkpoint

MAX_WAITING: Final = 256 << 20
"""Bytes of all snapshots that wait; a single larger one may wait alone."""


@dataclass(slots=True, eq=False)
class Job:
    """One snapshot on its way, and what is known of it from earlier attempts."""

    snapshot: Snapshot
    error: ArchiverError | None = None
    """What kept the last attempt from sealing it."""
    _made: Checkpoint | None = field(default=None, repr=False)

    @property
    def plain(self) -> bool:
        return self.snapshot.plain

    def checkpoint(self) -> Checkpoint:
        """The checkpoint, made once; raises what making it does."""
        if self._made is None:
            self._made = self.snapshot.make()
        return self._made


class Queue:
    """Jobs in the order of coming, bounded by number and bytes; the caller holds a lock."""

    def __init__(self, most: int, most_bytes: int = MAX_WAITING) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._jobs: deque[Job] = deque()

    def __len__(self) -> int:
        return len(self._jobs)

    def put(self, job: Job) -> list[Job] | None:
        """Have it wait, and give the plain ones whose place it takes; None where there is no room.

        A plain one takes the place of a plain one; a milestone does for want of room.
        """
        plain = [one for one in self._jobs if one.plain]
        going = plain if job.plain or not self._fits(job.snapshot, []) else []
        if not self._fits(job.snapshot, going):
            return None
        for one in going:
            self._jobs.remove(one)
        self._jobs.append(job)
        return going

    def take(self) -> Job:
        """The oldest; `IndexError` where none waits."""
        return self._jobs.popleft()

    def put_back(self, job: Job) -> bool:
        """Have it wait before all others; False where a newer one waits already and may take its place."""
        if job.plain and self._jobs:
            return False
        self._jobs.appendleft(job)
        return True

    def clear(self) -> list[Job]:
        """Take all out."""
        jobs, self._jobs = list(self._jobs), deque()
        return jobs

    def _fits(self, snapshot: Snapshot, going: list[Job]) -> bool:
        left = [job for job in self._jobs if job not in going]
        size = sum(job.snapshot.size for job in left)
        return not left or (len(left) < self._most and size + snapshot.size <= self._most_bytes)
