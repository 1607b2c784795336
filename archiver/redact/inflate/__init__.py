"""Looks into files that hold others, within limits, so that what they hold can be scanned.

Zip, tar, ar, gzip, bzip2, xz, zlib, zstd and SQLite, inside each other too, and text in UTF-16 and UTF-32.
What of these cannot be read to its end, and what nobody here can read, has a `failure`: it may hold anything.
"""

from __future__ import annotations

from archiver.redact.inflate.content import Allowance, Budget, InflateLimits, Inflater
from archiver.redact.inflate.kinds import START, opened
from archiver.redact.inflate.wide import Wide


def inflater_for(start: bytes, allowance: Allowance | None = None) -> Inflater | None:
    """What looks into a file that begins so, or None for a file that is what it is.

    `start` has `START` bytes or more, or all that there are; `allowance` is shared by the files of one save.
    """
    return opened(start, Budget(allowance or Allowance(), opened), 0)


__all__ = ["START", "Allowance", "InflateLimits", "Inflater", "Wide", "inflater_for"]
