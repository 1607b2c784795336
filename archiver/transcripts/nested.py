"""Files of many conversations as one stream of items: lines, or elements of an array, each with messages.

{"task": 1, "traj": [{"role": …}, {"role": …}]}   →   [{"task": 1, "traj": []}]
                                                      {"role": …}
                                                      {"role": …}

An element becomes an array of itself without its messages, and they follow it. An element whose place for
them holds anything but objects stays whole in its array, so nothing is ever taken for what it is not.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

from archiver import jsonio
from archiver.errors import InvalidDocumentError
from archiver.transcripts import jsontext
from archiver.transcripts.dialect import Path
from archiver.transcripts.places import at, put


def split(pairs: Iterable[tuple[bytes, Any]], path: Path) -> Iterator[tuple[bytes, Any]]:
    """Elements, each as text and value, as the items that they are; `path` leads to their messages."""
    for line, value in pairs:
        messages = at(value, path) if isinstance(value, dict) else None
        cut = None
        if isinstance(messages, list) and all(isinstance(message, dict) for message in messages):
            with suppress(RecursionError):  # what is nested too deeply to be written stays where it is
                cut = _cut(line, value, messages, path)
        if cut is None:
            yield b"[" + line.strip(jsontext.BLANKS) + b"]", [value]
            continue
        shell, texts = cut
        yield b"[" + shell + b"]", [put(value, path, [])]
        yield from zip(texts, at(value, path), strict=True)


def _cut(line: bytes, value: Any, messages: list[Any], path: Path) -> tuple[bytes, list[bytes]]:
    """The element's text without its messages, and theirs: as they stand, or else written anew."""
    for text, texts in _forms(line, value, messages):
        before, found, after = text.partition(b"[" + b",".join(texts) + b"]")
        shell = before + b"[]" + after
        if found and at(jsonio.loads(shell), path) == []:
            return shell, texts
    exact = jsonio.exact(line)
    return jsonio.again(put(exact, path, [])), [jsonio.again(message) for message in at(exact, path)]


def _forms(line: bytes, value: Any, messages: list[Any]) -> Iterator[tuple[bytes, list[bytes]]]:
    """Ways in which the texts of messages may stand in that of their element, the likely ones first."""
    texts = [jsonio.again(message) for message in messages]
    yield line.strip(jsontext.BLANKS), texts
    compact = jsontext.compact(line, value)
    yield compact, texts
    yield compact, [jsontext.escaped(message) for message in messages]


def joined(lines: Iterable[bytes], path: Path) -> Iterator[bytes]:
    """The elements that `split` made items of, as JSON texts; `InvalidDocumentError` where one is missing."""
    shell: bytes | None = None
    messages: list[bytes] = []
    for line in lines:
        if line.startswith(b"["):
            if shell is not None:
                yield _filled(shell, messages, path)
            shell, messages = line, []
        elif shell is None:
            raise InvalidDocumentError(
                "a message stands ahead of the element it belongs to",
                remedy="restore the part from an earlier checkpoint",
            )
        else:
            messages.append(line)
    if shell is not None:
        yield _filled(shell, messages, path)


def _filled(shell: bytes, messages: list[bytes], path: Path) -> bytes:
    text = shell.strip(jsontext.BLANKS)[1:-1]
    if not messages:
        return text
    element = jsonio.exact(text)
    if at(element, path) != []:
        raise InvalidDocumentError(
            "an element has no empty array for its messages",
            remedy="restore the part from an earlier checkpoint",
        )
    inside = b"[" + b",".join(messages) + b"]"
    place = jsonio.dumps(path[-1]) + b":[]"
    if text.count(place) == 1 and b"\\u" not in text:  # the one array there is, so numbers keep their digits
        return text.replace(place, place[:-2] + inside)
    mark = secrets.token_hex(16)
    return jsonio.dumps(put(element, path, mark)).replace(f'"{mark}"'.encode(), inside)
