"""The header of an age file: stanzas that wrap the file key, and a MAC over them.

    age-encryption.org/v1
    -> TYPE ARGUMENT…
    BODY, base64 in lines of 64 columns, the last one shorter and maybe empty
    --- MAC

Every header that parses has exactly one spelling: `marshal` gives the parsed bytes back.
Source: https://age-encryption.org/v1 (C2SP).
"""

from __future__ import annotations

import hmac
import re
from dataclasses import dataclass

from archiver.age import encoding
from archiver.age.feed import Feed
from archiver.age.primitives import hkdf
from archiver.errors import HeaderError, LimitExceededError, UsageError

MAX_HEADER = 1 << 20
"""Bytes a header may have, on write and on read."""

MAX_STANZAS = 1024
"""Stanzas a header may have, on write and on read."""

_VERSION = b"age-encryption.org/v1"
_ANY_VERSION = b"age-encryption.org/"
_ARMOUR = b"-----BEGIN AGE ENCRYPTED FILE-----"
_COLUMNS = 64
_ARGUMENTS = re.compile(rb"->(?: [!-~]+)+")
_ARGUMENT = re.compile(r"[!-~]+")
_END = re.compile(rb"--- ([A-Za-z0-9+/]{43})")


@dataclass(frozen=True, slots=True)
class Stanza:
    """One way to the file key: a type, further arguments (printable ASCII) and a body."""

    type: str
    arguments: tuple[str, ...]
    body: bytes

    def marshal(self) -> bytes:
        words = b" ".join(word.encode("ascii") for word in ("->", self.type, *self.arguments))
        text = encoding.encode(self.body)
        # A body of whole lines ends with an empty one: `len(text) + 1` makes room for it.
        lines = [text[at : at + _COLUMNS] for at in range(0, len(text) + 1, _COLUMNS)]
        return b"\n".join((words, *lines, b""))


@dataclass(frozen=True, slots=True)
class Header:
    """The parsed header; nothing in it can be believed before `is_authentic` said so."""

    stanzas: tuple[Stanza, ...]
    mac: bytes

    def marshal(self) -> bytes:
        return _marshal_covered(self.stanzas) + b" " + encoding.encode(self.mac) + b"\n"

    def is_authentic(self, file_key: bytes) -> bool:
        """Whether the MAC was made over these stanzas by somebody who knew the file key."""
        return hmac.compare_digest(_mac(self.stanzas, file_key), self.mac)


def make(stanzas: tuple[Stanza, ...], file_key: bytes) -> Header:
    """The header with its MAC; `LimitExceededError` for one that `read` would refuse."""
    for stanza in stanzas:
        if not all(_ARGUMENT.fullmatch(word) for word in (stanza.type, *stanza.arguments)):
            raise UsageError("the type and arguments of a stanza are printable ASCII without spaces")
    header = Header(stanzas, _mac(stanzas, file_key))
    if len(stanzas) > MAX_STANZAS or len(header.marshal()) > MAX_HEADER:
        raise LimitExceededError(
            f"a header of {len(stanzas)} stanzas passes its limits: {MAX_STANZAS} and {MAX_HEADER} bytes",
            remedy="seal to fewer recipients",
        )
    return header


def read(feed: Feed) -> Header:
    """Parse the header that `feed` begins with and leave it at the payload; `HeaderError` otherwise."""
    lines = _Lines(feed)
    _check_version(lines)
    stanzas: list[Stanza] = []
    line = lines.next()
    while not line.startswith(b"---"):
        if len(stanzas) == MAX_STANZAS:
            raise HeaderError(f"the header has more than {MAX_STANZAS} stanzas")
        stanzas.append(_stanza(line, lines))
        line = lines.next()
    if not stanzas:
        raise HeaderError("the header has no stanza")
    end = _END.fullmatch(line)
    mac = encoding.decode(end[1]) if end else None
    if mac is None:
        raise HeaderError("the header does not end with one canonical MAC line")
    return Header(tuple(stanzas), mac)


class _Lines:
    """The header's lines, together at most `MAX_HEADER` bytes."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._left = MAX_HEADER

    def next(self) -> bytes:
        line = self._feed.line(self._left)
        if line is None:
            raise HeaderError(f"the header has no end within the file and {MAX_HEADER} bytes")
        self._left -= len(line) + 1
        return line


def _check_version(lines: _Lines) -> None:
    version = lines.next()
    if version == _VERSION:
        return
    if version.rstrip(b"\r") == _ARMOUR:
        raise HeaderError("the file is armoured (ASCII), which sealed objects never are")
    if version.startswith(_ANY_VERSION):
        raise HeaderError(f"the version line is not {_VERSION.decode()}")
    raise HeaderError("the file does not begin with the version line of an age file")


def _stanza(line: bytes, lines: _Lines) -> Stanza:
    if _ARGUMENTS.fullmatch(line) is None:
        raise HeaderError("a header line is neither a well-formed stanza nor the end of the header")
    kind, *arguments = line.decode("ascii").split(" ")[1:]
    text: list[bytes] = []
    while not text or len(text[-1]) == _COLUMNS:
        text.append(lines.next())
        if len(text[-1]) > _COLUMNS:
            raise HeaderError(f"a stanza has a body line of more than {_COLUMNS} columns")
    body = encoding.decode(b"".join(text))
    if body is None:
        raise HeaderError("the body of a stanza is not canonical base64")
    return Stanza(kind, tuple(arguments), body)


def _marshal_covered(stanzas: tuple[Stanza, ...]) -> bytes:
    """The bytes under the MAC: all up to and including the three dashes."""
    return b"".join((_VERSION, b"\n", *(stanza.marshal() for stanza in stanzas), b"---"))


def _mac(stanzas: tuple[Stanza, ...], file_key: bytes) -> bytes:
    return hmac.digest(hkdf(file_key, salt=b"", info=b"header"), _marshal_covered(stanzas), "sha256")
