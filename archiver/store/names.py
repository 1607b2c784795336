"""Which strings name objects: the same in every store, so that a store can move to another kind."""

from __future__ import annotations

import re
from typing import Final

from archiver.errors import InvalidNameError

MAX_NAME: Final = 1024
MAX_COMPONENT: Final = 240
"""Bytes; file systems allow 255, and a tag's file name is a few longer than its object's."""

_FORM = rf"[A-Za-z0-9_~][A-Za-z0-9._~-]{{0,{MAX_COMPONENT - 1}}}"
_COMPONENT = re.compile(_FORM)
_NAME = re.compile(rf"{_FORM}(?:/{_FORM})*")


def usable(component: str) -> bool:
    """Whether a file of this name can be an object or hold objects; hidden names are the store's own."""
    return _COMPONENT.fullmatch(component) is not None


def is_name(name: str) -> bool:
    """Whether an object can have this name."""
    return len(name) <= MAX_NAME and _NAME.fullmatch(name) is not None


def split(name: str) -> tuple[tuple[str, ...], str]:
    """A name as its folders and its file; `InvalidNameError` for what could leave the store or hide in it."""
    if not is_name(name):
        raise InvalidNameError(f"{name[:80]!r} cannot be the name of an object of a store")
    *folders, leaf = name.split("/")
    return tuple(folders), leaf


def split_prefix(prefix: str) -> tuple[tuple[str, ...], str]:
    """A prefix as the folders it names whole and the start of a name in the last of them."""
    *folders, start = prefix.split("/")
    if len(prefix) > MAX_NAME or not all(map(usable, folders)) or (start and not usable(start)):
        raise InvalidNameError(f"{prefix[:80]!r} cannot be the start of an object's name of a store")
    return tuple(folders), start
