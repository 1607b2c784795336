"""What files looked like when they were read, so that one that looks the same is not read again.

A change in the very tick of the clock in which a file was last written leaves no trace in its times. So
nothing is kept of a file that was written shortly before it was read, or that has a time that is still to
come.
"""

from __future__ import annotations

import struct
from typing import Final

from archiver.model.workspace import TreeEntry
from archiver.workspace.found import Found

_MARGIN: Final = 2_000_000_000
"""Nanoseconds: the coarsest clock of a file system that is in use."""
_FORM: Final = struct.Struct("<QQQqqHQ?32s")
"""Device, inode, size, the two times, mode; size of the content, whether it is redacted, its SHA-256."""
_LOOKS: Final = struct.Struct("<QQQqqH")
"""What of it a look at the file tells."""


class StatCache:
    """Entries of one workspace by their paths, in memory; less than 300 bytes each.

    What is not kept again between two calls of `settle` is forgotten.
    """

    def __init__(self) -> None:
        self._before: dict[str, bytes] = {}
        self._now: dict[str, bytes] = {}

    def __len__(self) -> int:
        return len(self._before.keys() | self._now.keys())

    def known(self, found: Found) -> TreeEntry | None:
        """The entry with its digest, if nothing says that the file has changed since it was kept."""
        path = found.entry.path
        packed = self._now.get(path) or self._before.get(path)
        if packed is None or isinstance(found.source, bytes) or packed[: _LOOKS.size] != _looks(found):
            return None
        *_, size, redacted, digest = _FORM.unpack(packed)
        entry = found.entry
        return TreeEntry(path, "file", entry.mode, entry.modified, size, digest.hex(), None, redacted)

    def keep(self, found: Found, entry: TreeEntry, began: int) -> None:
        """Keep the entry of a file that was read after `began`, a time of this machine as in `Capture`."""
        stamp = found.stamp
        young = max(stamp.mtime_ns, stamp.ctime_ns) + _MARGIN > began
        if young or isinstance(found.source, bytes) or entry.sha256 is None:
            return
        digest = bytes.fromhex(entry.sha256)
        self._now[found.entry.path] = _FORM.pack(*stamp, found.entry.mode, entry.size, entry.redacted, digest)

    def settle(self) -> None:
        """A save is through: what it did not keep is not carried as it is any more."""
        self._before, self._now = self._now, {}

    def begin(self) -> None:
        """A save begins: what one kept that was never settled is forgotten."""
        self._now = {}

    def clear(self) -> None:
        """Forget everything, as after a change of what redaction knows."""
        self._before, self._now = {}, {}


def _looks(found: Found) -> bytes:
    return _LOOKS.pack(*found.stamp, found.entry.mode)
