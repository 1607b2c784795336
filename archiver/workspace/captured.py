"""A plain folder, captured: every entry of it that is carried, and a reason for what is not."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from archiver.errors import InputNotFoundError
from archiver.safetext import one_line
from archiver.scratch import Scratch
from archiver.workspace.defaults import OWN_FILE
from archiver.workspace.found import Capture, CaptureIgnored, Found, Skipped, Skips, Stamp
from archiver.workspace.ignoring import MAX_OWN_FILE, Ignoring, own_rules
from archiver.workspace.options import CaptureOptions, WorkspaceLimits
from archiver.workspace.patterns import Rule
from archiver.workspace.reading import READ, read_whole
from archiver.workspace.walking import ROOT, Walk

__all__ = [
    "Capture",
    "CaptureIgnored",
    "CaptureOptions",
    "Found",
    "Skipped",
    "Stamp",
    "WorkspaceLimits",
    "capture_folder",
]


def capture_folder(
    root: Path,
    options: CaptureOptions,
    scratch: Scratch,  # noqa: ARG001 - the same call as for a git work tree; copies stay in memory here
    apart: Sequence[Path],
) -> Capture:
    """The entries of a folder, found one after the other as the caller takes them.

    `apart`: folders that are never captured. Raises `InputNotFoundError` for a root that is no folder or
    cannot be listed, `ConfigError` for a pattern of the caller's that is none; nothing in the folder raises
    anything.
    """
    began = time.time_ns()
    place = root.absolute()
    skipped: list[Skipped] = []
    skips, ignored = Skips(skipped), CaptureIgnored()
    handle = _opened(place)
    try:
        own = _own_rules(handle, skips)
    finally:
        os.close(handle)
    never = _identities(apart)
    if not never.isdisjoint(_identities((resolved := place.resolve(), *resolved.parents))):
        skips.add(".", "it lies in a folder of the archiver's own")
        return Capture(iter(()), skipped, ignored=ignored, began=began)
    walk = Walk(place, Ignoring(options, own), options.limits, never, skips, ignored)
    return Capture(iter(walk), skipped, ignored=ignored, began=began)


def _opened(root: Path) -> int:
    try:
        return os.open(root, ROOT)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise InputNotFoundError(
            f"{one_line(str(root))} cannot be captured: {reason}",
            remedy="name a folder that is there and may be read, or leave its workspace out",
        ) from error


def _identities(folders: Iterable[Path]) -> frozenset[tuple[int, int]]:
    """Device and inode of those that are there."""
    found = set()
    for folder in folders:
        with suppress(OSError):
            seen = folder.stat()
            found.add((seen.st_dev, seen.st_ino))
    return frozenset(found)


def _own_rules(root: int, skips: Skips) -> list[Rule]:
    """What the folder's own file says; a word for what of it does not count."""
    try:
        handle = os.open(OWN_FILE, READ, dir_fd=root)
    except FileNotFoundError:
        return []
    except OSError as error:
        skips.add(OWN_FILE, f"its patterns do not count: {error.strerror}")
        return []
    try:
        seen = os.fstat(handle)
        if not stat.S_ISREG(seen.st_mode) or seen.st_size > MAX_OWN_FILE:
            skips.add(OWN_FILE, f"its patterns do not count: it is no file of at most {MAX_OWN_FILE} bytes")
            return []
        rules, problems = own_rules(read_whole(handle, MAX_OWN_FILE))
    except OSError as error:
        skips.add(OWN_FILE, f"its patterns do not count: {error.strerror}")
        return []
    finally:
        os.close(handle)
    for problem in problems:
        skips.add(OWN_FILE, problem)
    return rules
