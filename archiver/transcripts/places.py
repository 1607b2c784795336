"""Values at paths inside an item."""

from __future__ import annotations

from typing import Any

from archiver.transcripts.dialect import Path


def at(value: Any, path: Path) -> Any:
    """The value at `path`, or None where the path leads nowhere."""
    for step in path:
        if isinstance(value, dict):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int) and 0 <= step < len(value):
            value = value[step]
        else:
            return None
    return value


def put(value: Any, path: Path, new: Any) -> Any:
    """`value` with `new` at `path`; only the containers on the way are copied, key order stays."""
    if not path:
        return new
    copy: Any = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = put(value[path[0]], path[1:], new)
    return copy
