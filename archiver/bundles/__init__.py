"""The bundle that a record signed: is it there, is it what was signed, and what does it hold?

An incremental bundle is put together from all bundles of its chain. Whoever opens one gives the records of
its bases, from a chain of records that was verified.
"""

from archiver.bundles.alone import Fetched
from archiver.bundles.presence import bases_of, check_present, check_size, seal
from archiver.bundles.standing import Standing
from archiver.bundles.unpacking import fetch, fetch_own, unpack

__all__ = [
    "Fetched",
    "Standing",
    "bases_of",
    "check_present",
    "check_size",
    "fetch",
    "fetch_own",
    "seal",
    "unpack",
]
