"""Folders for the tests: captured and written as the product does, and looked at by other means."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from archiver.model.workspace import TreeEntry
from archiver.scratch import Scratch
from archiver.workspace.captured import Capture, CaptureOptions, Skipped, capture_folder
from archiver.workspace.reading import NotReadError, stable
from archiver.workspace.writing import write_tree

NOBODY = 65534


@dataclass
class Kept:
    """A captured tree: its entries with digests, and the folder with their contents."""

    entries: list[TreeEntry]
    objects: Path
    capture: Capture

    @property
    def paths(self) -> list[str]:
        return [entry.path for entry in self.entries]

    @property
    def skipped(self) -> dict[str, str]:
        return {one.path: one.reason for one in self.capture.skipped}

    def content(self, path: str) -> bytes:
        entry = next(entry for entry in self.entries if entry.path == path)
        assert entry.sha256 is not None
        return (self.objects / entry.sha256).read_bytes()

    def write(self, into: Path) -> list[Skipped]:
        return write_tree(self.entries, lambda sha256: self.objects / sha256, into)


def captured(root: Path, *, apart: Sequence[Path] = (), **options: Any) -> Capture:
    """A capture that has looked at nothing yet."""
    with Scratch(root.parent) as scratch:
        return capture_folder(root, CaptureOptions(**options), scratch, apart)


def kept(root: Path, objects: Path, *, apart: Sequence[Path] = (), **options: Any) -> Kept:
    """Capture a folder and keep what is in it."""
    objects.mkdir(exist_ok=True)
    capture = captured(root, apart=apart, **options)
    entries = []
    for found in capture.found:
        if found.entry.type != "file":
            entries.append(found.entry)
            continue

        def take(blocks: Iterator[bytes], size: int) -> bytes:
            data = b"".join(blocks)
            assert len(data) == size
            return data

        try:
            data, settled = stable(found, take)
        except NotReadError as error:
            capture.skipped.append(Skipped(found.entry.path, str(error)))
            continue
        sha256 = hashlib.sha256(data).hexdigest()
        (objects / sha256).write_bytes(data)
        entries.append(replace(settled.entry, sha256=sha256))
    return Kept(entries, objects, capture)


def picture(folder: bytes, below: bytes = b"") -> dict[bytes, tuple[object, ...]]:
    """Everything below a folder that a restore must bring back, by path."""
    found: dict[bytes, tuple[object, ...]] = {}
    for name in os.listdir(folder):
        place, path = folder + b"/" + name, below + name
        seen = os.lstat(place)
        bits = stat.S_IMODE(seen.st_mode)
        if stat.S_ISLNK(seen.st_mode):
            found[path] = ("link", seen.st_mtime_ns, os.readlink(place))
        elif stat.S_ISDIR(seen.st_mode):
            found[path] = ("folder", seen.st_mtime_ns, bits)
            found |= picture(place, path + b"/")
        else:
            with open(place, "rb") as file:
                found[path] = ("file", seen.st_mtime_ns, bits, file.read())
    return found


@contextmanager
def as_nobody(place: Path) -> Iterator[None]:
    """Be somebody who is not root, and can come to `place`."""
    if os.geteuid() != 0:
        yield
        return
    for folder in (place, *place.parents):
        if folder.stat().st_uid == 0 and folder.stat().st_mode & 0o005 != 0o005:
            folder.chmod(folder.stat().st_mode | 0o055)
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
