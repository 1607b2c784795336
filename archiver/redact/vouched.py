"""Content that was scanned in this very save, so that the last scan need not scan it again."""

from __future__ import annotations


class Vouched:
    """Digests of content in which nothing stood that was known when it was scanned, and when that was.

    Packing compares every member with its digest, so a digest says all that has to be known of a content.
    """

    def __init__(self) -> None:
        self._known: dict[str, int] = {}
        self._commits: dict[str, int] = {}

    def add(self, sha256: str, known: int) -> None:
        """Note a content that was scanned by all rules and by the first `known` values."""
        self._known[sha256] = known

    def add_commits(self, sha256: str, known: int) -> None:
        """Note a bundle of git of which all objects were scanned so; it cannot be searched itself."""
        self._commits[sha256] = known

    def known(self, sha256: str) -> int | None:
        """By how many values a content was scanned; None for one that was not."""
        return self._known.get(sha256)

    def commits(self, sha256: str) -> int | None:
        """By how many values the objects of a bundle of git were; None for one that is not known."""
        return self._commits.get(sha256)
