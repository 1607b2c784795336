"""What compaction may be told, and what it tells afterwards."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Final

from archiver.errors import UsageError

SMALLEST_HEAD: Final = 256
SMALLEST_TAIL: Final = 2048
"""A cut output must still hold what its conclusion is read from: an exit status ahead, a last line behind."""


@dataclass(frozen=True, slots=True)
class CompactOptions:
    """How much stays whole. All sizes are bytes.

    `keep_turns`: model responses, with their results, that stay whole at the end of each conversation.
    `small_result`: a result up to this size is never replaced by a stub.
    `output_limit`: a larger result becomes an artifact; `head` and `tail` of it stay inline.
    `blob_limit`: base64 text from this size on becomes an artifact.
    `keep_full`: the whole redacted transcript is archived beside the compacted one.
    """

    keep_turns: int = 20
    small_result: int = 400
    output_limit: int = 64 << 10
    head: int = 2 << 10
    tail: int = 2 << 10
    blob_limit: int = 4 << 10
    keep_full: bool = False

    def __post_init__(self) -> None:
        if self.keep_turns < 1:
            raise UsageError("compaction must keep at least 1 turn", remedy="set keep_turns to 1 or more")
        if self.head < SMALLEST_HEAD or self.tail < SMALLEST_TAIL:
            raise UsageError(
                f"a cut output keeps at least {SMALLEST_HEAD} bytes of head and {SMALLEST_TAIL} of tail",
                remedy="raise head or tail",
            )
        if self.output_limit < 2 * (self.head + self.tail):
            raise UsageError(
                f"an output limit of {self.output_limit} bytes is less than twice head and tail together",
                remedy="raise output_limit or lower head and tail",
            )
        if self.small_result < 0 or self.blob_limit < 1:
            raise UsageError("small_result and blob_limit cannot be negative", remedy="use their defaults")


@dataclass(slots=True)
class CompactReport:
    """What compaction did, in bytes and counts."""

    bytes_before: int = 0
    bytes_after: int = 0
    """Bytes of the compacted transcript alone; artifacts are counted in `artifact_bytes`."""
    stubs: Counter[str] = field(default_factory=Counter)
    """Tool results replaced, by reason: `superseded` or `older`."""
    reasoning_dropped: int = 0
    """Items that lost their reasoning."""
    items_dropped: int = 0
    """Items that held nothing but reasoning."""
    folded: int = 0
    """Items that lost structured copies of what they say anyway."""
    outputs_cut: int = 0
    """Outputs of which head and tail stay inline."""
    artifacts: int = 0
    artifact_bytes: int = 0
    kept_whole: tuple[str, ...] = ()
    """Names of parts that were not compacted, because nothing is known of their format."""
    summary: str = "default"
    """Where the summary comes from: `given` with the checkpoint, `callable` or `default`."""
    summary_error: str | None = None
    """Type of the error with which the callable failed, so that the default took its place."""

    def copy(self) -> CompactReport:
        """The counts as they are now."""
        return replace(self, stubs=Counter(self.stubs))
