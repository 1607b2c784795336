"""How often a store is asked, for how many bytes, and how long that takes: for tests and measurements."""

from __future__ import annotations

import io
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from archiver.model.record import RetentionClass
from archiver.store.base import ObjectInfo, ObjectStore, Remote, Versioned
from archiver.store.decorated import BUFFER, Decorated, DecoratedRemote, DecoratedVersioned, Reader, Result


@dataclass(slots=True)
class Count:
    """What the calls of one verb came to."""

    calls: int = 0
    failed: int = 0
    bytes: int = 0
    """Of bodies, in either direction."""
    seconds: float = 0.0
    """Spent in the store; of calls at the same time each counts."""


class Counted(Decorated):
    """A store that counts, by verb, in `counts`; threads may share it."""

    def __init__(self, inner: ObjectStore) -> None:
        super().__init__(inner)
        self.counts: dict[str, Count] = {}
        self._lock = threading.Lock()

    @property
    def calls(self) -> int:
        """All calls together."""
        return sum(count.calls for count in self.counts.values())

    def create(self, name: str, body: Iterable[bytes], *, retention: RetentionClass) -> ObjectInfo:
        return self._sized("create", lambda: self._inner.create(name, body, retention=retention))

    def open(self, name: str, *, offset: int = 0) -> AbstractContextManager[BinaryIO]:
        opened = super().open(name, offset=offset)
        return io.BufferedReader(_CountingReader(opened, self), BUFFER)

    def read(self, name: str, *, limit: int) -> bytes:
        data = super().read(name, limit=limit)
        self._add("read", size=len(data))
        return data

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        found = super().list(prefix)
        while True:
            with self._timed("list"):
                info = next(found, None)
            if info is None:
                return
            yield info

    def replace(self, name: str, body: Iterable[bytes], *, was: ObjectInfo) -> ObjectInfo:
        return self._sized("replace", lambda: self._inner.replace(name, body, was=was))

    def _sized(self, verb: str, work: Callable[[], ObjectInfo]) -> ObjectInfo:
        info = self._call(verb, work)
        self._add(verb, size=info.size)
        return info

    def _call(self, verb: str, work: Callable[[], Result]) -> Result:
        self._add(verb, calls=1)
        with self._timed(verb):
            return work()

    @contextmanager
    def _timed(self, verb: str) -> Iterator[None]:
        started, failed = time.perf_counter(), 1
        try:
            yield
            failed = 0
        finally:
            self._add(verb, failed=failed, seconds=time.perf_counter() - started)

    def _add(
        self, verb: str, *, calls: int = 0, failed: int = 0, size: int = 0, seconds: float = 0.0
    ) -> None:
        with self._lock:
            count = self.counts.setdefault(verb, Count())
            count.calls += calls
            count.failed += failed
            count.bytes += size
            count.seconds += seconds


class CountedRemote(DecoratedRemote, Counted):
    """A counting store over a network."""

    def download(self, name: str, into: Path, *, limit: int) -> ObjectInfo:
        return self._sized("download", lambda: self._remote.download(name, into, limit=limit))


class CountedVersioned(DecoratedVersioned, CountedRemote):
    """A counting store that may keep versions; bytes of versions are counted where they are read whole."""

    def read_version(self, name: str, version: str, *, limit: int) -> bytes:
        data = super().read_version(name, version, limit=limit)
        self._add("read_version", size=len(data))
        return data


def counted(store: ObjectStore) -> Counted:
    """`store`, counting from now on."""
    if isinstance(store, Versioned):
        return CountedVersioned(store)
    return (CountedRemote if isinstance(store, Remote) else Counted)(store)


class _CountingReader(Reader):
    def __init__(self, opened: AbstractContextManager[BinaryIO], counted: Counted) -> None:
        super().__init__(opened)
        self._counted = counted

    def readinto(self, buffer: Any) -> int:
        with self._counted._timed("open"):
            count = super().readinto(buffer)
        self._counted._add("open", size=count)
        return count
