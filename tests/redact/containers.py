"""Ways in which a file holds another one, for tests that look whether a secret is found in it."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import sqlite3
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing
from types import SimpleNamespace
from typing import Any

import zstandard

Pack = Callable[[bytes], bytes]


def in_zip(data: bytes, name: str = "a/settings.txt") -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("first.txt", b"nothing here\n" * 50)
        archive.writestr(name, data)
    return held.getvalue()


def in_tar(data: bytes, name: str = "a/settings.txt", form: int = tarfile.PAX_FORMAT) -> bytes:
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w", format=form) as archive:
        for at, content in ((f"{'long/' * 40}first.txt", b"nothing here\n" * 50), (name, data)):
            entry = tarfile.TarInfo(at)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return held.getvalue()


def in_ar(data: bytes) -> bytes:
    parts = [b"!<arch>\n"]
    for name, content in ((b"debian-binary", b"2.0\n"), (b"data.tar.xz", data)):
        parts.append(b"%-16b%-12d%-6d%-6d%-8o%-10d`\n" % (name, 0, 0, 0, 0o100644, len(content)))
        parts.append(content + b"\n" * (len(content) % 2))
    return b"".join(parts)


def in_database(
    data: bytes, *, page: int = 4096, wide: bool = False, blob: bool = False, before: int = 0
) -> bytes:
    """A database that holds the data in a text; with bytes `before` it, 6,000 altogether."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as base:
        base.execute(f"PRAGMA page_size = {page}")
        if wide:
            base.execute("PRAGMA encoding = 'UTF-16le'")
        base.execute("CREATE TABLE notes (id INTEGER PRIMARY KEY, title TEXT, body)")
        for number in range(30):
            base.execute(
                "INSERT INTO notes VALUES (?, ?, ?)", (number, f"note {number}", "nothing here " * 9)
            )
        value = b"\n".join((b"." * before, data, b"." * (6_000 - before))) if before else data
        base.execute("INSERT INTO notes VALUES (99, 'note', ?)", (value if blob else value.decode(),))
        return base.serialize()


def over_pages(data: bytes) -> bytes:
    """A database that cuts the middle of the data, on two pages that do not follow each other."""
    page = 512
    middle = slice(len(data) // 3, len(data) * 2 // 3)
    before = 3_000
    for _ in range(4):
        made = in_database(data, page=page, before=before)
        at = made.find(data)
        if at < 0 and data[middle] not in made:
            return made
        before += (page - max(at, 0) % page - len(data) // 2) % page if at >= 0 else len(data) // 4
    return made


def in_script(data: bytes) -> bytes:
    return b"#!/usr/bin/env python3\n" + in_zip(data)


def git_object(data: bytes) -> bytes:
    return zlib.compress(b"blob %d\0" % len(data) + data)


CONTAINERS: dict[str, Pack] = {
    "zip": in_zip,
    "zip that runs": in_script,
    "tar of gzip": lambda data: in_tar(gzip.compress(data)),
    "tar.gz": lambda data: gzip.compress(in_tar(data)),
    "tar.bz2": lambda data: bz2.compress(in_tar(data)),
    "tar.xz, GNU": lambda data: lzma.compress(in_tar(data, form=tarfile.GNU_FORMAT)),
    "tar.zst, ustar": lambda data: zstandard.compress(in_tar(data, "b", tarfile.PAX_FORMAT)),
    "zstd, two frames": lambda data: zstandard.compress(b"nothing here") + zstandard.compress(data),
    "gzip in zip": lambda data: in_zip(gzip.compress(data)),
    "zip in tar in gzip": lambda data: gzip.compress(in_tar(in_zip(data))),
    "deb": lambda data: in_ar(lzma.compress(in_tar(data))),
    "object of git": git_object,
    "SQLite": in_database,
    "SQLite, UTF-16": lambda data: in_database(data, wide=True),
    "SQLite, blob": lambda data: in_database(gzip.compress(data), blob=True),
    "SQLite, over pages": over_pages,
    "SQLite in zip": lambda data: in_zip(over_pages(data)),
}
"""By name: a file that holds the data so that it does not stand in the file's own bytes (mostly)."""


def file(path: str) -> Any:
    """What a capture finds at a path."""
    return SimpleNamespace(entry=SimpleNamespace(path=path))


def blocks(data: bytes, size: int = 1 << 20) -> Callable[[], Iterator[bytes]]:
    """Reads the data in blocks."""
    return lambda: iter([data[at : at + size] for at in range(0, len(data), size)])
