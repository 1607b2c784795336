"""An age file of which parts are read: chunks are found by arithmetic, and each has a tag of its own.

chunk n begins at    length of the header + 16 (nonce) + n × 65552
byte p lies in       chunk p ÷ 65536, at p mod 65536 of its plaintext
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import BinaryIO

from archiver.age import hints, kms, stream
from archiver.age.container import OpenedHeader, open_header
from archiver.age.context import ObjectKind, demand_context
from archiver.age.feed import Feed
from archiver.age.protocols import Identity
from archiver.age.stream import CHUNK, NONCE_SIZE, SEALED_CHUNK, Unsealer

Open = Callable[[int], AbstractContextManager[BinaryIO]]
"""Opens the file at an offset."""


class Parts:
    """An age file whose header was opened; `at` gives its plaintext from any byte on.

    What is read is authentic, and lies where it was sealed; that the file is whole nobody has looked at.
    """

    def __init__(self, opened: OpenedHeader, open_file: Open, name: str) -> None:
        self._opened = opened
        self._open = open_file
        self._name = name
        self._cipher = stream.payload_cipher(opened.file_key, opened.nonce)
        self._begin = len(opened.header.marshal()) + NONCE_SIZE
        self._contexts = kms.contexts(opened.header)

    @property
    def opened_by(self) -> str:
        """Fingerprint of the identity that opened it."""
        return self._opened.identity.fingerprint

    def demand_context(self, run: str, task: str, kind: ObjectKind) -> None:
        """`ContextMismatchError` if the header says that it was sealed as another object than this."""
        demand_context(self._contexts, run, task, kind, where=self._name)

    @contextmanager
    def at(self, place: int) -> Iterator[BinaryIO]:
        """The plaintext from byte `place` on. Reading raises `PayloadError` as an `Unsealer` does."""
        first, within = divmod(place, CHUNK)
        with self._open(self._begin + first * SEALED_CHUNK) as source:
            opened = Unsealer(
                Feed(source),
                self._cipher,
                self._opened.nonce,
                name=self._name,
                fingerprints=hints.hint(self._opened.header),
                contexts=self._contexts,
                digest=False,
                identity=self._opened.identity,
                first=first,
            )
            opened.read(within)
            yield opened


def open_parts(identities: Iterable[Identity], open_file: Open, *, name: str = "the age file") -> Parts:
    """Open the header alone, with the first identity that fits; raises as `unseal` does."""
    with open_file(0) as source:
        return Parts(open_header(Feed(source), identities, name), open_file, name)
