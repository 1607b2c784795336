"""One save of a session at a time; events that come meanwhile are one more save afterwards.

hooks/<session>/lock    held by the process that saves
hooks/<session>/Stop    an event that waits: `{"name": "Stop", "at": 1764000000.0}`; likewise the others
hooks/<session>/last    when a save began last, and of which event
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from archiver.hooks.event import FINAL, Event
from archiver.hooks.log import is_at

_WAITING: Final = ("Stop", "SubagentStop", "PreCompact", FINAL)
_FORGOTTEN: Final = 30 * 86400
"""Seconds after which a session that nobody calls for is forgotten."""


@dataclass(frozen=True, slots=True)
class Last:
    """When a save began last, and the event that said the session was over, in seconds since the epoch."""

    began: float = 0.0
    ended: float = 0.0


@dataclass(frozen=True, slots=True)
class Turns:
    """The saves of one session into one store; `home` is the folder of all of them."""

    home: Path
    transcript: Path
    config: str = ""
    """What the hook's command names: hooks with another configuration save for themselves."""

    @property
    def folder(self) -> Path:
        both = b"\0".join((os.fsencode(self.transcript), os.fsencode(self.config)))
        name = hashlib.sha256(both).hexdigest()[:32]
        return self.home / name

    def take(self, event: Event, floor: timedelta, save: Callable[[Event], None]) -> None:
        """Have the event saved: here, or by the process that saves this session now.

        What `save` raises ends it, and the lock is free again.
        """
        self._leave(event)
        while self._waits():
            with self._lock() as held:
                if not held:
                    return  # the one that holds it looks once more after it has let go
                while (following := self._following()) is not None:
                    if self._due(following, floor):
                        self._begin(following)
                        save(following)

    def _leave(self, event: Event) -> None:
        try:
            self._put(event)
        except FileNotFoundError:  # the folder has just been forgotten
            self._put(event)

    def _put(self, event: Event) -> None:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _replace(self.folder / event.name, {"name": event.name, "at": event.at})

    def _waits(self) -> bool:
        return any((self.folder / name).exists() for name in _WAITING)

    def _following(self) -> Event | None:
        """All that waits as one event: the newest, but a hurried one before one that is not."""
        events = []
        for name in _WAITING:
            found = _read(self.folder / name)
            with suppress(FileNotFoundError):
                (self.folder / name).unlink()
                events.append(Event(name, self.transcript, float(found.get("at") or 0)))
        if not events:
            return None
        newest = max(events, key=lambda event: event.at)
        hurried = [event for event in events if not event.unhurried and not event.final]
        return hurried[0] if hurried and newest.unhurried else newest

    def _due(self, event: Event, floor: timedelta) -> bool:
        """Not for one that came before the end of the session, nor for every turn of a quick one."""
        last = self.last()
        if not event.final and event.at < last.ended <= time.time():  # an end to come is one of a wrong clock
            return False
        return not (event.unhurried and 0 <= time.time() - last.began < floor.total_seconds())

    def last(self) -> Last:
        """What is known of the save before; nothing where that is lost."""
        found = _read(self.folder / "last")
        with suppress(TypeError, ValueError):
            return Last(float(found.get("began") or 0), float(found.get("ended") or 0))
        return Last()

    def _begin(self, event: Event) -> None:
        ended = event.at if event.final else 0.0
        _replace(self.folder / "last", {"began": time.time(), "ended": ended})

    @contextmanager
    def _lock(self) -> Iterator[bool]:
        with _locked(self.folder / "lock") as held:
            yield held


def forget_old(home: Path) -> None:
    """Remove what is remembered of sessions that were not called for in a long time, and are not at work."""
    for folder in home.iterdir():
        with suppress(OSError):
            if _is_old(folder):
                with _locked(folder / "lock") as held:
                    if held and _is_old(folder):
                        shutil.rmtree(folder)


def _is_old(folder: Path) -> bool:
    return time.time() - folder.stat().st_mtime > _FORGOTTEN


@contextmanager
def _locked(path: Path) -> Iterator[bool]:
    """Whether the lock was free; one whose file was removed meanwhile is none, and is tried again."""
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
                return
            if is_at(handle, path):
                yield True
                return
        finally:
            os.close(handle)


def _replace(path: Path, value: dict[str, Any]) -> None:
    made = path.with_name(f".{path.name}-{os.getpid()}")
    made.write_bytes(json.dumps(value).encode())
    made.replace(path)


def _read(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}
