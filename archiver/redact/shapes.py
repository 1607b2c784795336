"""Confirmers for secrets that are more than one run of characters: keys in PEM, manifests, cookies."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from archiver.redact import judge

Places = tuple[tuple[int, int], ...]

_PEM_HEAD = re.compile(rb"-{4,5} ?BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}")
_PEM_END = re.compile(rb"-{4,5} ?END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}")
_PEM_BREAK = rb"(?:\\{0,7}[nr]|[\r\n])"
_PEM_JUNK = rb"(?:[ \t>+|#*\"',:\-]|\xe2\x86\x92|\xe2\x94\x82|[0-9]{1,6}(?=[ \t]*(?:\xe2\x86\x92|[:|\t ])))*"
_PEM_LEAD = rb"(?:[\"',+ ]*+" + _PEM_BREAK + rb")*" + _PEM_JUNK
_PEM_FOLLOWS = rb"(?=\\|[\r\n\"'\x00 ]|-----|\Z)"
_PEM_LINE = re.compile(
    _PEM_LEAD
    + rb"(?:(?:Proc-Type|DEK-Info|Version|Comment|Hash|Charset|Subject|kdf|salt|type)[^\n\\]{0,200}"
    + rb"|[A-Za-z0-9+/]{32,}={0,2})"
    + _PEM_FOLLOWS
)
# The last line is short: it ends in padding, or nothing else stands on it.
_PEM_LAST = re.compile(
    _PEM_LEAD
    + rb"(?:[A-Za-z0-9+/]{1,31}={1,2}|[A-Za-z0-9+/]{8,31}(?=[\"',]*(?:"
    + _PEM_BREAK
    + rb"|\Z|\x00|-----))|[A-Za-z0-9+/]{1,7}(?=[\"',]*"
    + _PEM_BREAK
    + rb"[^\n]{0,32}-----END))"
    + _PEM_FOLLOWS
)
_PEM_CHECK = re.compile(_PEM_LEAD + rb"=[A-Za-z0-9+/]{4}" + _PEM_FOLLOWS)
_PEM_NEXT = (b"\n", b"\r", b"\\", b" ", b'"', b"'", b",", b"+")
_PEM_MOST = 32_768


def pem(data: bytes, end: int) -> Places:
    """Confirms a private key in PEM or armour, with or without its END line, however its lines are broken."""
    head = _PEM_HEAD.search(data, max(0, end - 64), end + 64)
    if head is None:
        return ()
    if data[head.end() : head.end() + 1] not in _PEM_NEXT:
        return ()
    limit = min(len(data), head.end() + _PEM_MOST)
    at, body = head.end(), 0
    while match := _PEM_LINE.match(data, at, limit):
        body += match.end() - match.start()
        at = match.end()
    for pattern in (_PEM_LAST, _PEM_CHECK):
        if match := pattern.match(data, at, limit):
            body += match.end() - match.start()
            at = match.end()
    if body < 24:
        return ()
    tail = _PEM_END.search(data, at, min(limit, at + 160))
    return ((head.start(), tail.end() if tail else at),)


_GUTTER = rb"[ \t>+|\-]*+(?:[0-9]{1,6}[ \t]*(?:\xe2\x86\x92|\xe2\x94\x82|[:|\t]))?[ \t]*"
_MANIFEST_DATA = re.compile(rb"(?:^|\n)" + _GUTTER + rb"(?P<key>data|stringData):[ \t]*\n")
_MANIFEST_PAIR = re.compile(
    _GUTTER
    + rb"[A-Za-z0-9_.\-]+:[ \t]*(?:[|>][+\-]?[ \t]*\n"
    + _GUTTER
    + rb")?[\"']?(?P<secret>[^\s\"'\x00]{4,8192})[\"']?[ \t]*(?:\n|\Z|\x00)"
)
_MANIFEST_COMMENT = re.compile(_GUTTER + rb"#[^\n\x00]*\n")
_JSON_DATA = re.compile(rb"\\*\"(?P<key>data|stringData)\\*\"\s*:\s*\{(?P<body>[^{}]{1,16384})\}")
_JSON_PAIR = re.compile(rb":\s*\\*\"(?P<secret>[^\s\"\\\x00]{4,8192})\\*\"")
_MANIFEST_REACH = 8192
_MANIFEST_BOUNDS = (b"\x00", b"\n---", b"kind:", b'kind"', b"kind\\")
"""The end of a document, and what says that another object of a list begins or ends."""


def manifest(data: bytes, end: int) -> Places:
    """Confirms the data of a Kubernetes Secret, in YAML or JSON; the trigger ends at `kind: Secret`."""
    floor, ceiling = max(0, end - _MANIFEST_REACH), min(len(data), end + _MANIFEST_REACH)
    own = data.rfind(b"kind", floor, end)
    low = max(floor, *(data.rfind(sign, floor, own) for sign in _MANIFEST_BOUNDS))
    stops = [data.find(sign, end, ceiling) for sign in _MANIFEST_BOUNDS]
    high = min([ceiling, *(at for at in stops if at >= 0)])
    if data.find(b"ata", low, high) < 0:
        return ()
    spans: list[tuple[int, int]] = []
    for block in _JSON_DATA.finditer(data, low, high):
        spans += _pairs(block["key"], _JSON_PAIR.finditer(data, *block.span("body")))
    for block in _MANIFEST_DATA.finditer(data, low, high):
        spans += _pairs(block["key"], _consecutive(data, block.end(), high))
    return tuple(spans)


def _consecutive(data: bytes, at: int, high: int) -> Iterator[re.Match[bytes]]:
    while match := _MANIFEST_COMMENT.match(data, at, high) or _MANIFEST_PAIR.match(data, at, high):
        if match.re is _MANIFEST_PAIR:
            yield match
        at = match.end()


def _pairs(key: bytes, pairs: Iterable[re.Match[bytes]]) -> list[tuple[int, int]]:
    accept = judge.is_secret_data if key == b"data" else judge.is_secret_text
    return [pair.span("secret") for pair in pairs if accept(pair["secret"])]


_HEADER = re.compile(rb"[ \t]*[\"']?[^\n\"'\\\x00]*+")
_COOKIE = re.compile(rb"(?P<name>[A-Za-z0-9_.\-]{1,64})=(?P<secret>[^\s;,\"'\\\x00]{8,4096})")
_SESSION = re.compile(
    rb"sess|sid|auth|token|jwt|login|logged|remember|user|asp|identity|ticket", re.IGNORECASE
)


def cookie(data: bytes, end: int) -> Places:
    """Confirms session values of a Cookie or Set-Cookie header; the trigger ends at its colon."""
    header = _HEADER.match(data, end, end + 4096)
    return tuple(
        match.span("secret")
        for match in _COOKIE.finditer(data, end, header.end() if header else end)
        if _SESSION.search(match["name"]) and judge.is_token(match["secret"])
    )
