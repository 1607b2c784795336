"""Telling words as base64 writes them, at each of its three alignments."""

from __future__ import annotations

import base64
import functools
from collections.abc import Iterable, Iterator
from typing import Final

from archiver.redact.engine import Expression

_CASED: Final = ("pass", "token", "secret", "auth", "credential", "bearer ", "basic ")
_AS_THEY_ARE: Final = (
    *("apikey", "api-key", "api_key", "ApiKey", "Api-Key", "AccessKey", "accessKey", "AccountKey"),
    *(f"{sign}{key}{after}" for sign in "_-" for key in ("key", "KEY") for after in '=:" '),
    *("privateKey", "PrivateKey", "BEGIN ", "PRIVATE KEY", "login ", "pwd=", "Pwd=", "PWD="),
    *("sig=", "ignature=", "Cookie", "cookie", "session"),
    *(f"{letter}://" for letter in "splbvaxe"),
)
_TWICE: Final = ("token", "TOKEN", "secret", "SECRET", "passw", "PASSW", "earer ", "PRIVATE KEY", "api_key")
"""Words that are looked for in base64 of base64 too."""
WORDS: Final = tuple(
    word.encode()
    for word in (
        *_AS_THEY_ARE,
        *(cased for word in _CASED for cased in (word, word.capitalize(), word.upper())),
    )
)
_LEFT: Final = tuple(bytes([bits]) for bits in range(16))
_RIGHT: Final = tuple(bytes([bits << 4]) for bits in range(8))
"""All that bytes of ASCII beside a word can add to its first and last character."""
_IN_ONE: Final = 60
_SHORTEST: Final = 4


def expressions(more: Iterable[bytes]) -> list[Expression]:
    """Triggers for the words of this module and for more, such as the prefixes of formats."""
    twice = (text for word in _TWICE for text in _certain(word))
    words = dict.fromkeys(word for word in (*WORDS, *more, *twice) if len(word) >= _SHORTEST)
    forms = sorted({form for word in words for form in _forms(word[:12])})
    groups = (forms[at : at + _IN_ONE] for at in range(0, len(forms), _IN_ONE))
    return [Expression(b"(?:" + b"|".join(group) + b")") for group in groups]


def _certain(word: str) -> Iterator[bytes]:
    """The characters that base64 gives a word, whatever stands beside it."""
    for before in range(3):
        text = base64.b64encode(b"\0" * before + word.encode())
        yield text[-(-8 * before // 6) : 8 * (before + len(word)) // 6]


def _forms(word: bytes) -> Iterator[bytes]:
    """A word at each alignment; a character that holds bits of a neighbour may be one of several."""
    for before in range(3):
        after = -(before + len(word)) % 3
        text = base64.b64encode(b"a" * before + word + b"a" * after)
        first, last = 8 * before // 6, -(-8 * (before + len(word)) // 6)
        yield b"".join(
            (
                _first(word[:1], before) if before else _one_of(text[first : first + 1]),
                *(_one_of(text[at : at + 1]) for at in range(first + 1, last - 1)),
                _last(word[-1:], after) if after else _one_of(text[last - 1 : last]),
            )
        )


@functools.cache
def _first(byte: bytes, before: int) -> bytes:
    """The character that holds the end of so many bytes and the beginning of this one."""
    at = 8 * before // 6
    return _one_of(base64.b64encode(left * before + byte + b"aa")[at] for left in _LEFT)


@functools.cache
def _last(byte: bytes, after: int) -> bytes:
    """The character that holds the end of a byte and the beginning of so many after it."""
    return _one_of(base64.b64encode(b"a" * (2 - after) + byte + right * after)[3 - after] for right in _RIGHT)


def _one_of(chars: Iterable[int]) -> bytes:
    """A pattern of one character, in both alphabets."""
    return _class(frozenset(chars))


@functools.cache
def _class(chars: frozenset[int]) -> bytes:
    shown = {bytes([char]) for char in chars}
    if b"+" in shown:
        shown.add(b"-")
    if b"/" in shown:
        shown.add(b"_")
    if len(shown) == 1:
        return next(iter(shown))
    return b"[" + b"".join(sorted(b"\\" + char if char in b"-+/" else char for char in shown)) + b"]"
