"""The payload of an age file: 64 KiB chunks, each under ChaCha20-Poly1305 with its number and a last-flag.

    payload     = nonce (16 bytes) ‖ chunk…
    payload key = HKDF-SHA-256(file key, salt = nonce, info = "payload")
    chunk       = ChaCha20-Poly1305(payload key, nonce = number ‖ flag, at most 64 KiB of plaintext)
    number      = 0, 1, … in 11 bytes, big endian
    flag        = 0x01 for the last chunk, 0x00 for all before it

Only the last chunk may be short, and it is empty only when there is no plaintext at all.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable
from typing import TYPE_CHECKING, BinaryIO

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from archiver.age.context import Context, ObjectKind, demand_context
from archiver.age.feed import Feed
from archiver.age.primitives import hkdf
from archiver.errors import HeaderError, PayloadError, UsageError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

    from archiver.age.protocols import Identity

CHUNK = 64 * 1024
NONCE_SIZE = 16

_TAG = 16
SEALED_CHUNK = CHUNK + _TAG
_BLOCK = 8 * SEALED_CHUNK
"""Bytes read from the source at once."""


def payload_cipher(file_key: bytes, nonce: bytes) -> ChaCha20Poly1305:
    return ChaCha20Poly1305(hkdf(file_key, salt=nonce, info=b"payload"))


def read_nonce(feed: Feed) -> bytes:
    """The payload's nonce; `HeaderError` if the file ends before it, as age's test vectors have it."""
    nonce = feed.take(NONCE_SIZE)
    if len(nonce) < NONCE_SIZE:
        raise HeaderError("the file ends before its payload begins")
    return nonce


def opens_first_chunk(feed: Feed, file_key: bytes) -> bool:
    """Whether the payload begins as one under this file key does; only to say what is wrong with a header."""
    cipher = payload_cipher(file_key, feed.take(NONCE_SIZE))
    sealed = feed.take(SEALED_CHUNK)
    for last in (False, True):
        try:
            cipher.decrypt(_chunk_nonce(0, last), sealed, None)
        except InvalidTag:
            continue
        return True
    return False


def _chunk_nonce(number: int, last: bool) -> bytes:
    return number.to_bytes(11, "big") + (b"\1" if last else b"\0")


class ChunkWriter:
    """Seals what is written in chunks and hands each to `out`; holds back at most one chunk.

    `sha256` (None without `digest`) and `length` are those of the payload so far, the nonce included.
    """

    def __init__(
        self, cipher: ChaCha20Poly1305, nonce: bytes, out: Callable[[bytes], object], *, digest: bool = True
    ) -> None:
        self._cipher = cipher
        self._out = out
        self._held = bytearray()
        self._number = 0
        self._open = True
        self.sha256 = hashlib.sha256() if digest else None
        self.length = 0
        self._emit(nonce)

    def write(self, data: bytes | bytearray | memoryview) -> int:
        """Seal as many bytes as can be; a chunk goes out once it is known not to be the last."""
        self._refuse_closed()
        view = memoryview(data).cast("B")
        size = len(view)
        if self._held:
            missing = CHUNK - len(self._held)
            self._held += view[:missing]
            view = view[missing:]
            if not view:
                return size
            self._seal(self._held, last=False)
            self._held = bytearray()
        whole = max(len(view) - 1, 0) // CHUNK * CHUNK
        for at in range(0, whole, CHUNK):
            self._seal(view[at : at + CHUNK], last=False)
        self._held += view[whole:]
        return size

    def close(self) -> None:
        """Seal the last chunk; nothing can be written after it."""
        self._refuse_closed()
        self._seal(self._held, last=True)
        self._open = False

    def _seal(self, chunk: bytearray | memoryview, *, last: bool) -> None:
        sealed = self._cipher.encrypt(_chunk_nonce(self._number, last), chunk, None)
        self._number += 1
        self._emit(sealed)

    def _emit(self, data: bytes) -> None:
        if self.sha256 is not None:
            self.sha256.update(data)
        self.length += len(data)
        self._open = False  # a file whose output failed half-way must not get an end
        self._out(data)
        self._open = True

    def _refuse_closed(self) -> None:
        if not self._open:
            raise UsageError("the age file was closed, or writing it has failed: nothing can be added")


class Unsealer(io.BufferedIOBase, BinaryIO):
    """The plaintext of an age file as a binary stream that gives out authenticated bytes only.

    `read(n)` returns fewer than `n` bytes only at the proven end, so a short answer never hides a truncated
    file; `read1(n)` returns what is ready. `PayloadError` on the first chunk that is not authentic,
    on a missing or empty last chunk and on anything after it; the stream stays failed from then on.
    Closing it leaves the source open: that belongs to whoever opened it.
    """

    def __init__(
        self,
        feed: Feed,
        cipher: ChaCha20Poly1305,
        nonce: bytes,
        *,
        name: str,
        fingerprints: tuple[str, ...],
        unnamed: int = 0,
        contexts: tuple[Context, ...] = (),
        digest: bool = True,
        identity: Identity,
        first: int = 0,
    ) -> None:
        """`first` is the number of the chunk that `feed` begins with."""
        super().__init__()
        self._name = name
        self.fingerprints = fingerprints
        """What the authenticated header says of its recipients; empty if it has no hint."""
        self.unnamed = unnamed
        """How many stanzas the authenticated header has beyond the recipients that it names."""
        self._identity = identity
        self.contexts = contexts
        """The contexts that the authenticated header was sealed in for KMS; empty where it was not."""
        self._feed = feed
        self._cipher = cipher
        self._number = first
        self._saw_last = False
        self._ended = False
        self._failure: str | None = None
        self._plain = memoryview(bytearray())
        """Room for the largest block so far, used again; only `_ready`, a part of it, is authentic."""
        self._ready = self._plain[:0]
        self._sha256 = hashlib.sha256(nonce) if digest else None
        self._length = len(nonce)

    @property
    def name(self) -> str:
        """What errors call the file."""
        return self._name

    @property
    def opened_by(self) -> str:
        """Fingerprint of the identity that opened it."""
        return self._identity.fingerprint

    def demand_context(self, run: str, task: str, kind: ObjectKind) -> None:
        """`ContextMismatchError` if the header says that it was sealed as another object than this."""
        demand_context(self.contexts, run, task, kind, where=self._name)

    @property
    def payload_sha256(self) -> str:
        """SHA-256 (hex) of the payload, nonce and chunks; `PayloadError` before the end was read.

        `UsageError` if the file was opened without a digest.
        """
        self._demand_end()
        if self._sha256 is None:
            raise UsageError(f"{self._name} was opened without a digest of its payload")
        return self._sha256.hexdigest()

    @property
    def payload_length(self) -> int:
        """Bytes of the payload, nonce and chunks; `PayloadError` before the end was read."""
        self._demand_end()
        return self._length

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1, /) -> bytes:
        """Exactly `size` bytes, or all that is left; fewer only at the end of an intact file."""
        wanted = -1 if size is None else size
        out = io.BytesIO()
        while wanted:
            piece = self._piece(wanted)
            if not piece:
                break
            out.write(piece)
            wanted -= len(piece) if wanted > 0 else 0
        return out.getvalue()

    def read1(self, size: int = -1, /) -> bytes:
        """Up to `size` bytes of one block; `b""` only at the end of an intact file."""
        return bytes(self._piece(size)) if size else b""

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Fill `buffer` as `read` would, without memory of its own: the fastest way for large amounts."""
        room = memoryview(buffer).cast("B")
        done = 0
        while done < len(room):
            piece = self._piece(len(room) - done)
            if not piece:
                break
            room[done : done + len(piece)] = piece
            done += len(piece)
        return done

    def _piece(self, limit: int) -> memoryview:
        """The next bytes, up to `limit` unless it is negative, good until the next call; empty at the end."""
        if self.closed:
            raise ValueError("read of a closed file")
        while not (self._ready or self._ended):
            if self._failure is not None:
                raise PayloadError(f"{self._name} {self._failure}")
            self._fill()
        cut = len(self._ready) if limit < 0 else limit
        piece, self._ready = self._ready[:cut], self._ready[cut:]
        return piece

    def _fill(self) -> None:
        """Open the next block; the chunks before a bad one can still be read, then the stream fails."""
        self._failure = "failed while it was read"  # stays if the source raises
        block = self._feed.take(_BLOCK)
        self._failure = None
        if self._sha256 is not None:
            self._sha256.update(block)
        self._length += len(block)
        if len(self._plain) < len(block):  # a record needs little, and many are opened
            self._plain = memoryview(bytearray(len(block)))
        view = memoryview(block)
        end = 0
        for at in range(0, len(view), SEALED_CHUNK):
            sealed = view[at : at + SEALED_CHUNK]
            self._failure = self._open_chunk(sealed, self._plain[end : end + len(sealed) - _TAG])
            if self._failure is not None:
                break
            end += len(sealed) - _TAG
        self._ready = self._plain[:end]
        if self._failure is None and len(view) < _BLOCK:
            self._ended = self._saw_last
            self._failure = None if self._ended else "ends without its last chunk: it was cut off"

    def _open_chunk(self, sealed: memoryview, room: memoryview) -> str | None:
        """Decrypt one chunk into `room`; returns what is wrong with it, and then nothing in `room` counts."""
        if self._saw_last:
            return "has data after its last chunk"
        if len(sealed) < SEALED_CHUNK or not self._decrypt(sealed, room, last=False):
            self._saw_last = self._decrypt(sealed, room, last=True)
            if not self._saw_last:
                return f"was changed or cut off in chunk {self._number} of its payload"
        if not room and self._number:
            return "has an empty last chunk after others"
        self._number += 1
        return None

    def _decrypt(self, sealed: memoryview, room: memoryview, *, last: bool) -> bool:
        try:
            self._cipher.decrypt_into(_chunk_nonce(self._number, last), sealed, None, room)
        except InvalidTag:
            return False
        return True

    def _demand_end(self) -> None:
        if not self._ended:
            raise PayloadError(f"{self._name} was not read to its end, so its payload has no digest yet")
