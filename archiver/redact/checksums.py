"""Checksums that some providers put into their tokens, so that a random string is not taken for one."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Final

_BASE62 = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def base62(number: int, width: int) -> bytes:
    """A number in GitHub's base 62 (digits, then upper, then lower case), padded with zeros."""
    out = bytearray()
    while number:
        number, digit = divmod(number, 62)
        out.append(_BASE62[digit])
    return bytes(reversed(out)).rjust(width, b"0")


def crc32_base62(token: bytes) -> bool:
    """The last six characters are the CRC-32 of what stands between the prefix's `_` and them.

    Stated in https://github.blog/engineering/platform-security/behind-githubs-new-authentication-token-formats/
    and kept to by npm. Tokens in fixtures and documentation fail it, and are no credentials.
    """
    body = token[token.index(b"_") + 1 :]
    return base62(zlib.crc32(body[:-6]), 6) == body[-6:]


CHECKSUMS: Final[dict[str, Callable[[bytes], bool]]] = {"crc32-base62": crc32_base62}
