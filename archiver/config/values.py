"""How values are written: sizes, lengths of time, paths and lists."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field, PlainSerializer, StringConstraints

from archiver.config.paths import absolute
from archiver.errors import ConfigError, UsageError

_UNITS = {"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
_UNITS |= {"kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_LONGEST = 100 * 366 * 86_400


def parse_size(value: object) -> object:
    """`"64MiB"`, `"2 GB"` or a number of bytes."""
    if not isinstance(value, str):
        return no_truth(value)
    match = re.fullmatch(r"\s*(\d{1,18})\s*([A-Za-z]*)\s*", value, re.ASCII)
    if match is None or match[2] not in _UNITS:
        raise ValueError(f"{value!r} is not a size; write it as 64MiB, 2GiB or a number of bytes")
    return int(match[1]) * _UNITS[match[2]]


def no_truth(value: object) -> object:
    """The value, unless it is true or false: neither is a number, though Python counts them as 1 and 0."""
    if isinstance(value, bool):
        raise ValueError(f"{str(value).lower()} is not a number")  # noqa: TRY004 - pydantic explains ValueError
    return value


def size_text(size: int) -> str:
    """The size in the largest unit that holds it exactly: `64MiB`."""
    for unit in ("TiB", "GiB", "MiB", "KiB"):
        if size and size % _UNITS[unit] == 0:
            return f"{size // _UNITS[unit]}{unit}"
    return str(size)


def duration(text: str) -> timedelta:
    """`"7d"`, `"36h"`, `"90m"`, `"10s"`, `"2w"`; `ValueError` for anything else."""
    match = re.fullmatch(r"\s*(\d{1,10})\s*([smhdw])\s*", text, re.ASCII)
    if match is None or int(match[1]) * _SECONDS[match[2]] > _LONGEST:
        raise ValueError(f"{text!r} is not a length of time; write it as 7d, 36h, 90m or 10s")
    return timedelta(seconds=int(match[1]) * _SECONDS[match[2]])


def parse_duration(value: object) -> object:
    """A length of time as it stands in a file or variable; a bare number has no unit."""
    if isinstance(value, bool):
        value = str(value).lower()
    return duration(str(value)) if isinstance(value, str | int | float) else value


def duration_text(length: timedelta) -> str:
    """The length in the largest unit that holds it exactly: `7d`."""
    seconds = int(length.total_seconds())
    for unit in "dhm":
        if seconds and seconds % _SECONDS[unit] == 0:
            return f"{seconds // _SECONDS[unit]}{unit}"
    return f"{seconds}s"


def listed(value: object) -> object:
    """A list in a variable or flag is one text with commas between its elements."""
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    return value


def json_text(value: object) -> object:
    """Tables in a variable are one text of JSON."""
    if isinstance(value, str):
        try:
            return json.loads(value)
        except (ValueError, RecursionError) as error:
            raise ValueError("it is not JSON") from error
    return value


def _placed(value: object) -> object:
    """An absolute path; `~` is the home folder. Paths of the file are absolute before they come here."""
    if not isinstance(value, str | Path):
        return value
    if not str(value) or "\0" in str(value):
        raise ValueError(f"{str(value)!r} is not a path")
    return _absolute(value)


def _absolute(value: str | Path) -> Path:
    try:
        return absolute(value)
    except UsageError as error:
        raise ValueError(str(error)) from error


def place_of_store(url: str) -> str:
    """A store address with a scheme as it is; a folder as an absolute path."""
    if url.lower().startswith("s3:") and "://" not in url:
        raise ConfigError(
            f"{url!r} is not the address of a bucket",
            remedy="write it as s3://bucket/prefix; a folder of that name is ./" + url,
        )
    return url if "://" in url else str(absolute(url))


def _store_place(value: object) -> object:
    if not isinstance(value, str) or not value:
        return value
    if value.lower().startswith("s3:") and not value.lower().startswith("s3://"):
        raise ValueError(f"{value!r} is not the address of a bucket; write it as s3://bucket/prefix")
    return value if "://" in value else str(_absolute(value))


Count = Annotated[int, BeforeValidator(no_truth), Field(ge=1)]
Size = Annotated[int, BeforeValidator(parse_size), Field(ge=1), PlainSerializer(size_text, when_used="json")]
Duration = Annotated[
    timedelta, BeforeValidator(parse_duration), PlainSerializer(duration_text, when_used="json")
]
Place = Annotated[Path, BeforeValidator(_placed)]
Places = Annotated[tuple[Place, ...], BeforeValidator(listed)]
Words = Annotated[
    tuple[Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)], ...],
    BeforeValidator(listed),
]
StoreUrl = Annotated[str, Field(min_length=1), BeforeValidator(_store_place)]
