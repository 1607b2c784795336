"""What a probe says when nothing could be compared."""

from __future__ import annotations

from archiver.freshness.verdict import Finding


class Unasked(Exception):  # noqa: N818 - no failure: it becomes the verdict UNKNOWN
    """No answer that could be compared: `evidence` says why, `remedy` what would help."""

    def __init__(self, evidence: str, remedy: str = "look at it by hand before going on") -> None:
        super().__init__(evidence)
        self.evidence = evidence
        self.remedy = remedy

    def finding(self, what: str) -> Finding:
        """UNKNOWN, for this reason."""
        return Finding("UNKNOWN", f"{what}: {self.evidence}", self.remedy)


class TooLargeError(Unasked):
    """More bytes than probes read."""
