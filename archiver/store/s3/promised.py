"""Which bytes of an object an answer says it has: who goes on after a broken connection holds it to that."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from archiver.errors import StoreError
from archiver.store.s3.request import understood

_CONTENT_RANGE: Final = re.compile(r"bytes ([0-9]{1,19})-([0-9]{1,19})/([0-9]{1,19}|\*)")


@dataclass(frozen=True, slots=True)
class Promised:
    """Where the bytes of an answer end, and how many the object has; None if it does not say."""

    end: int
    total: int | None


def promised(name: str, answer: dict[str, Any], at: int, end: int | None) -> Promised:
    """What the answer to a GET of the bytes from `at` (up to `end`, if given) says it has.

    Raises `StoreError` if that is not what was asked for.
    """
    with understood(f"object {name}"):
        length = int(answer["ContentLength"])
    if "ContentRange" not in answer and not at and end is None:
        found = Promised(length, length)
        fits = length >= 0
    elif (range_ := _CONTENT_RANGE.fullmatch(str(answer.get("ContentRange")))) is None:
        raise _not_the_part(name)
    else:
        first, last, total = range_.groups()
        found = Promised(int(last) + 1, None if total == "*" else int(total))
        fits = int(first) == at and at + length == found.end and _fits(found, end)
    if not fits:
        raise _not_the_part(name)
    return found


def _fits(found: Promised, end: int | None) -> bool:
    """Whether it ends where it was asked to, or before; without an end, with the object's."""
    if end is not None:
        return found.end <= end and (found.total is None or found.end <= found.total)
    return found.total in (None, found.end)


def _not_the_part(name: str) -> StoreError:
    return StoreError(
        f"the store did not give the part of object {name} that was asked for",
        remedy="it, or a proxy before it, ignores ranges: use another",
    )
