"""Objects on their way down: a reader that goes on where a connection broke, of one version of the object."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from archiver.aws.door import FAILURES
from archiver.errors import ObjectNotFoundError, StoreError
from archiver.store.s3.check import Check, check_of
from archiver.store.s3.client import S3
from archiver.store.s3.failures import unanswered
from archiver.store.s3.promised import Promised, promised
from archiver.store.s3.request import ConditionFailedError, PastEndError, damaged
from archiver.store.tries import Tries

BUFFER: Final = 1 << 18
PROGRESS: Final = 1 << 16
"""Bytes that have to come between two broken connections for the second to count as a first one."""


class ObjectReader(io.RawIOBase):
    """The bytes of an object from `start`, up to `end` if given; past the object's end it reads nothing.

    What is read whole is compared with the checksum that the store keeps: `DamagedError`.
    """

    def __init__(
        self,
        s3: S3,
        name: str,
        *,
        start: int = 0,
        end: int | None = None,
        etag: str | None = None,
        version: str | None = None,
    ) -> None:
        super().__init__()
        self._s3 = s3
        self._name = name
        self._at = start
        self._end = end
        self._etag = etag
        self._version = {} if version is None else {"VersionId": version}
        self._body: Any = None
        self._check: Check | None = None
        self._tries = self._new_tries()
        self._broke_at = start
        self.answer = self._begin()
        """What the store said of the object; empty where it begins behind the end."""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Read what has come, at most what fits."""
        if self._body is None or not len(buffer):
            return 0
        count = self._read_some(buffer)
        self._at += count
        if self._check is not None:
            self._check.update(memoryview(buffer)[:count])
            if not count and not self._check.holds():
                raise damaged(f"object {self._name}", "does not have the checksum that the store keeps of it")
        return count

    def close(self) -> None:
        if not self.closed and self._body is not None:
            self._body.close()
        super().close()

    def _begin(self) -> dict[str, Any]:
        """Ask for the first time: what the answer promises, it is held to when it has to be asked again."""
        self._promised = Promised(self._at, None)
        try:
            answer = self._ask()
        except PastEndError:
            return {}
        with self._closing_what_is_refused():
            self._refuse_another_version(answer)
            self._promised = promised(self._name, answer, self._at, self._end)
            self._etag = answer.get("ETag")
            if "ContentRange" not in answer:
                self._check = check_of(answer)
        return answer

    def _go_on(self) -> None:
        """Ask for what is still missing of what the first answer promised."""
        try:
            answer = self._ask()
        except PastEndError as error:
            raise self._changed() from error
        with self._closing_what_is_refused():
            self._refuse_another_version(answer)
            if promised(self._name, answer, self._at, self._end) != self._promised:
                raise self._changed()

    def _read_some(self, buffer: Any) -> int:
        while True:
            try:
                count = int(self._body.readinto(buffer))
            except FAILURES as error:
                if self._is_whole():
                    return 0
                self._wait_after(error)
            else:
                if self._at + count > self._promised.end:
                    raise StoreError(
                        f"the store gave more of object {self._name} than it said",
                        remedy="run it again; if it stays so, use another server",
                    )
                if count or self._is_whole():
                    return count
                self._wait_after(ConnectionResetError("the body ended early"))
            self._go_on()

    def _is_whole(self) -> bool:
        return self._at >= self._promised.end

    def _wait_after(self, error: Exception) -> None:
        """Pause before going on. Who gained much has all tries again; a byte each time does not count."""
        self._body.close()
        meant = unanswered(error, self._s3.request("get_object", self._name))
        meant.__cause__ = error
        if self._at - self._broke_at >= PROGRESS:
            self._tries = self._new_tries()
        self._broke_at = self._at
        self._tries.wait_after(meant)

    def _new_tries(self) -> Tries:
        return Tries(self._s3.options.aws.attempts, math.inf)

    def _ask(self) -> dict[str, Any]:
        """Ask for the bytes from here on, of the version that was read so far."""
        params: dict[str, Any] = dict(self._version)
        if self._at or self._end is not None:
            params["Range"] = f"bytes={self._at}-{'' if self._end is None else self._end - 1}"
        if self._etag is not None:
            params["IfMatch"] = self._etag
        try:
            answer = self._s3.call("get_object", self._name, **params)
        except (ConditionFailedError, ObjectNotFoundError) as error:
            if self._etag is None:
                raise
            raise self._changed() from error
        self._body = answer["Body"]
        return answer

    def _refuse_another_version(self, answer: dict[str, Any]) -> None:
        if self._etag is not None and answer.get("ETag") != self._etag:
            raise self._changed()

    @contextmanager
    def _closing_what_is_refused(self) -> Iterator[None]:
        try:
            yield
        except StoreError:
            self._body.close()
            raise

    def _changed(self) -> StoreError:
        return StoreError(f"object {self._name} was changed while it was read", remedy="run it again")
