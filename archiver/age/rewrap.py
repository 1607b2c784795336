"""Another header for the same file key: the payload stays as it is, byte for byte."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from io import BytesIO
from typing import BinaryIO

from archiver.age import hints
from archiver.age.container import make_header, open_header
from archiver.age.feed import Feed
from archiver.age.header import Header
from archiver.age.protocols import Identity, Recipient
from archiver.errors import ContainerError, KeyUnavailableError

_BLOCK = 1 << 20


def rewrap(
    identities: Iterable[Identity],
    recipients: Iterable[Recipient],
    source: BinaryIO,
    *,
    name: str = "the age file",
) -> Rewrapped:
    """The age file in `source` with a header for `recipients`; `blocks` gives its bytes.

    One of `identities` opens the old header, and one of them must open the new one: nobody locks a file away
    from himself. Raises what `seal` and `unseal` raise before a byte is given out; the payload is copied
    without being opened, so its digest is for the caller to compare.
    """
    mine = tuple(identities)
    feed = Feed(source)
    old, file_key, nonce, identity = open_header(feed, mine, name)
    new = make_header(recipients, file_key)
    try:
        open_header(Feed(BytesIO(new.marshal() + nonce)), mine, name)
    except (KeyUnavailableError, ContainerError) as error:
        raise KeyUnavailableError(
            f"{name} would be locked to keys that you cannot use: {', '.join(hints.hint(new))} ({error})",
            fingerprints=hints.hint(new),
            remedy="keep a recipient whose identity you have among the recipients",
        ) from error
    return Rewrapped(old, new, nonce, feed, identity.fingerprint)


class Rewrapped:
    """A file under its new header, to be read once."""

    def __init__(self, old: Header, new: Header, nonce: bytes, feed: Feed, opened_by: str) -> None:
        self.before = hints.hint(old)
        """Fingerprints that the old, authentic header named."""
        self.unnamed = hints.unnamed(old)
        """Stanzas that the old header had beyond these."""
        self.fingerprints = hints.hint(new)
        """Fingerprints of those that the new header is for."""
        self.opened_by = opened_by
        """Fingerprint of the identity that opened the old header."""
        self._header = new.marshal()
        self._nonce = nonce
        self._feed = feed
        self._sha256 = hashlib.sha256()
        self._length = 0

    def blocks(self) -> Iterator[bytes]:
        """The new header, then the payload, about a megabyte at a time."""
        yield self._header
        block = self._nonce
        while block:
            self._sha256.update(block)
            self._length += len(block)
            yield block
            block = self._feed.take(_BLOCK)

    @property
    def payload(self) -> tuple[str, int]:
        """SHA-256 (hex) and length of the payload that `blocks` has given out so far."""
        return self._sha256.hexdigest(), self._length
