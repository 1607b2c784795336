"""What the texts of rules say, kept between processes: TOML of a thousand rules takes a third of a start.

It is kept in the folder of the databases, on the same terms: only what this user alone can have written is
read, and any doubt means that the texts are read. Kept is only what was read without a fault.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson

import archiver
from archiver.redact import cache

_SUFFIX: Final = "rules"

Document = Mapping[str, Any]
"""The tables of one file."""


def load(digest: str, files: int) -> list[Document] | None:
    """The documents of so many files whose texts (and settings) have this digest, or None."""
    body = cache.load(_key(digest), _SUFFIX)
    if body is None:
        return None
    try:
        documents = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(documents, list) or len(documents) != files:
        return None
    return documents if all(isinstance(document, dict) for document in documents) else None


def store(digest: str, documents: Sequence[Document]) -> None:
    """Keep documents, if JSON gives back the very same."""
    try:
        body = orjson.dumps(documents)
    except orjson.JSONEncodeError:
        return
    if orjson.loads(body) == documents:
        cache.store(_key(digest), body, _SUFFIX)


def _key(digest: str) -> str:
    return hashlib.sha256(f"{archiver.__version__} {sys.version} {digest}".encode()).hexdigest()
