"""The branch of a repository that a web server offers, asked without git: its protocol is two small requests.

    GET <repository>/info/refs?service=git-upload-pack        → version 2, or the list of all refs
    POST <repository>/git-upload-pack                          → with version 2: the one ref

A server that only offers files answers the first with its own `info/refs`. So nothing that git would start
(transports, credential helpers, redirects) is there to be misused, and time and size are those of any probe.
Source: gitprotocol-http(5), gitprotocol-v2(5).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from archiver.freshness.hosts import Target
from archiver.freshness.network import Answer, Network
from archiver.freshness.resources import GoneError, check_status
from archiver.freshness.unasked import Unasked
from archiver.git.repository import OBJECT_ID

_MAX_LIST: Final = 2 << 20
"""Bytes of a list of refs: some 30,000; a server of version 2 is asked for one only."""
_SERVICE: Final = "git-upload-pack"
_V2: Final = {"Git-Protocol": "version=2"}
_LENGTH = re.compile(rb"[0-9a-f]{4}")


def tip(repository: Target, ref: str, network: Network) -> str:
    """The object id that `ref` stands at; `GoneError` where there is none, `Unasked` without an answer."""
    path = repository.path.rstrip("/")
    place = replace(repository, path=f"{path}/info/refs?service={_SERVICE}")
    answer = network.ask("GET", place, headers=_V2, limit=_MAX_LIST)
    check_status(answer)
    if not answer.headers.get("content-type", "").startswith(f"application/x-{_SERVICE}-advertisement"):
        return _dumb(replace(repository, path=f"{path}/HEAD"), ref, answer, network)
    lines = [line for line in _lines(answer.body) if not line.startswith(b"# ")]
    if lines[:1] != [b"version 2"]:
        return _found(lines, ref)
    post = replace(repository, path=f"{path}/{_SERVICE}")
    answer = network.ask("POST", post, headers=_V2 | _TYPES, body=_question(ref, lines), limit=_MAX_LIST)
    check_status(answer)
    return _found(list(_lines(answer.body)), ref)


_TYPES: Final = {
    "Content-Type": f"application/x-{_SERVICE}-request",
    "Accept": f"application/x-{_SERVICE}-result",
}


def _question(ref: str, capabilities: list[bytes]) -> bytes:
    sha256 = b"object-format=sha256" in capabilities
    formats = [_packet("object-format=sha256\n")] if sha256 else []
    return b"".join(
        [_packet("command=ls-refs\n"), *formats, b"0001", _packet(f"ref-prefix {ref}\n"), b"0000"]
    )


def _packet(text: str) -> bytes:
    data = text.encode()
    return b"%04x" % (len(data) + 4) + data


def _lines(body: bytes) -> Iterator[bytes]:
    """The lines in packets: each has its length before it, in four hexadecimal digits."""
    at = 0
    while at < len(body):
        if not _LENGTH.fullmatch(body[at : at + 4]):
            raise Unasked("it does not answer as a git server")
        size = int(body[at : at + 4], 16)
        end = at + max(size, 4)
        if size == 3 or end > len(body):
            raise Unasked("it does not answer as a git server")
        if size > 4:
            line = body[at + 4 : end].removesuffix(b"\n")
            if line.startswith(b"ERR "):
                raise Unasked("the git server refuses to answer")
            yield line
        at = end


def _found(lines: list[bytes], ref: str) -> str:
    """The id in the line of this ref: `<id> <ref>`, and then perhaps what the server can do."""
    for line in lines:
        found, _, rest = line.decode("utf-8", "replace").partition(" ")
        if rest.partition("\0")[0].partition(" ")[0] == ref and OBJECT_ID.fullmatch(found):
            return found
    raise GoneError(f"the repository has no {ref}")


def _dumb(head: Target, ref: str, answer: Answer, network: Network) -> str:
    """The id in a server's files: `<id>\\t<ref>`, and HEAD in a file of its own."""
    if ref == "HEAD":
        told = network.ask("GET", head, limit=4096)
        check_status(told)
        text = told.body.decode("utf-8", "replace").strip()
        if OBJECT_ID.fullmatch(text):
            return text
        if not text.startswith("ref: "):
            raise Unasked("it does not answer as a git server")
        ref = text.removeprefix("ref: ")
    rows = [line.split("\t") for line in answer.body.decode("utf-8", "replace").splitlines()]
    if not all(len(row) == 2 and OBJECT_ID.fullmatch(row[0]) for row in rows):
        raise Unasked("it does not answer as a git server")
    for found, name in rows:
        if name == ref:
            return found
    raise GoneError(f"the repository has no {ref}")
