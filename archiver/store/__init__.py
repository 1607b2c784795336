"""Where objects lie: `open_store` gives the store behind an address."""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

from archiver.errors import ConfigError
from archiver.store.base import Guarded, ObjectInfo, ObjectStore, ObjectVersion, Remote, Versioned
from archiver.store.options import S3Options

__all__ = [
    "Guarded",
    "ObjectInfo",
    "ObjectStore",
    "ObjectVersion",
    "Remote",
    "S3Options",
    "Versioned",
    "open_store",
]

_DEFAULT = S3Options()
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(?=/)")


def open_store(
    url: str | os.PathLike[str], *, make: bool = False, options: S3Options = _DEFAULT
) -> ObjectStore:
    """The store at `s3://bucket/prefix`, at `file:///folder` or at a plain path; `options` are for S3 alone.

    A plain path is relative to the working folder, `~` is the home. Nothing is touched unless `make` asks for
    a missing folder. `ConfigError` for any other address.
    """
    from archiver.store.local import LocalStore

    if os.fspath(url).lower().startswith("s3://"):
        from archiver.store.limited import limited
        from archiver.store.retrying import retrying
        from archiver.store.s3 import S3Store

        # What comes over a network may end early or never: each object has a limit, each call another try.
        store = limited(S3Store.at(os.fspath(url), options), options.largest)
        return retrying(store, attempts=options.aws.attempts, patience=options.aws.timeout)
    folder = LocalStore(_folder(os.fspath(url)))
    if make:
        folder.make()
    return folder


def _folder(url: str) -> Path:
    match = _SCHEME.match(url)
    if match and match[1].lower() != "file":
        raise ConfigError(
            f"stores of the kind {match[1]}: are not supported by this version",
            remedy="use a folder (a path or file:///path) or s3://bucket/prefix",
        )
    path = _file_path(url) if match else url
    if not path or "\0" in path:
        raise ConfigError(
            f"{url!r} is not the address of a store", remedy="use a path, file:///path or s3://bucket/prefix"
        )
    try:
        return (Path(path) if match else Path(path).expanduser()).absolute()
    except (OSError, RuntimeError) as error:
        raise ConfigError(f"{url!r} leads nowhere: {error}", remedy="use an absolute path") from error


def _file_path(url: str) -> str:
    parts = urlsplit(url)
    if parts.netloc not in ("", "localhost") or parts.query or parts.fragment:
        raise ConfigError(
            f"{url!r} is not the address of a folder on this machine",
            remedy="use file:///path with three slashes; write '?' and '#' as %3F and %23",
        )
    return unquote(parts.path)
