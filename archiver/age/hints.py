"""The hint stanza: which keys would open a file, in clear.

    -> checkpoint.archiver/hint FINGERPRINT…

It has no body. Other age tools skip it. Until the header MAC has passed anybody may have written it, so it
serves a message only; signed records repeat the fingerprints.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

from archiver.age.header import Header, Stanza

LABEL = "checkpoint.archiver"
HINT = f"{LABEL}/hint"

_FINGERPRINT = re.compile(r"[0-9a-f]{32}")


def fingerprint(recipient: str) -> str:
    """What a key is called: the first 32 hex digits of the SHA-256 of its recipient string."""
    return hashlib.sha256(recipient.encode("utf-8")).hexdigest()[:32]


def make(fingerprints: Iterable[str]) -> Stanza:
    return Stanza(HINT, tuple(fingerprints), b"")


def hint(header: Header) -> tuple[str, ...]:
    """The fingerprints that the header names, in its order; `("scrypt",)` for a passphrase; maybe none.

    Unauthenticated; nothing but fingerprints gets through, so the result can be shown.
    """
    if any(stanza.type == "scrypt" for stanza in header.stanzas):
        return ("scrypt",)
    words = (word for stanza in header.stanzas if stanza.type == HINT for word in stanza.arguments)
    return tuple(dict.fromkeys(word for word in words if _FINGERPRINT.fullmatch(word)))


def unnamed(header: Header) -> int:
    """How many stanzas the header has beyond the keys that it names: 0 in every file that is sealed here.

    A stanza does not tell whose it is, so a key added behind the hint's back shows by the count alone.
    """
    return sum(stanza.type != HINT for stanza in header.stanzas) - len(hint(header))
