"""Small objects in half the time: signed by boto3's client and over its connections, without its model of S3.

Most of what boto3 does for a small GET is to look up what it knows of parameters, endpoints and headers, and
a list of all runs is such a GET for each. What it found for one object (address, region, how to sign) holds
for the next. All but a whole object is left to boto3's own way: errors, retries, redirects, too much.
"""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from archiver.aws.door import AWSRequest
from archiver.store.s3.check import check_of

REST: Final = 60.0
"""Seconds in which all is left to boto3 after something went wrong."""

_KEY: Final = "key of the object"
_SIGNING: Final = ("client_region", "client_config", "has_streaming_input", "auth_type", "signing")
_CHECKSUMS: Final = {
    "ChecksumSHA256": "x-amz-checksum-sha256",
    "ChecksumCRC64NVME": "x-amz-checksum-crc64nvme",
    "ChecksumCRC32": "x-amz-checksum-crc32",
    "ChecksumType": "x-amz-checksum-type",
}


@dataclass(frozen=True, slots=True)
class _Pattern:
    """What is the same in every GET of an object of the bucket."""

    url: str
    """All before the key."""
    agent: str
    context: dict[str, Any]
    """What the signer wants to know."""


class QuickReads:
    """Reads of small objects by one client; safe between threads, and no more to be used after a fork."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._pattern: _Pattern | None = None
        self._rest_until = 0.0
        client.meta.events.register("provide-client-params.s3.GetObject", _note_key)
        client.meta.events.register("before-sign.s3.GetObject", self._learn)

    def read(self, key: str, limit: int) -> bytes | None:
        """The object with that key; None where it has to be asked for in boto3's own way."""
        if self._pattern is None or time.monotonic() < self._rest_until:
            return None
        try:
            answer = self._ask(self._pattern, key)
            with closing(answer.raw):
                if answer.status_code == 200:
                    return _whole(answer, limit)
                well = answer.status_code == 404
        except Exception:
            # Whatever it is, also another boto3 than this was made for: its own way says what is wrong.
            well = False
        if not well:
            self._rest_until = time.monotonic() + REST
        return None

    def _learn(self, request: Any, **_: Any) -> None:
        """Look at a request as boto3 makes it, just before it is signed."""
        key = quote(request.context.get(_KEY, ""), safe="/~")
        if self._pattern is None and key and request.url.endswith(f"/{key}"):
            context = {name: request.context[name] for name in _SIGNING if name in request.context}
            agent = request.headers.get("User-Agent", "")
            self._pattern = _Pattern(request.url.removesuffix(key), agent, context)

    def _ask(self, pattern: _Pattern, key: str) -> Any:
        url = pattern.url + quote(key, safe="/~")
        request = AWSRequest("GET", url, headers={"User-Agent": pattern.agent}, stream_output=True)
        request.context.update(pattern.context)
        self._client._request_signer.sign("GetObject", request)
        prepared = request.prepare()
        # Who watches or answers requests in the place of the network is asked as ever.
        answers = self._client.meta.events.emit("before-send.s3.GetObject", request=prepared)
        given = next((answer for _, answer in answers if answer is not None), None)
        return given or self._client._endpoint.http_session.send(prepared)


def _note_key(params: dict[str, Any], context: dict[str, Any], **_: Any) -> None:
    context[_KEY] = params.get("Key", "")


def _whole(answer: Any, limit: int) -> bytes | None:
    size = int(answer.headers["Content-Length"])
    if not 0 <= size <= limit:
        return None
    data: bytes = answer.raw.read(size + 1)  # chunks may hold more than the length says
    check = check_of(
        {name: answer.headers[word] for name, word in _CHECKSUMS.items() if word in answer.headers}
    )
    if check is not None:
        check.update(data)
    return data if len(data) == size and (check is None or check.holds()) else None
