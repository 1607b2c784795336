"""Members that the last scan of an earlier save of this process found clean: it need not scan them again.

A member is known by its path, which says how it is scanned, and its digest, which packing compares. What
became known since is searched for in it; a member in which something stands is scanned as any other.
"""

from __future__ import annotations

from typing import Final

from archiver.model import Member
from archiver.redact.later import Later, Mark
from archiver.redact.members import blocks, line_blocks
from archiver.redact.scrub import ItemOpaque

_FOLDERS: Final = ("transcript/", "full/", "artifacts/")


class Scanned:
    """What is kept from save to save; `begin` opens a save, `end` ends it."""

    def __init__(self) -> None:
        self._about = ""
        self._known: dict[tuple[str, str], Mark] = {}
        self._clean: dict[tuple[str, str], Mark] = {}

    def begin(self, about: str) -> None:
        """`about` names all that decides what a scan finds but the values that rules found."""
        self._clean = self._known if about == self._about else {}
        self._about, self._known = about, {}

    def has(self, member: Member, later: Later, opaque: ItemOpaque) -> bool:
        """Whether it was scanned, and holds nothing that became known since."""
        mark = self._clean.get((member.path, member.sha256))
        if mark is None:
            return False
        new = later.new_since(mark)
        if not new:
            return True
        scrubber = later.scrubber(new)
        if not member.path.endswith(".jsonl"):
            return not later.holds(blocks(member), scrubber)
        return not any(True for block in line_blocks(member) for _ in scrubber.line_edits(block, opaque))

    def end(self, kept: tuple[Member, ...], before: tuple[Member, ...], mark: Mark) -> None:
        """All were scanned by now, for the values of `mark`: those that stayed what they were are clean."""
        unchanged = set(map(id, before))
        self._known = {
            (one.path, one.sha256): mark
            for one in kept
            if id(one) in unchanged and one.path.startswith(_FOLDERS)
        }
