"""The dictionary of an incremental bundle: the end of what its base says of the run.

A turn alone takes two to three times what it takes behind those before it. So a small increment is compressed
as if the text of its base had been said before. Which text that is follows from the tables alone: the members
of the base's table below `transcript/`, in the order of their paths, then those that each bundle has anew.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeVar

from archiver.model.manifest import MOST_DICTIONARY
from archiver.model.member import Member
from archiver.pack import tar
from archiver.pack.frames import CONTENT

_TRANSCRIPT: Final = "transcript/"
_STATE: Final = ("effects.jsonl", "evidence.jsonl", "receipt.json", "checkpoint.json")
"""The nearest to what follows is the last."""
_MOST_TIMES: Final = 24
"""Zstandard makes its tables as large as a dictionary wants them: behind a tiny one much becomes larger."""
T = TypeVar("T")


def is_text(path: str) -> bool:
    """Whether dictionaries are made of such a member."""
    return path.startswith(_TRANSCRIPT) or path in _STATE


def is_small(members: Iterable[tuple[str, int]]) -> bool:
    """Whether members of these paths and sizes fill no more than one frame, as a dictionary demands."""
    return len(tar.END) + sum(tar.length(path, size) for path, size in members) <= CONTENT


def pays(members: Sequence[Member], text: int) -> bool:
    """Whether members can be compressed behind so many bytes of text, and come out smaller for it."""
    small = is_small((one.path, one.size) for one in members)
    return small and 0 < sum(one.size for one in members) <= _MOST_TIMES * text


def lent(texts: Mapping[str, tuple[int, T]], count: int) -> list[T]:
    """Those of the texts (by path: size and what to give) that have the last `count` bytes, in order.

    Less where they do not have so many.
    """
    found: list[T] = []
    left = count
    parts = sorted((path for path in texts if path.startswith(_TRANSCRIPT)), reverse=True)
    for path in (*(name for name in reversed(_STATE) if name in texts), *parts):
        if left <= 0:
            break
        size, one = texts[path]
        found.append(one)
        left -= size
    return found[::-1]


def of(members: Iterable[Member]) -> bytes:
    """The dictionary of what is based on a bundle of these members; empty where there can be none.

    So where a text cannot be read any more as it was: it is a help, and nothing is missing without it.
    """
    texts = lent({one.path: (one.size, one) for one in members if is_text(one.path)}, MOST_DICTIONARY)
    read = [_content(one) for one in texts]
    return b"" if None in read else joined(part for part in read if part is not None)


def joined(texts: Iterable[bytes], count: int = MOST_DICTIONARY) -> bytes:
    """The last bytes of texts behind each other, `count` at most."""
    return b"".join(texts)[-count:]


class End:
    """The part of a text that a dictionary can be made of; the text comes in pieces."""

    def __init__(self) -> None:
        self._held = bytearray()

    def write(self, piece: bytes | memoryview) -> None:
        """What comes next."""
        self._held += piece
        if len(self._held) > 2 * MOST_DICTIONARY:
            del self._held[:-MOST_DICTIONARY]

    @property
    def data(self) -> bytes:
        """The end of all that came."""
        return bytes(memoryview(self._held)[-MOST_DICTIONARY:])


def _content(member: Member) -> bytes | None:
    try:
        data = member.source if isinstance(member.source, bytes) else member.source.read_bytes()
    except OSError:
        return None
    return data if hashlib.sha256(data).hexdigest() == member.sha256 else None
