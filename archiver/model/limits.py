"""How large things may be, on write and on read."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from archiver.errors import LimitExceededError
from archiver.model.base import Frozen

MAX_MEMBER: Final = 8 * 2**30 - 1
"""Bytes of one member: what the size field of a tar header holds."""
MAX_MANIFEST: Final = 64 * 2**20
"""Bytes of `manifest.json`, which is read whole."""

_REMEDY = (
    "leave something out, or raise the limit in `archiver.toml` where it is written and where it is read"
)


class Limits(Frozen):
    """The largest allowed sizes in bytes, and the number of members of one bundle.

    `member`: one file. `bundle`: all members of one bundle, unpacked. `run`: all bundles of a run, as stored.
    """

    member: Annotated[int, Field(ge=1, le=MAX_MEMBER)] = 64 * 2**20
    bundle: Annotated[int, Field(ge=1)] = 2 * 2**30
    run: Annotated[int, Field(ge=1)] = 20 * 2**30
    members: Annotated[int, Field(ge=1)] = 100_000

    def check_member(self, path: str, size: int) -> None:
        """Raise `LimitExceededError` for a member of `size` bytes over the limit."""
        if size > self.member:
            raise LimitExceededError(
                f"member {path} has {size} bytes, the limit of a member is {self.member}", remedy=_REMEDY
            )

    def check_bundle(self, path: str, size: int) -> None:
        """Raise `LimitExceededError` if a bundle has `size` bytes up to and with member `path`."""
        if size > self.bundle:
            raise LimitExceededError(
                f"with member {path} the bundle has {size} bytes, the limit of a bundle is {self.bundle}",
                remedy=_REMEDY,
            )

    def check_members(self, count: int) -> None:
        """Raise `LimitExceededError` for too many members in one bundle."""
        if count > self.members:
            raise LimitExceededError(
                f"the bundle has {count} members, the limit is {self.members}", remedy=_REMEDY
            )

    def check_run(self, run: str, size: int) -> None:
        """Raise `LimitExceededError` if the bundles of a run, the next one included, have `size` bytes."""
        if size > self.run:
            raise LimitExceededError(
                f"with this bundle run {run} would have {size} bytes in the store, the limit of a run is "
                f"{self.run}",
                remedy=_REMEDY,
            )
