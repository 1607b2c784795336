"""A small S3 server in memory that keeps to the protocol, but for the lies it is told to tell.

    with LyingServer(conditions="ignored") as server:
        ... a store at s3://bucket/prefix with endpoint_url=server.endpoint

It believes every signature. What it does not have (multipart, the set-up of a bucket) is 501.
"""

from __future__ import annotations

import base64
import hashlib
import re
import threading
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal, Self
from urllib.parse import parse_qs, unquote, urlsplit
from xml.etree import ElementTree
from xml.sax.saxutils import escape

BUCKET = "bucket"

Conditions = Literal[
    "enforced",
    "ignored",
    "racy",  # looked at, but not at the same moment as the object is put
    "unknown",  # a request with a condition is refused
]


@dataclass
class Kept:
    """An object."""

    body: bytes
    tags: dict[str, str]
    token: str | None
    at: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def etag(self) -> str:
        return f'"{hashlib.md5(self.body, usedforsecurity=False).hexdigest()}"'


@dataclass
class Lies:
    """What the server does otherwise than it should."""

    conditions: Conditions = "enforced"
    checks_digests: bool = True
    keeps_tags: bool = True
    changes_tags: bool = True
    adds: bytes = b""
    """What it stores behind every object, as servers did with checksums that were sent there."""
    clock: timedelta = timedelta()
    """How far its clock is off."""
    name: str = "Lying/1.0"
    open_to_all: bool = False
    may: frozenset[str] = frozenset({"GET", "HEAD", "PUT", "DELETE"})
    """Methods that anybody with a signature may use."""
    set_up: dict[str, tuple[int, str]] = field(default_factory=dict)
    """Answers about the bucket, by method and query: `PUT policy → 400, MalformedPolicy`."""


class LyingServer:
    """Listens at `endpoint` from `with` to its end."""

    def __init__(self, **lies: Any) -> None:
        self.lies = Lies(**lies)
        self.objects: dict[str, Kept] = {}
        self.requests: list[tuple[str, str]] = []
        self.lock = threading.Lock()
        handler = type("Handler", (_Handler,), {"owner": self})
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True)

    @property
    def endpoint(self) -> str:
        """The URL to talk to."""
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


class _RefusedError(Exception):
    def __init__(self, status: int, code: str) -> None:
        super().__init__(code)
        self.status, self.code = status, code


class _Handler(BaseHTTPRequestHandler):
    owner: LyingServer
    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16  # head and body together, so that no acknowledgement is waited for

    def version_string(self) -> str:
        return self.owner.lies.name

    def date_time_string(self, timestamp: float | None = None) -> str:
        return format_datetime(datetime.now(UTC) + self.owner.lies.clock, usegmt=True)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name in the base class
        """Nothing: nobody reads it."""

    def handle_expect_100(self) -> bool:
        going_on = super().handle_expect_100()
        self.wfile.flush()
        return going_on

    def do(self) -> None:
        """Answer any method."""
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.owner.requests.append((self.command, self.path))
        try:
            self._permitted()
            self._act(body)
        except _RefusedError as error:
            text = f"<Error><Code>{error.code}</Code><Message>{error.code}</Message></Error>"
            self._answer(error.status, text.encode())

    do_GET = do_HEAD = do_PUT = do_DELETE = do_POST = do  # noqa: N815 - names of the base class

    def _permitted(self) -> None:
        lies = self.owner.lies
        if not lies.open_to_all and "Authorization" not in self.headers:
            raise _RefusedError(403, "AccessDenied")
        if self.command not in lies.may:
            raise _RefusedError(403, "AccessDenied")

    def _act(self, body: bytes) -> None:
        parts = urlsplit(self.path)
        query = parse_qs(parts.query, keep_blank_values=True)
        bucket, _, key = unquote(parts.path).lstrip("/").partition("/")
        if bucket != BUCKET:
            raise _RefusedError(404, "NoSuchBucket")
        if not key:
            self._bucket(query)
        elif "tagging" in query:
            self._tagging(key, body)
        elif set(query) - {"x-id"}:
            raise _RefusedError(501, "NotImplemented")
        elif self.command == "PUT":
            self._put(key, body)
        elif self.command == "DELETE":
            self.owner.objects.pop(key, None)
            self._answer(204)
        else:
            self._get(key)

    def _bucket(self, query: dict[str, list[str]]) -> None:
        if "list-type" not in query:
            word = f"{self.command} {next(iter(query), '')}"
            raise _RefusedError(*self.owner.lies.set_up.get(word, (501, "NotImplemented")))
        prefix = query.get("prefix", [""])[0]
        most = int(query.get("max-keys", ["1000"])[0])
        with self.owner.lock:
            found = sorted((key, kept) for key, kept in self.owner.objects.items() if key.startswith(prefix))
        listed = "".join(
            f"<Contents><Key>{escape(key)}</Key><LastModified>{kept.at:%Y-%m-%dT%H:%M:%S.000Z}</LastModified>"
            f"<ETag>{escape(kept.etag)}</ETag><Size>{len(kept.body)}</Size></Contents>"
            for key, kept in found[:most]
        )
        answer = f"<ListBucketResult><IsTruncated>false</IsTruncated>{listed}</ListBucketResult>"
        self._answer(200, answer.encode())

    def _put(self, key: str, body: bytes) -> None:
        lies = self.owner.lies
        if lies.checks_digests:
            self._check(body)
        tags = {name: value[0] for name, value in parse_qs(self.headers.get("x-amz-tagging", "")).items()}
        kept = Kept(
            body + lies.adds, tags if lies.keeps_tags else {}, self.headers.get("x-amz-meta-archiver-put")
        )
        wanted = self.headers.get("If-None-Match") == "*" and lies.conditions != "ignored"
        if wanted and lies.conditions == "unknown":
            raise _RefusedError(501, "NotImplemented")
        if lies.conditions == "racy":
            taken = key in self.owner.objects
            time.sleep(0.1)
        with self.owner.lock:
            if lies.conditions != "racy":
                taken = key in self.owner.objects
            if wanted and taken:
                raise _RefusedError(412, "PreconditionFailed")
            self.owner.objects[key] = kept
        self._answer(200, headers={"ETag": kept.etag})

    def _check(self, body: bytes) -> None:
        for header, digest in (
            ("x-amz-checksum-sha256", hashlib.sha256(body).digest()),
            ("Content-MD5", hashlib.md5(body, usedforsecurity=False).digest()),
        ):
            sent = self.headers.get(header)
            if sent is not None and base64.b64decode(sent) != digest:
                raise _RefusedError(400, "BadDigest")

    def _get(self, key: str) -> None:
        kept = self._kept(key)
        headers = {"ETag": kept.etag, "Last-Modified": format_datetime(kept.at, usegmt=True)}
        if kept.token is not None:
            headers["x-amz-meta-archiver-put"] = kept.token
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if asked is None:
            self._answer(200, kept.body, headers)
            return
        start, end = int(asked[1]), int(asked[2] or len(kept.body)) + 1
        if start >= len(kept.body):
            raise _RefusedError(416, "InvalidRange")
        piece = kept.body[start:end]
        headers["Content-Range"] = f"bytes {start}-{start + len(piece) - 1}/{len(kept.body)}"
        self._answer(206, piece, headers)

    def _tagging(self, key: str, body: bytes) -> None:
        kept = self._kept(key)
        if self.command == "PUT":
            found = ElementTree.fromstring(body)  # noqa: S314 - what boto3 sends
            words = [element.text or "" for element in found.iter() if element.tag.endswith(("Key", "Value"))]
            if self.owner.lies.changes_tags:
                kept.tags = dict(zip(words[::2], words[1::2], strict=True))
            self._answer(200)
            return
        tags = "".join(f"<Tag><Key>{k}</Key><Value>{v}</Value></Tag>" for k, v in kept.tags.items())
        self._answer(200, f"<Tagging><TagSet>{tags}</TagSet></Tagging>".encode())

    def _kept(self, key: str) -> Kept:
        kept = self.owner.objects.get(key)
        if kept is None:
            raise _RefusedError(404, "NoSuchKey")
        return kept

    def _answer(self, status: int, body: bytes = b"", headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
