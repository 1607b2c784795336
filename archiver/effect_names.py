"""What an effect is called where somebody decides on it: its key, or the digest of a key that is no word."""

from __future__ import annotations

import hashlib
import re
from typing import Final

LONGEST: Final = 200
"""Characters of a key that is its own name; a command takes only so much, and a claim holds every name."""
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")


def name_of(key: str) -> str:
    """The name of effects with this key: the key, or `sha256:` and its digest.

    The digest is for a key that some command or record could not hold: without a character, longer than
    `LONGEST`, with a line end at its end, with a NUL or half of a pair; and for one that looks like a digest.
    """
    if key[-1:] not in ("", "\n") and len(key) <= LONGEST and "\0" not in key and _is_text(key):
        return key if not _DIGEST.fullmatch(key) else _digest(key)
    return _digest(key)


def _digest(key: str) -> str:
    return f"sha256:{hashlib.sha256(key.encode('utf-8', 'surrogatepass')).hexdigest()}"


def name_in(given: str) -> str:
    """The name that somebody gave, who may as well have given the key."""
    return given if _DIGEST.fullmatch(given) else name_of(given)


def _is_text(key: str) -> bool:
    try:
        key.encode()
    except UnicodeEncodeError:
        return False
    return True
