"""Which checkpoint of a run is restored, and what is lost by taking it."""

from __future__ import annotations

from archiver.catalog import Chain
from archiver.errors import NoSuchRunError
from archiver.model import Record


def choose(chain: Chain, at: int | None) -> Record:
    """The numbered checkpoint, or else the newest record that has a bundle."""
    if at is not None:
        record = chain.head.record
        if record.bundle is None:
            raise NoSuchRunError(
                f"record {at} of run {chain.run} is a {record.kind} and holds no checkpoint",
                remedy="choose another number with --at",
            )
        return record
    for link in reversed(chain.links):
        if link.record.bundle is not None:
            return link.record
    raise NoSuchRunError(f"run {chain.run} has no checkpoint yet, only claims")
