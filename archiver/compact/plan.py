"""Which items of a part compaction has to touch: decided from the outline, before any item is read again."""

from __future__ import annotations

import hashlib
from array import array
from bisect import bisect_left, bisect_right
from collections import Counter

from archiver.compact.marks import Front
from archiver.compact.options import CompactOptions
from archiver.compact.outline import ALONE, BLOB, COPIES, OUTPUT, REASONING, RESULT, Outline


class Plan:
    """The decisions for one part.

    `touched` lists the items to parse, in order; all others are copied byte for byte.
    """

    def __init__(self, outline: Outline, options: CompactOptions, front: Front | None = None) -> None:
        """`front` is where turns were recent for earlier bundles, where that is not to be decided anew."""
        self.outline = outline
        front = front or Front()
        self._recent = outline.responses.recent(options.keep_turns, front.turns)
        self.superseded = outline.calls.superseded(front.calls, front.answered)
        self.dropped = self._dropped()
        self.shown = self._shown()
        """Items whose results the summary states, with the calls they answer."""
        self._changing = b""
        """1 for each item that may be changed, where others are only read."""
        self.touched = self._touched()

    def recent(self, item: int) -> bool:
        """True inside the last turns of the item's conversation."""
        return bool(self._recent[self.outline.response[item]])

    def calls_answered(self, item: int) -> list[int]:
        """For each result in the item, in order, the call it answers or `NO_CALL`."""
        outline = self.outline
        start = bisect_left(outline.result_item, item)
        end = bisect_right(outline.result_item, item, lo=start)
        return list(outline.result_call[start:end])

    def decided(self, upto: int) -> bytes:
        """A digest of all that decides how the items before `upto` are edited, besides their text."""
        outline = self.outline
        results = bisect_left(outline.result_item, upto)
        calls = outline.result_call[:results]
        digest = hashlib.sha256(bytes(outline.flags[:upto]))
        digest.update(bytes(self._recent[response] for response in outline.response[:upto]))
        digest.update(outline.result_item[:results].tobytes())
        digest.update(calls.tobytes())
        digest.update(bytes(self.superseded[call] if call >= 0 else 2 for call in calls))
        digest.update(array("I", sorted(item for item in self.dropped if item < upto)).tobytes())
        digest.update(self._changing[:upto])
        return digest.digest()

    def _dropped(self) -> frozenset[int]:
        """Old items of nothing but reasoning, unless a response, a link or the beginning would be lost."""
        outline = self.outline
        needed = _linked_ahead(outline) | _linked_nowhere(outline) | _named_twice(outline) | {outline.opening}
        return frozenset(
            item
            for item, flags in enumerate(outline.flags)
            if flags & ALONE
            and not self.recent(item)
            and outline.responses.more[outline.response[item]]
            and item not in needed
        )

    def _shown(self) -> dict[int, list[int]]:
        wanted = set(self.outline.commands.values())
        shown: dict[int, list[int]] = {}
        for item, call in zip(self.outline.result_item, self.outline.result_call, strict=True):
            if call in wanted:
                shown.setdefault(item, []).append(call)
        return shown

    def _touched(self) -> array[int]:
        outline = self.outline
        old = REASONING | COPIES | BLOB | RESULT | OUTPUT
        recent = BLOB | OUTPUT
        response, late = outline.response, self._recent
        touched = bytearray(
            bool(flags & (recent if late[response[item]] else old)) if flags else 0
            for item, flags in enumerate(outline.flags)
        )
        gone = {outline.own_link[item] for item in self.dropped}
        if gone:
            for item, target in zip(outline.link_item, outline.link_to, strict=True):
                if target in gone:
                    touched[item] = 1
        self._changing = bytes(touched)
        for item in self.shown:
            touched[item] = 1
        return array("I", (item for item, marked in enumerate(touched) if marked))


def _linked_ahead(outline: Outline) -> set[int]:
    """Items that an earlier item links to: the earlier one is written before the link could be mended."""
    alone = {
        outline.own_link[item]: item
        for item, flags in enumerate(outline.flags)
        if flags & ALONE and outline.own_link[item]
    }
    links = zip(outline.link_item, outline.link_to, strict=True)
    return {alone[target] for item, target in links if target in alone and alone[target] >= item}


def _linked_nowhere(outline: Outline) -> set[int]:
    """Items with a link to what is not there: what follows them would get the broken link in their place."""
    alone = [
        (item, target)
        for item, target in zip(outline.link_item, outline.link_to, strict=True)
        if outline.flags[item] & ALONE
    ]
    absent = {target for _, target in alone}.difference(outline.own_link)
    return {item for item, target in alone if target in absent}


def _named_twice(outline: Outline) -> set[int]:
    """Items whose id another item has as well: nothing says which of them a link means."""
    alone = Counter({outline.own_link[item]: 0 for item, flags in enumerate(outline.flags) if flags & ALONE})
    alone.update(own for own in outline.own_link if own and own in alone)
    return {
        item
        for item, flags in enumerate(outline.flags)
        if flags & ALONE and alone[outline.own_link[item]] > 1
    }
