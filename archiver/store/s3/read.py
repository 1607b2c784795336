"""Objects on their way down: a reader that goes on where a connection broke, of one version of the object."""

from __future__ import annotations

import io
import math
from typing import Any, Final

from archiver.aws.door import FAILURES
from archiver.errors import ObjectNotFoundError, StoreError
from archiver.store.s3.check import Check, check_of
from archiver.store.s3.client import S3
from archiver.store.s3.failures import unanswered
from archiver.store.s3.request import ConditionFailedError, PastEndError, damaged
from archiver.store.tries import Tries

BUFFER: Final = 1 << 18


class ObjectReader(io.RawIOBase):
    """The bytes of an object from `start`, up to `end` if given; past the object's end it reads nothing.

    What is read whole is compared with the checksum that the store keeps: `DamagedError`.
    """

    def __init__(
        self, s3: S3, name: str, *, start: int = 0, end: int | None = None, etag: str | None = None
    ) -> None:
        super().__init__()
        self._s3 = s3
        self._name = name
        self._at = start
        self._end = end
        self._etag = etag
        self._body: Any = None
        self._end_of_answer = start
        self._check: Check | None = None
        self.answer = self._ask()
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

    def _read_some(self, buffer: Any) -> int:
        tries = Tries(self._s3.options.aws.attempts, math.inf)
        while True:
            try:
                count = int(self._body.readinto(buffer))
                if count or self._at >= self._end_of_answer:
                    return count
                raise ConnectionResetError("the body ended early")  # as if the network had said so
            except FAILURES as error:
                self._body.close()
                meant = unanswered(error, self._s3.request("get_object", self._name))
                meant.__cause__ = error
                tries.wait_after(meant)
                self._ask()

    def _ask(self) -> dict[str, Any]:
        """Ask for the bytes from here on, of the version that was read so far."""
        params: dict[str, Any] = {}
        if self._at or self._end is not None:
            params["Range"] = f"bytes={self._at}-{'' if self._end is None else self._end - 1}"
        if self._etag is not None:
            params["IfMatch"] = self._etag
        try:
            answer = self._s3.call("get_object", self._name, **params)
        except PastEndError:
            return {}
        except (ConditionFailedError, ObjectNotFoundError) as error:
            if self._etag is None:
                raise
            raise StoreError(
                f"object {self._name} was changed while it was read", remedy="run it again"
            ) from error
        self._body = answer["Body"]
        self._etag = answer.get("ETag")
        self._end_of_answer = self._at + int(answer["ContentLength"])
        if "Range" not in params:
            self._check = check_of(answer)
        elif not str(answer.get("ContentRange")).startswith(f"bytes {self._at}-"):
            self._body.close()
            raise StoreError(
                f"the store did not give the part of object {self._name} that was asked for",
                remedy="it, or a proxy before it, ignores ranges: use another",
            )
        return answer
