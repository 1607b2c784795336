"""The ways in which one credential may have been written where redaction found it, for a look at receipts.

A receipt knows the bytes that stood in the text: a password in a login header stood there in base64, one in
an address percent-encoded, a key in JSON with its line ends written out.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Iterator
from typing import Final
from urllib.parse import quote, quote_plus, unquote_to_bytes

from archiver.redact.exact import caseless_encodings
from archiver.redact.ledger import MORE, Ledger

_QUOTES: Final = b"\"'`"
_SCHEMES: Final = (b"bearer ", b"basic ", b"token ")
_URL_SAFE: Final = bytes.maketrans(b"+/", b"-_")


def spellings(value: bytes) -> frozenset[bytes]:
    """The value, what it is without quotes, scheme or encoding, and each of these as it may be written."""
    return frozenset(form for plain in set(_plain(value)) for form in _written(plain) if form)


def fingerprints(key: bytes, forms: Iterable[bytes]) -> frozenset[str]:
    """What a run with this key calls each of the forms in its receipts and placeholders."""
    ledger = Ledger(key)
    return frozenset(map(ledger.fingerprint, forms)) - {MORE}


def _plain(value: bytes) -> Iterator[bytes]:
    """The value and what is left of it without what may have been copied along."""
    yield value
    stripped = value.strip()
    yield stripped
    if len(stripped) > 2 and stripped[:1] == stripped[-1:] and stripped[:1] in _QUOTES:
        yield (bare := stripped[1:-1])
        stripped = bare
    for scheme in _SCHEMES:
        if stripped[: len(scheme)].lower() == scheme:
            yield stripped[len(scheme) :].strip()
    if b"%" in stripped:
        yield unquote_to_bytes(stripped)
    if (decoded := _decoded(stripped)) is not None:
        yield decoded
        yield decoded.removesuffix(b"\n")
    if stripped.startswith(b"-----BEGIN"):
        yield stripped.replace(b"\r\n", b"\n").replace(b"\\r\\n", b"\n").replace(b"\\n", b"\n")


def _written(value: bytes) -> Iterator[bytes]:
    yield value
    for sign in (b'"', b"'", b"`"):
        yield sign + value + sign
    # `echo` puts a line end into what it hands on to base64.
    for ended in (value, value + b"\n"):
        whole = base64.b64encode(ended)
        yield from (whole, whole.rstrip(b"="))
        safe = whole.translate(_URL_SAFE)
        yield from (safe, safe.rstrip(b"="))
    yield from caseless_encodings(value)
    yield quote(value, safe="").lower().encode()
    yield quote_plus(value).encode()
    yield value.hex().upper().encode()
    if value.startswith(b"-----BEGIN"):
        yield value.replace(b"\n", b"\r\n")
        yield value + b"\n"


def _decoded(value: bytes) -> bytes | None:
    """What base64 holds, if that is text; else it is a value of its own that only looks so."""
    if len(value) < 8:
        return None
    try:
        padded = value.translate(bytes.maketrans(b"-_", b"+/")) + b"=" * (-len(value) % 4)
        decoded = base64.b64decode(padded, validate=True)
        return decoded if decoded.decode("utf-8").isprintable() or b"\n" in decoded else None
    except (binascii.Error, UnicodeDecodeError):
        return None
