"""Seal and unseal: header, file key, MAC, payload, in this order."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import BinaryIO, NamedTuple

from archiver.age import header as headers
from archiver.age import hints, kms, scrypt, stream, unopened
from archiver.age.feed import Feed
from archiver.age.header import Header
from archiver.age.kms import KmsIdentity
from archiver.age.primitives import FILE_KEY_SIZE
from archiver.age.protocols import ALONE, Identity, RandomSource, Recipient
from archiver.age.stream import ChunkWriter, Unsealer
from archiver.errors import ArchiverError, HeaderError, UsageError

_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class Sealed:
    """A finished age file: SHA-256 (hex) and length of its payload (all after the header), and its keys."""

    digest: str | None
    payload_length: int
    fingerprints: tuple[str, ...]

    @property
    def payload_sha256(self) -> str:
        """The digest; `UsageError` if the file was sealed without one."""
        if self.digest is None:
            raise UsageError("the file was sealed without a digest of its payload")
        return self.digest


class Sealer:
    """Seals what is written to it. Only `close` gives the file its end: without it nothing opens whole."""

    def __init__(self, chunks: ChunkWriter, fingerprints: tuple[str, ...]) -> None:
        self._chunks = chunks
        self._fingerprints = fingerprints

    def write(self, data: bytes | bytearray | memoryview) -> int:
        """Seal `data`; returns its length. `UsageError` after `close` or after `out` has raised."""
        return self._chunks.write(data)

    def close(self) -> Sealed:
        """Write the last chunk; `UsageError` when called again or after `out` has raised."""
        self._chunks.close()
        sha256 = self._chunks.sha256
        return Sealed(sha256.hexdigest() if sha256 else None, self._chunks.length, self._fingerprints)


def seal(
    recipients: Iterable[Recipient],
    out: Callable[[bytes], object],
    *,
    random: RandomSource = os.urandom,
    digest: bool = True,
) -> Sealer:
    """Begin an age file that each of `recipients` can open; its bytes go to `out` in order.

    `digest=False` saves the SHA-256 of the payload where nobody asks for it. Raises `UsageError` for no
    recipients or for such that may not share a file, and `LimitExceededError` for more than a header holds.
    """
    file_key = random(FILE_KEY_SIZE)
    header = make_header(recipients, file_key)
    out(header.marshal())
    nonce = random(stream.NONCE_SIZE)
    cipher = stream.payload_cipher(file_key, nonce)
    return Sealer(ChunkWriter(cipher, nonce, out, digest=digest), hints.hint(header))


def unseal(
    identities: Iterable[Identity], source: BinaryIO, *, name: str = "the age file", digest: bool = True
) -> Unsealer:
    """Open an age file with the first identity that fits; `name` is what errors call it.

    `digest=False` saves the SHA-256 of the payload where the caller has it already. Raises `HeaderError`,
    `KeyUnavailableError` (with the fingerprints that the file's hint names), `HeaderMacError`, and
    `MovedKeyError` where the file key is that of another file; of KMS `ContextMismatchError`,
    `WrappedKeyError`, `UnsupportedSchemaError` and the kinds of `KeyUnavailableError`. Reading raises
    `PayloadError`.
    """
    feed = Feed(source)
    header, file_key, nonce, identity = open_header(feed, identities, name)
    cipher = stream.payload_cipher(file_key, nonce)
    return Unsealer(
        feed,
        cipher,
        nonce,
        name=name,
        fingerprints=hints.hint(header),
        unnamed=hints.unnamed(header),
        contexts=kms.contexts(header),
        digest=digest,
        identity=identity,
    )


class OpenedHeader(NamedTuple):
    """An authentic header, what it holds, and the identity that opened it."""

    header: Header
    file_key: bytes
    nonce: bytes
    """What the payload begins with."""
    identity: Identity


def make_header(recipients: Iterable[Recipient], file_key: bytes) -> Header:
    """The header that lets each of `recipients` open what `file_key` seals; raises as `seal` does."""
    each = _compatible(recipients)
    fingerprints = tuple(recipient.fingerprint for recipient in each)
    stanzas = [stanza for recipient in each for stanza in recipient.wrap(file_key)]
    if fingerprints != (scrypt.FINGERPRINT,):
        stanzas.insert(0, hints.make(fingerprints))
    return headers.make(tuple(stanzas), file_key)


def open_header(feed: Feed, identities: Iterable[Identity], name: str) -> OpenedHeader:
    """Open the header alone with the first identity that fits; raises as `unseal`."""
    try:
        header = headers.read(feed)
        scrypt.refuse_company(header.stanzas)
        kms.wrapped_keys(header.stanzas)  # whoever opens it: none of them may be malformed
        file_key, identity = _unwrap(tuple(identities), header, name)
        if not header.is_authentic(file_key):
            raise unopened.misfit(feed, file_key, name)
        return OpenedHeader(header, file_key, stream.read_nonce(feed), identity)
    except HeaderError as error:
        raise HeaderError(f"{name} is not a canonical age file: {error}") from error


def payload_digest(source: BinaryIO) -> tuple[str, int]:
    """SHA-256 (hex) and length of the payload of an age file, without opening it. `HeaderError`."""
    feed = Feed(source)
    headers.read(feed)
    digest = hashlib.sha256()
    length = 0
    while block := feed.take(_BLOCK):
        digest.update(block)
        length += len(block)
    return digest.hexdigest(), length


def read_header(source: BinaryIO) -> Header:
    """Parse the header alone, without any key; nothing in it is authenticated. `HeaderError`."""
    return headers.read(Feed(source))


def _compatible(recipients: Iterable[Recipient]) -> list[Recipient]:
    each = list(recipients)
    if not each:
        raise UsageError("there is no recipient to seal to", remedy="name at least one `age1…` recipient")
    demands = {recipient.labels() for recipient in each} - {None}
    if len(demands) > 1 or (ALONE in demands and len(each) > 1):
        shown = dict.fromkeys(f"{recipient.kind} {recipient.fingerprint}" for recipient in each)
        raise UsageError(
            f"the recipients may not share a file: {', '.join(shown)}",
            remedy="a passphrase stands alone, and post-quantum recipients never stand beside X25519",
        )
    return list({recipient.fingerprint: recipient for recipient in each}.values())


def _unwrap(identities: Sequence[Identity], header: Header, name: str) -> tuple[bytes, Identity]:
    """The file key and whose it is, of the first identity that fits; KMS is asked only when no other does."""
    failures: list[ArchiverError] = []
    for identity in sorted(identities, key=lambda identity: isinstance(identity, KmsIdentity)):
        try:
            file_key = identity.unwrap(header.stanzas)
        except kms.FAILURES as error:
            failures.append(error)
            continue
        if file_key is not None:
            return file_key, identity
    if failures:
        raise unopened.failed(kms.most_telling(failures), header, name)
    raise unopened.no_key(identities, header, name)
