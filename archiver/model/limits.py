"""How large things may be, on write and on read."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field

from archiver.errors import LimitExceededError
from archiver.model.base import Frozen

MAX_MEMBER: Final = 8 * 2**30 - 1
"""Bytes of one member: what the size field of a tar header holds."""
MAX_MANIFEST: Final = 64 * 2**20
"""Bytes of `manifest.json`, which is read whole."""
MAX_CHAIN: Final = 256
"""Bundles of a chain, each based on the one before; the first is full."""

RUN: Final = "run"
"""The limit that a run meets, as an error has it."""

Policy = Literal["refuse", "head-and-tail", "reference"]
"""What becomes of an output that a limit has no room for: no save, its head and tail alone, or what is said
of it in the list of artifacts alone."""

_REMEDY = (
    "leave something out, or raise the limit in `archiver.toml` where it is written and where it is read"
)


class Limits(Frozen):
    """The largest allowed sizes in bytes, and the number of members of one bundle.

    `member`: one file. `item`: one line or message of a transcript's file. `artifact`: one output or picture.
    `bundle`: all members of one bundle, unpacked.
    `run`: all bundles of a run, as stored. The policies say what becomes of outputs when a limit is met;
    whatever they leave over it is refused.
    """

    member: Annotated[int, Field(ge=1, le=MAX_MEMBER)] = 64 * 2**20
    bundle: Annotated[int, Field(ge=1)] = 2 * 2**30
    run: Annotated[int, Field(ge=1)] = 20 * 2**30
    members: Annotated[int, Field(ge=1)] = 100_000
    item: Annotated[int, Field(ge=1)] = 16 * 2**20
    artifact: Annotated[int, Field(ge=1)] = 16 * 2**20
    artifact_policy: Policy = "head-and-tail"
    bundle_policy: Policy = "head-and-tail"
    run_policy: Policy = "reference"

    @property
    def largest_artifact(self) -> int:
        """Bytes that an artifact may have: it is a member too."""
        return min(self.artifact, self.member)

    def check_member(self, path: str, size: int) -> None:
        """Raise `LimitExceededError` for a member of `size` bytes over the limit."""
        if size > self.member:
            raise LimitExceededError(
                f"member {path} has {size} bytes, the limit of a member is {self.member}", remedy=_REMEDY
            )

    def check_artifact(self, path: str, size: int) -> None:
        """Raise `LimitExceededError` for an artifact of `size` bytes over the limit."""
        if size > self.largest_artifact:
            raise LimitExceededError(
                f"{path} has {size} bytes, the limit of an artifact is {self.largest_artifact}",
                remedy=f"{_REMEDY}; `limits.artifact_policy` says what else may become of it",
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
        """Raise `LimitExceededError` if the bundles of a run, the next one included, have `size` bytes.

        The error says as data that this limit was met, so that a caller may go on by `run_policy`.
        """
        if size > self.run:
            error = LimitExceededError(
                f"with this bundle run {run} would have {size} bytes in the store, the limit of a run is "
                f"{self.run}",
                remedy=_REMEDY,
            )
            error.details = {"limit": RUN}
            raise error

    def may_go_on(self, error: LimitExceededError) -> bool:
        """Whether that error is one after which a bundle with less of its outputs may be tried."""
        return error.details.get("limit") == RUN and self.run_policy != "refuse"
