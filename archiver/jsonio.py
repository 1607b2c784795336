"""The one place where JSON becomes values and values become JSON.

orjson does the work; the standard library takes over for what real transcripts hold besides: lone surrogates
in `\\uXXXX` escapes and, where asked for, integers beyond 64 bits. `NaN` and infinities are refused.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, NoReturn

import orjson

from archiver.errors import NotSerialisableError

_COMPACT = (",", ":")
_MAX_DEPTH = 900
_LONG_NUMBER = re.compile(rb"[0-9]{19}")
_PLAIN = orjson.OPT_PASSTHROUGH_SUBCLASS | orjson.OPT_PASSTHROUGH_DATACLASS


def loads(data: bytes | str) -> Any:
    """Parse one JSON text; raises `ValueError` (with `pos` where known) on anything else."""
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        text = data.decode("utf-8") if isinstance(data, bytes) else data
        try:
            return json.loads(text, parse_constant=_refuse_constant)
        except RecursionError:
            raise ValueError("nested too deeply") from None


def exact(data: bytes) -> Any:
    """As `loads`, with integers beyond 64 bits kept whole: for a text that is going to be written again.

    orjson makes floats of them; looking for long numbers costs as much as parsing, so `loads` does not.
    """
    if _LONG_NUMBER.search(data) is None:
        return loads(data)
    try:
        return json.loads(data, parse_constant=_refuse_constant)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def dumps(value: Any) -> bytes:
    """Serialise one JSON value compactly; raises `NotSerialisableError` with the path of what has no form."""
    try:
        data = orjson.dumps(value, option=_PLAIN)
    except (TypeError, orjson.JSONEncodeError):
        check(value)
        # Only lone surrogates and integers beyond 64 bits are left: legal in JSON, so keep them, escaped.
        return json.dumps(
            value, ensure_ascii=True, separators=_COMPACT, allow_nan=False, default=str
        ).encode()
    if b"null" in data:  # orjson writes NaN as null, which would lose the value in silence
        check(value)
    return data


def again(value: Any) -> bytes:
    """Serialise a value that `loads` gave: nothing in it needs a check, so it costs less than `dumps`."""
    try:
        return orjson.dumps(value)
    except (TypeError, orjson.JSONEncodeError):
        return json.dumps(value, ensure_ascii=True, separators=_COMPACT).encode()


def canonical(value: Any) -> bytes:
    """Serialise with sorted keys: the same value always gives the same bytes."""
    try:
        data = orjson.dumps(value, option=orjson.OPT_SORT_KEYS | _PLAIN)
    except (TypeError, orjson.JSONEncodeError):
        check(value)
        return json.dumps(value, ensure_ascii=True, separators=_COMPACT, sort_keys=True, default=str).encode()
    if b"null" in data:  # as in `dumps`
        check(value)
    return data


def pretty(value: Any) -> bytes:
    """Serialise for people: sorted keys, two spaces of indentation, a line end."""
    check(value)
    try:
        return orjson.dumps(
            value, option=orjson.OPT_SORT_KEYS | orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
        )
    except (TypeError, orjson.JSONEncodeError):
        return json.dumps(value, ensure_ascii=True, indent=2, sort_keys=True, default=str).encode() + b"\n"


def check(value: Any) -> None:
    """Raise `NotSerialisableError` for the first value that has no JSON form."""
    try:
        _check(value, "$", 0)
    except RecursionError:
        raise NotSerialisableError("the value is nested too deeply to be written", path="$") from None


def _check(value: Any, path: str, depth: int) -> None:
    if depth > _MAX_DEPTH:
        raise NotSerialisableError(f"value at {path} is nested deeper than {_MAX_DEPTH} levels", path=path)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise NotSerialisableError(f"value at {path} is {value}, which JSON cannot hold", path=path)
    elif isinstance(value, Mapping):
        _check_mapping(value, path, depth)
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            _check(item, f"{path}[{index}]", depth + 1)
    elif value is not None and not isinstance(value, str | bool | int | datetime):
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
