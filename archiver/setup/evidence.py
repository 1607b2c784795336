"""Whether a store is an exported run: a copy of the past, which is to stay as it was handed over."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit

from archiver import layout


def is_exported(url: str) -> bool:
    """Whether the folder at this address lies beside the description of an export."""
    parts = urlsplit(url)
    return parts.scheme == "file" and (Path(unquote(parts.path)).parent / layout.EXPORT).is_file()
