"""What was said of files already, so that it is said, and counts, once until they change."""

from __future__ import annotations

import hashlib
import os

from archiver.model.run_manifest import MANIFEST_NAME
from archiver.sweep.state import State, key_of


class Before:
    """What earlier sweeps have said of what cannot be archived; `keep` remembers what this one says."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._known = {
            (kind, key): stamp for kind, key, stamp in state.do("select kind, key, stamp from said")
        }
        self._new: list[tuple[str, bytes, str]] = []

    def said(self, kind: str, name: str, what: str, why: str) -> bool:
        """Whether the same was said of files that looked the same; `name` is their path."""
        key, stamp = key_of(name), _stamp(name, what, why)
        if self._known.get((kind, key)) == stamp:
            return True
        self._known[kind, key] = stamp
        self._new.append((kind, key, stamp))
        return False

    def keep(self) -> None:
        """Remember what is new."""
        if self._new:
            self._state.do_many("insert or replace into said values (?, ?, ?)", self._new)
            self._new.clear()


def _stamp(name: str, what: str, why: str) -> str:
    """Of a file, or of a folder and its manifest; a change of mode alone counts too."""
    digest = hashlib.sha256(f"{what} {why}".encode("utf-8", "backslashreplace"))
    for path in (name, os.path.join(name, MANIFEST_NAME)):  # noqa: PTH118 - bytes that are not UTF-8 stay
        try:
            seen = os.lstat(path)
        except (OSError, ValueError):
            digest.update(b"\n-")
        else:
            digest.update(b"\n%d %d %d %d" % (seen.st_ino, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns))
    return digest.hexdigest()[:32]
