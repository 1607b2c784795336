"""What stands where a secret stood: `[REDACTED:<kind>:<12 hex>]`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_PLACEHOLDER = re.compile(r"\[REDACTED:[a-z0-9]+(?:-[a-z0-9]+)*:[0-9a-f]{12}\]")
PLACEHOLDER = re.compile(_PLACEHOLDER.pattern.encode())


def make(kind: str, fingerprint: str) -> str:
    """The placeholder of a secret of this kind with this keyed fingerprint."""
    return f"[REDACTED:{kind}:{fingerprint}]"


def is_placeholder(text: str) -> bool:
    """True when the text is one placeholder and nothing else."""
    return _PLACEHOLDER.fullmatch(text) is not None


def contains_placeholder(value: Any) -> bool:
    """True when a placeholder stands anywhere in a JSON value, keys included: never use such a value."""
    if isinstance(value, str):
        return _PLACEHOLDER.search(value) is not None
    if isinstance(value, Mapping):
        return any(contains_placeholder(key) or contains_placeholder(item) for key, item in value.items())
    if isinstance(value, list | tuple):
        return any(map(contains_placeholder, value))
    return False
