"""What stands where a secret stood: `[REDACTED:<kind>:<12 hex>]`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from archiver.errors import RedactedValueError

_PLACEHOLDER = re.compile(r"\[REDACTED:[a-z0-9]+(?:-[a-z0-9]+)*:[0-9a-f]{12}\]")
PLACEHOLDER = re.compile(_PLACEHOLDER.pattern.encode())


def make(kind: str, fingerprint: str) -> str:
    """The placeholder of a secret of this kind with this keyed fingerprint."""
    return f"[REDACTED:{kind}:{fingerprint}]"


def is_placeholder(text: str) -> bool:
    """True when the text is one placeholder and nothing else."""
    return _PLACEHOLDER.fullmatch(text) is not None


def usable(value: Any, what: str) -> Any:
    """The value, to be used as one; `RedactedValueError` when a placeholder stands anywhere in it.

    `what` names the value in the message. Whoever runs a tool again, or writes a recorded output to a file,
    asks here first: a placeholder would act on the wrong thing, and in a file destroys what it replaced.
    """
    if contains_placeholder(value):
        raise RedactedValueError(
            f"{what} held a credential that was redacted: what is left is a placeholder, not a value",
            remedy="take the value from where the credential is kept, or do the step anew",
        )
    return value


def contains_placeholder(value: Any) -> bool:
    """True when a placeholder stands anywhere in a JSON value, keys included: never use such a value."""
    if isinstance(value, str):
        return _PLACEHOLDER.search(value) is not None
    if isinstance(value, Mapping):
        return any(contains_placeholder(key) or contains_placeholder(item) for key, item in value.items())
    if isinstance(value, list | tuple):
        return any(map(contains_placeholder, value))
    return False
