"""The one place where JSON becomes values and values become JSON.

orjson does the work; the standard library takes over for what real transcripts hold besides: lone surrogates
in `\\uXXXX` escapes and, where asked for, integers beyond 64 bits. `NaN` and infinities are refused. What is
sound JSON but has no Python value (numbers too long, texts nested too deeply) is held as its text and written
as it was.
"""

from __future__ import annotations

import json
import math
import re
import secrets
from collections.abc import Mapping
from datetime import datetime
from typing import Any, NoReturn

import orjson

from archiver.errors import NotSerialisableError

_COMPACT = (",", ":")
_MAX_DEPTH = 900
_LONG_NUMBER = re.compile(rb"[0-9]{19}")
_EACH = 6
_SAMPLED = re.compile(rb"[0-9]{3}")
"""What every sixth byte of a text shows wherever it has 19 digits in a row."""
_LONGEST_INTEGER = 640
"""Digits: the least that an interpreter may be told to refuse to count with."""
_TOKEN = re.compile(
    r"[ \t\r\n]*+"
    r'("(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+"'
    r"|-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?|true|false|null|[{}\[\],:])"
)
_ENDS = {"}": ("next", "key or end"), "]": ("next", "value or end")}
_PLAIN = orjson.OPT_PASSTHROUGH_SUBCLASS | orjson.OPT_PASSTHROUGH_DATACLASS


def loads(data: bytes | str) -> Any:
    """Parse one JSON text; raises `ValueError` (with `pos` where known) on anything else."""
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return _decoded(data)


def exact(data: bytes) -> Any:
    """As `loads`, with integers beyond 64 bits kept whole: for a text that is going to be written again.

    orjson makes floats of them; looking for long numbers costs time, so `loads` does not.
    """
    if _SAMPLED.search(data[::_EACH]) is None or _LONG_NUMBER.search(data) is None:
        return loads(data)
    return _decoded(data)


def _decoded(data: bytes | str) -> Any:
    text = data.decode("utf-8") if isinstance(data, bytes) else data
    try:
        return json.loads(text, parse_constant=_refuse_constant, parse_int=integer, parse_float=decimal)
    except RecursionError:
        if sound(text):
            return orjson.Fragment(text)
        raise ValueError("not JSON, and nested too deeply to say where") from None


def integer(text: str) -> Any:
    """The integer of a JSON text; one that is too long to be counted with is held as its text."""
    return int(text) if len(text) <= _LONGEST_INTEGER else orjson.Fragment(text)


def decimal(text: str) -> Any:
    """The float of a JSON text; one beyond all floats is held as its text."""
    value = float(text)
    return value if math.isfinite(value) else orjson.Fragment(text)


def sound(text: str) -> bool:
    """True for one JSON text (RFC 8259) of any depth; nothing is made of it."""
    stack: list[str] = []
    want, place = "value", 0
    while found := _TOKEN.match(text, place):
        place = found.end()
        piece = found[1][0]
        if piece in "{[" and want in ("value", "value or end"):
            stack.append(piece)
            want = "key or end" if piece == "{" else "value or end"
        elif piece in "}]" and stack and stack[-1] + piece in ("{}", "[]") and want in _ENDS[piece]:
            stack.pop()
            want = "next"
        elif piece == "," and want == "next" and stack:
            want = "key" if stack[-1] == "{" else "value"
        elif piece == ":" and want == "colon":
            want = "value"
        elif piece == '"' and want in ("key", "key or end"):
            want = "colon"
        elif piece not in "{}[],:" and want in ("value", "value or end"):
            want = "next"
        else:
            return False
    return want == "next" and not stack and not text[place:].strip(" \t\r\n")


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def dumps(value: Any) -> bytes:
    """Serialise one JSON value compactly; raises `NotSerialisableError` with the path of what has no form."""
    try:
        data = orjson.dumps(value, option=_PLAIN)
    except (TypeError, orjson.JSONEncodeError):
        check(value)
        # Only lone surrogates and integers beyond 64 bits are left: legal in JSON, so keep them, escaped.
        return _dumped(value, separators=_COMPACT)
    if b"null" in data:  # orjson writes NaN as null, which would lose the value in silence
        check(value)
    return data


def taken(value: Any) -> bytes:
    """Serialise what a program hands over while it waits: as `dumps`, in one pass over native code.

    Objects of SDKs become what they would send. A number that JSON cannot hold becomes null, because to look
    for it would cost more than all the rest.
    """
    try:
        return orjson.dumps(value, default=_sent)
    except (TypeError, orjson.JSONEncodeError):
        pass
    try:
        return dumps(_all_sent(value, 0))
    except RecursionError:
        raise NotSerialisableError("the value is nested too deeply to be written", path="$") from None


def _sent(value: Any) -> Any:
    """What stands for an object of an SDK, or for any other pydantic model.

    The SDKs of providers send what was set and no more: their APIs refuse a null in the place of the rest.
    """
    dump = getattr(value, "model_dump", None)
    if not callable(dump) or isinstance(value, type):
        raise TypeError
    if not hasattr(value, "to_dict"):
        return dump(mode="json")
    hidden = getattr(value, "__api_exclude__", None)
    return dump(mode="json", by_alias=True, exclude_unset=True, exclude=hidden)


def _all_sent(value: Any, depth: int) -> Any:
    """The same without objects of SDKs; what has no form at all stays, for `dumps` to tell its place."""
    if depth > _MAX_DEPTH:
        return value
    if isinstance(value, Mapping):
        return {key: _all_sent(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_all_sent(item, depth + 1) for item in value]
    try:
        return _sent(value)
    except Exception:  # of whatever kind: it is code of the object that was handed over
        return value


def again(value: Any) -> bytes:
    """Serialise a value that `loads` gave: nothing in it needs a check, so it costs less than `dumps`."""
    try:
        return orjson.dumps(value)
    except (TypeError, orjson.JSONEncodeError):
        return _dumped(value, separators=_COMPACT)


def held(value: Any) -> Any:
    """The value as its JSON text, in a fraction of the memory: `dumps` writes it as it is."""
    # A copy: orjson's own bytes lie in ten times the room that they need, and keep it.
    return orjson.Fragment(memoryview(dumps(value)).tobytes())


def _dumped(value: Any, **form: Any) -> bytes:
    """What the standard library writes, with texts that are held in their places."""
    held: list[str] = []
    mark = secrets.token_hex(16)

    def hold(inner: Any) -> str:
        if not isinstance(inner, orjson.Fragment):
            return str(inner)
        held.append(orjson.dumps(inner).decode())
        return f"{mark}{len(held) - 1}"

    text = json.dumps(value, ensure_ascii=True, allow_nan=False, default=hold, **form)
    if held:
        text = re.sub(f'"{mark}([0-9]+)"', lambda found: held[int(found[1])], text)
    return text.encode()


def canonical(value: Any, *, checked: bool = False) -> bytes:
    """Serialise with sorted keys: the same value always gives the same bytes.

    `checked` is for what came out of `loads`: no value in it can be without a JSON form.
    """
    try:
        data = orjson.dumps(value, option=orjson.OPT_SORT_KEYS | _PLAIN)
    except (TypeError, orjson.JSONEncodeError):
        check(value)
        return _dumped(value, separators=_COMPACT, sort_keys=True)
    if not checked and b"null" in data:  # as in `dumps`
        check(value)
    return data


def pretty(value: Any, *, sort: bool = True) -> bytes:
    """Serialise for people: keys sorted or in their order, two spaces of indentation, a line end."""
    check(value)
    order = orjson.OPT_SORT_KEYS if sort else 0
    try:
        return orjson.dumps(value, option=order | orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    except (TypeError, orjson.JSONEncodeError):
        return _dumped(value, indent=2, sort_keys=sort) + b"\n"


def check(value: Any) -> None:
    """Raise `NotSerialisableError` for the first value that has no JSON form."""
    try:
        _check(value, "$", 0)
    except RecursionError:
        raise NotSerialisableError("the value is nested too deeply to be written", path="$") from None


_PLAINEST = frozenset({str, int, bool})


def _check(value: Any, path: str, depth: int) -> None:
    if depth > _MAX_DEPTH:
        raise NotSerialisableError(f"value at {path} is nested deeper than {_MAX_DEPTH} levels", path=path)
    if value is None or type(value) in _PLAINEST:  # nearly all; the abstract types are slow to ask for
        return
    if isinstance(value, float):
        if not math.isfinite(value):
            raise NotSerialisableError(f"value at {path} is {value}, which JSON cannot hold", path=path)
    elif isinstance(value, Mapping):
        _check_mapping(value, path, depth)
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            _check(item, f"{path}[{index}]", depth + 1)
    elif value is not None and not isinstance(value, str | bool | int | datetime | orjson.Fragment):
        raise NotSerialisableError(
            f"value at {path} is of type {type(value).__name__}, which has no JSON form",
            path=path,
            remedy="convert it to text, numbers, lists and objects before the checkpoint",
        )


def _check_mapping(value: Mapping[Any, Any], path: str, depth: int) -> None:
    for key, item in value.items():
        if not isinstance(key, str):
            raise NotSerialisableError(
                f"object at {path} has a key of type {type(key).__name__}, not str", path=path
            )
        _check(item, f"{path}.{key}" if key.isidentifier() else f"{path}[{key!r}]", depth + 1)
