"""JSON texts where a value alone is not enough: several on one line, keys given twice, blanks between tokens.

A text that is taken over is copied byte for byte; only what cannot stay as it is gets written anew.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NoReturn

from archiver import jsonio

BLANKS = b" \t\r\n"

_TOKENS = re.compile(rb'"[^"\\]*+(?:\\[\x00-\xff][^"\\]*+)*+"|[^" \t\r\n]++')
_LATE_COLON = re.compile(rb'"[ \t\r\n]+:')
_ESCAPED_ASCII = re.compile(rb"\\u00[2-7]")
_TEXT_BLANKS = re.compile(r"[ \t\r\n]*+")


class _TwiceError(Exception):
    """A key stands twice in one object."""


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _pairs_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise _TwiceError
    return made


_decode = json.JSONDecoder(
    parse_constant=_refuse, parse_int=jsonio.integer, parse_float=jsonio.decimal
).raw_decode
_decode_once = json.JSONDecoder(
    parse_constant=_refuse, parse_int=jsonio.integer, object_pairs_hook=_pairs_once
).decode


class Objects:
    """The objects and arrays that a text holds from `start` on, read one after the other as far as they go.

    Gives (start, end, value), in characters. Afterwards `rest` is where what follows them starts and `failed`
    where reading that failed; both are the length of the text when nothing follows.
    """

    def __init__(self, text: str, start: int = 0) -> None:
        self._text = text
        self.rest = self.failed = start

    def __iter__(self) -> Iterator[tuple[int, int, Any]]:
        text = self._text
        start = self._next(self.rest)
        while start < len(text) and text[start] in "{[":
            try:
                value, end = _decode(text, start)
            except json.JSONDecodeError as error:
                self.failed = error.pos
                return
            except RecursionError:
                if not jsonio.sound(text[start:]):
                    return
                value, end = jsonio.loads(text[start:]), len(text)
            except ValueError:
                return
            yield start, end, value
            start = self._next(end)

    def _next(self, end: int) -> int:
        self.rest = self.failed = _skip(self._text, end)
        return self.rest


def _skip(text: str, start: int) -> int:
    found = _TEXT_BLANKS.match(text, start)
    return found.end() if found else start


def checked(line: bytes, value: Any) -> bytes:
    """The line as it is, unless an object in it has a key twice: then the text of `value`, written anew.

    A decoder keeps the last value of such a key and hides the first from whoever looks at values. A line that
    is nested too deeply to be written stays as it is.
    """
    try:
        made = jsonio.again(value)
        return line if made == line or not _has_key_twice(line, made) else _rewritten(line)
    except RecursionError:
        return line


def compact(element: bytes, value: Any) -> bytes:
    """The element without blanks between tokens and else as it is; keys given twice as in `checked`."""
    return checked(b"".join(_TOKENS.findall(element)), value)


def lines_of(text: bytes, values: list[Any]) -> list[bytes] | None:
    """The elements of an array, each without blanks between tokens, in one go; None where that fails.

    `text` is what stands between the brackets. The elements are written anew from their values, as JavaScript
    or as Python writes. That is right if it equals `text` but for blanks: strings hold the blanks they hold
    in the value, and a key given twice would be missing.
    """
    squeezed = text.translate(None, BLANKS)
    for write in (jsonio.again, escaped):
        try:
            made = [write(value) for value in values]
        except RecursionError:
            return None
        if b",".join(made).translate(None, BLANKS) == squeezed:
            return made
    return None


def escaped(value: Any) -> bytes:
    """A value as Python writes it, compactly: all but ASCII escaped."""
    return json.dumps(value, separators=(",", ":")).encode()


def _has_key_twice(line: bytes, made: bytes) -> bool:
    """True when an object has a key twice; `made` is the value of `line` written compactly.

    Every key ends in `":`, and a string holds that sequence in the one as often as in the other. So an equal
    count proves that nothing went missing on the way through the value, unless an escape spells one of the
    two characters or blanks stand before a colon; such a line is decoded once more, exactly.
    """
    if (
        line.count(b'":') == made.count(b'":')
        and not (b"\\u00" in line and _ESCAPED_ASCII.search(line))
        and not _LATE_COLON.search(line)
    ):
        return False
    try:
        _decode_once(line.decode())
    except _TwiceError:
        return True
    return False


def _rewritten(line: bytes) -> bytes:
    return jsonio.dumps(jsonio.exact(line))
