"""Data keys of KMS, kept for a short while: one call serves many files of one context.

A key is forgotten after `FILES_PER_KEY` files, after `SECONDS_PER_KEY`, when too many are held, and in a
process that was forked: it and the one it came from never seal under the same key.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from math import inf
from typing import Protocol

from archiver.age.arn import KeyArn
from archiver.age.context import Context
from archiver.errors import KMS_AWAY, KmsExpiredError, KmsUnreachableError, WrappedKeyError

FILES_PER_KEY = 256
"""Files that are sealed, or opened, with one data key before KMS is asked again."""

SECONDS_PER_KEY = 15 * 60.0
"""How long a data key stays in memory at most."""

KEYS_HELD = 4096
"""Data keys in memory at once; beyond it the one that was not used for longest is forgotten."""

SECONDS_AWAY = 30.0
"""How long a key that could not be asked is not asked again by who can do without it."""

DATA_KEY_SIZE = 32
MAX_BLOB = 6144
"""Bytes that KMS says a wrapped data key may have."""


@dataclass(frozen=True, slots=True)
class DataKey:
    """A data key, the blob that KMS opens to it, and the ARN of the key that KMS says it used."""

    plaintext: bytes = field(repr=False)
    blob: bytes
    arn: str


class KeyService(Protocol):
    """What is asked of KMS; an implementation raises errors of this package only."""

    def generate(self, arn: KeyArn, context: Mapping[str, str]) -> DataKey:
        """A new data key of 32 bytes, wrapped by the key under the context."""

    def decrypt(self, arn: KeyArn, context: Mapping[str, str], blob: bytes) -> DataKey:
        """The data key that is wrapped in `blob`."""


Place = tuple[str, str, bytes | None]
"""ARN, text of the context, and the blob; None where a key to seal with is kept."""


class DataKeys:
    """The data keys of one service. Threads share it; those that want the same key at once make one call.

    Keys to seal with never open anything: that a writer can seal does not prove that it may open.
    """

    def __init__(
        self,
        service: KeyService,
        *,
        files: int = FILES_PER_KEY,
        seconds: float = SECONDS_PER_KEY,
        held: int = KEYS_HELD,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._service = service
        self._files = files
        self._seconds = seconds
        self._most = held
        self._clock = clock
        self._begin()
        _LIVING.add(self)

    def to_seal(self, arn: KeyArn, context: Context) -> DataKey:
        """A data key for one more file of that context."""

        return self._take((arn.text, context.text(), None), lambda: self._generated(arn, context))

    def to_seal_unless_away(self, arn: KeyArn, context: Context) -> DataKey:
        """The same for who can do without: an error of `KMS_AWAY` is kept for `SECONDS_AWAY`.

        Until then it is raised again, for every context, and KMS is not asked. A data key that is in memory
        is there all the same.
        """

        def ask() -> DataKey:
            since, error = self._away.get(arn.text, (-inf, None))
            if error is not None and self._clock() < since + SECONDS_AWAY:
                raise type(error)(f"{error}; it was not asked again", remedy=error.remedy)
            try:
                return self._generated(arn, context)
            except KMS_AWAY as error:
                # A copy without the traceback, whose frames would stay as long as it.
                self._away[arn.text] = self._clock(), type(error)(str(error), remedy=error.remedy)
                raise

        return self._take((arn.text, context.text(), None), ask)

    def _generated(self, arn: KeyArn, context: Context) -> DataKey:
        key = self._service.generate(arn, context.pairs())
        if key.arn != arn.text or len(key.plaintext) != DATA_KEY_SIZE or not 0 < len(key.blob) <= MAX_BLOB:
            raise KmsUnreachableError(
                f"KMS answered with something else than a data key of {arn}",
                remedy="check keys.kms_endpoint_url and what stands between this machine and KMS",
            )
        return key

    def to_open(self, arn: KeyArn, context: Context, blob: bytes) -> DataKey:
        """The data key in `blob`, for one more file."""

        def ask() -> DataKey:
            key = self._service.decrypt(arn, context.pairs(), blob)
            if key.arn != arn.text:
                raise WrappedKeyError(f"the data key was wrapped by another key of KMS than {arn}")
            if len(key.plaintext) != DATA_KEY_SIZE:
                raise WrappedKeyError(
                    f"{arn} opens the blob to {len(key.plaintext)} bytes, which is no data key"
                )
            return key

        return self._take((arn.text, context.text(), blob), ask)

    def _begin(self) -> None:
        """Empty, and with new locks: other threads may have held the old ones at the moment of the fork."""
        self._lock = threading.Lock()
        self._held: OrderedDict[Place, _Held] = OrderedDict()
        self._timer: threading.Timer | None = None
        self._away: dict[str, tuple[float, KmsUnreachableError | KmsExpiredError]] = {}
        """By ARN: since when, and what was said."""

    def _take(self, place: Place, ask: Callable[[], DataKey]) -> DataKey:
        held = self._at(place)
        with held.lock:
            now = self._clock()
            if held.key is None or held.left == 0 or now - held.since >= self._seconds:
                held.key = None
                held.key, held.left, held.since = ask(), self._files, now
            held.left -= 1
            return held.key

    def _at(self, place: Place) -> _Held:
        with self._lock:
            held = self._held.setdefault(place, _Held(self._clock()))
            self._held.move_to_end(place)
            if len(self._held) > self._most:
                self._held.popitem(last=False)
            if self._timer is None:
                self._wind(self._seconds)
            return held

    def _wind(self, seconds: float) -> None:
        """Keys go on time also where nobody asks for one any more."""
        cache = weakref.ref(self)

        def ring() -> None:
            living = cache()
            if living is not None:
                living._drop_old()

        timer = threading.Timer(seconds, ring)
        timer.daemon = True
        with suppress(RuntimeError):  # no threads any more: the process ends, or has too many
            timer.start()
            self._timer = timer

    def _drop_old(self) -> None:
        with self._lock:
            now, self._timer = self._clock(), None
            for place in [place for place, held in self._held.items() if now - held.since >= self._seconds]:
                del self._held[place]
            if self._held:
                self._wind(min(held.since for held in self._held.values()) + self._seconds - now)


@dataclass(slots=True)
class _Held:
    """One place; its lock is held while KMS is asked, so that others wait for the answer."""

    since: float
    lock: threading.Lock = field(default_factory=threading.Lock)
    key: DataKey | None = field(default=None, repr=False)
    left: int = 0


_LIVING: weakref.WeakSet[DataKeys] = weakref.WeakSet()


def _begin_in_child() -> None:
    for keys in list(_LIVING):
        keys._begin()


os.register_at_fork(after_in_child=_begin_in_child)
