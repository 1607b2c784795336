"""Unpadded base64 with exactly one text for each byte string (RFC 4648, sections 3.5 and 4)."""

from __future__ import annotations

import binascii
import re

_BASE64 = re.compile(rb"[A-Za-z0-9+/]*")


def encode(data: bytes) -> bytes:
    """Base64 without padding and without line ends."""
    return binascii.b2a_base64(data, newline=False).rstrip(b"=")


def decode(text: bytes) -> bytes | None:
    """The bytes whose `encode` is exactly `text`; None when there are none."""
    if _BASE64.fullmatch(text) is None or len(text) % 4 == 1:
        return None
    data = binascii.a2b_base64(text + b"=" * (-len(text) % 4))
    return data if encode(data) == text else None  # else the last character has spare bits that are not zero
