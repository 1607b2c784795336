"""Objects on their way up: in one request if they fit, else in parts that become an object at the end.

A condition decides at the last moment whether the object comes into being. Its refusal is not believed at
once: the request may have been answered before, and the answer lost. Random metadata of each put, or else the
bytes, tell the own object from another's.
"""

from __future__ import annotations

import io
import math
import secrets
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final
from urllib.parse import urlencode

from archiver.aws.door import crc64nvme
from archiver.errors import AlreadyExistsError, LimitExceededError, ObjectNotFoundError, StoreError
from archiver.parallel import in_order
from archiver.store.base import ObjectInfo
from archiver.store.s3 import parts, uploads
from archiver.store.s3.client import S3, class_of, date_of, info_of
from archiver.store.s3.own import TOKEN, Own, found_own
from archiver.store.s3.request import ConditionFailedError, ConflictError, NoSuchUploadError, understood
from archiver.store.tries import Tries

MAX_PARTS: Final = 10_000
_TO_THE_END: Final = 86_400.0
_MOMENT: Final = 5.0
"""Seconds that an interruption (Ctrl-C) waits for an upload to be aborted."""
_AT_A_TIME: Final = 3
"""Parts under way; one more is being filled, so four are in memory."""


@dataclass(frozen=True, slots=True)
class Put:
    """An object to come: its name, its tags, and the condition on which it may come into being."""

    name: str
    tags: dict[str, str]
    condition: dict[str, str]
    """`IfNoneMatch` or `IfMatch`, as boto3 spells them."""

    def params(self, token: str) -> dict[str, Any]:
        """What is said when the object, or its upload, begins."""
        return {"Tagging": urlencode(self.tags), "Metadata": {TOKEN: token}}


def put(s3: S3, what: Put, body: Iterable[bytes]) -> ObjectInfo:
    """Send the whole body; `ConditionFailedError` if the condition does not hold.

    Where `body` raises, or anything else fails, nothing is seen of the object, and no part of it stays.
    """
    pieces = parts.cut(body, s3.options.part_size)
    held = list(islice(pieces, 2))
    if len(held) < 2:
        return _at_once(s3, what, held.pop() if held else io.BytesIO())
    return _in_parts(s3, what, _let_go(held, pieces))


def _let_go(held: list[io.BytesIO], rest: Iterator[io.BytesIO]) -> Iterator[io.BytesIO]:
    """All of them, of which nothing here keeps those that were passed on."""
    while held:
        yield held.pop(0)
    yield from rest


def _at_once(s3: S3, what: Put, part: io.BytesIO) -> ObjectInfo:
    data = part.getbuffer()
    own = Own(secrets.token_hex(16), len(data), crc64nvme(data), parts.sha256(data))
    checksum = parts.of_object(data, s3.options.checksums)
    tries = _tries(s3)
    while True:
        try:
            answer = s3.call(
                "put_object",
                what.name,
                Body=parts.sendable(part),
                **what.params(own.token),
                **what.condition,
                **checksum,
            )
        except ConflictError as error:
            tries.wait_after(error)
        except ConditionFailedError as error:
            if (found := _settled(s3, what, own, error)) is not None:
                return found
            tries.wait_after(error)
        else:
            return _info(what, own, answer)


def _in_parts(s3: S3, what: Put, pieces: Iterator[io.BytesIO]) -> ObjectInfo:
    token = secrets.token_hex(16)
    begun = s3.call(
        "create_multipart_upload", what.name, **what.params(token), **parts.of_upload(s3.options.checksums)
    )
    with understood(f"object {what.name}"):
        upload = _Upload(s3, what.name, str(begun["UploadId"]))
    if begun["ResponseMetadata"].get("RetryAttempts"):
        # An attempt may have begun an upload whose answer was lost.
        uploads.abort_others(s3, what.name, upload.id)
    try:
        crc, size = upload.send(pieces)
        own = Own(token, size, crc)
        return _completed(s3, what, own, upload)
    except Exception:
        upload.abort()
        raise
    except BaseException:
        upload.abort(within=_MOMENT)
        raise


def _completed(s3: S3, what: Put, own: Own, upload: _Upload) -> ObjectInfo:
    tries = _tries(s3)
    while True:
        try:
            answer = s3.call(
                "complete_multipart_upload",
                what.name,
                UploadId=upload.id,
                MultipartUpload={"Parts": upload.done},
                MpuObjectSize=own.size,
                **what.condition,
                **parts.of_whole(own.crc64, s3.options.checksums),
            )
        except ConflictError as error:
            tries.wait_after(error)
        except (ConditionFailedError, NoSuchUploadError) as error:
            # An upload whose completion was answered, and the answer lost, is there no more.
            if (found := _settled(s3, what, own, error)) is not None:
                return found
            tries.wait_after(error)
        else:
            return _info(what, own, answer)


class _Upload:
    """A multipart upload under way."""

    def __init__(self, s3: S3, name: str, upload: str) -> None:
        self._s3 = s3
        self._name = name
        self.id = upload
        self.done: list[dict[str, Any]] = []

    def send(self, pieces: Iterator[io.BytesIO]) -> tuple[int, int]:
        """Send all parts, a few at a time; returns the CRC-64/NVME of them all and their bytes."""
        crc = size = 0

        def numbered() -> Iterator[tuple[int, io.BytesIO]]:
            nonlocal crc, size
            for number, part in enumerate(pieces, start=1):
                self._refuse_too_many(number)
                crc = crc64nvme(part.getbuffer(), crc)
                size += part.getbuffer().nbytes
                yield number, part
                del part  # it belongs to the thread that sends it, which lets it go

        # All that are under way end before the upload is aborted: later ones would come into being again.
        workers = min(_AT_A_TIME, self._s3.options.aws.parallel)
        self.done.extend(
            in_order(self._send, numbered(), workers=workers, ahead=_AT_A_TIME, patience=_TO_THE_END)
        )
        return crc, size

    def abort(self, within: float | None = None) -> None:
        """Give the upload and its parts up; what stays because that fails too is tidied later.

        `within` are the seconds after which it goes on alone.
        """
        work = threading.Thread(target=uploads.abort, args=(self._s3, self._name, self.id), daemon=True)
        work.start()
        work.join(within)

    def _send(self, numbered: tuple[int, io.BytesIO]) -> dict[str, Any]:
        number, part = numbered
        checksum = parts.of_part(part.getbuffer(), self._s3.options.checksums)
        answer = self._s3.call(
            "upload_part",
            self._name,
            UploadId=self.id,
            PartNumber=number,
            Body=parts.sendable(part),
            **checksum,
        )
        with understood(f"object {self._name}"):
            return {"PartNumber": number, "ETag": answer["ETag"], **checksum}

    def _refuse_too_many(self, number: int) -> None:
        if number > MAX_PARTS:
            raise LimitExceededError(
                f"object {self._name} has more than {MAX_PARTS} parts of {self._s3.options.part_size} bytes",
                remedy="raise store.part_size",
            )


def _settled(s3: S3, what: Put, own: Own, error: StoreError | AlreadyExistsError) -> ObjectInfo | None:
    """The object if it is the own one after all; None if nothing is there now, so that trying again helps.

    `AlreadyExistsError` if it is another's, `UnconfirmedError` if nobody can tell.
    """
    try:
        head = found_own(s3, what.name, own)
    except ObjectNotFoundError:
        if isinstance(error, NoSuchUploadError):
            raise error from None
        if "IfMatch" in what.condition:
            raise
        return None
    if head is not None:
        return info_of(what.name, head, class_of(what.tags))
    if "IfMatch" in what.condition:
        raise AlreadyExistsError(
            f"object {what.name} was changed by somebody else meanwhile",
            remedy="run it again: it then works on what is there now",
        ) from error
    raise AlreadyExistsError(
        f"object {what.name} exists already", remedy="objects never change: read it, or use another name"
    ) from error


def _info(what: Put, own: Own, answer: dict[str, Any]) -> ObjectInfo:
    return ObjectInfo(what.name, own.size, date_of(answer), class_of(what.tags), answer.get("ETag"))


def _tries(s3: S3) -> Tries:
    """Once more at least: who is told to try again has not failed yet."""
    return Tries(max(2, s3.options.aws.attempts), math.inf)
