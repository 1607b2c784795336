"""A pass over the items that writes them anew: changed where the plan says so, else byte for byte."""

from __future__ import annotations

import base64
import binascii
import hashlib
from array import array
from collections.abc import Iterator
from typing import Any

from archiver import jsonio
from archiver.model import Items
from archiver.repair.places import Place, Plan, Renamed
from archiver.repair.words import INTERRUPTED, LOST_BEGINNING
from archiver.transcripts.dialect import Blob, Dialect


class Writer:
    """Writes the items anew, changing those the plan names and the links that their changes break."""

    def __init__(self, dialect: Dialect, made: Plan) -> None:
        self.changed = False
        self.origins = array("Q")
        """Of each item that was written, the index of the one that it was, or stands beside."""
        self._dialect = dialect
        self._plan = made
        self._links: dict[str, str | None] = dict(made.gone)
        """Ids that later items must not link to, each with the id to link to instead."""
        self._last: dict[str | None, str | None] = {}
        """Of each branch, the id of its last line."""
        self._end = b""

    def lines(self, items: Items) -> Iterator[bytes]:
        """The mended items as JSON texts; those without a change keep their bytes, and all the line's end."""
        before: Any = None
        for index, item, line in self._written(items):
            self.origins.append(index)
            numbered = self._dialect.numbered(item, before)
            yield self._new(numbered) if line is None or numbered is not item else line
            before = numbered

    def _written(self, items: Items) -> Iterator[tuple[int, Any, bytes | None]]:
        """The mended items, with what they were made of, and their texts where they are as they were."""
        for index, line in enumerate(items.lines()):
            item = jsonio.exact(line)
            self._end = b"\r" if line.endswith(b"\r") else b""
            if index in self._plan.note:
                yield index, self._note(index, item), None
            linked = self._relinked(index, item)
            mended = self._mended(index, linked)
            if mended is not None:
                yield index, mended, line if mended is item else None
            self._remember(linked if mended is None else mended, kept=mended is not None)
            new, old = self._plan.ids.get(index), self._dialect.link(linked)[0]
            if new is not None and old is not None:
                self._links[old] = new  # what follows hangs off the nearest of the two
            for place in self._plan.behind.get(index, ()):
                for answer in self._answers(place, linked):
                    yield index, answer, None

    def _new(self, item: Any) -> bytes:
        self.changed = True
        return jsonio.again(item) + self._end

    def _relinked(self, index: int, item: Any) -> Any:
        for lost in self._plan.dangling.get(index, ()):
            self._links.setdefault(lost, self._before(item))
        if index in self._plan.cycles:
            item = self._dialect.relinked(item, {self._plan.cycles[index]: self._before(item)})
        return self._dialect.relinked(item, self._links) if self._links else item

    def _before(self, item: Any) -> str | None:
        """The id of the line before, in the item's branch."""
        return self._last.get(self._dialect.facts(item).branch)

    def _mended(self, index: int, item: Any) -> Any | None:
        """The item as the plan wants it; None where it goes."""
        for change in (self._renamed, self._answered):
            item = change(index, item)
            if item is None:
                return None
        if index in self._plan.unsealed and index not in self._plan.unreasoned:
            kept = self._dialect.without_broken_seals(item)
            if kept is not item:
                return kept
        gone = index in self._plan.unreasoned or index in self._plan.unsealed
        return self._dialect.without_reasoning(item) if gone else item

    def _answered(self, index: int, item: Any) -> Any | None:
        """The item without results that go and with those that come, and with sound texts."""
        mended = self._plan.dropped(index, item, self._dialect)
        if mended is not None:
            for place in self._plan.into.get(index, ()):
                mended = self._filled(place, mended)
            if index in self._plan.sound:
                mended = self._sound(mended)
        return mended

    def _renamed(self, index: int, item: Any) -> Any | None:
        """The item in another role, with its new ids and names, and with texts for what is too large."""
        plan, dialect = self._plan, self._dialect
        if index in plan.roles:
            item = dialect.with_sound_role(item)
        if item is not None and index in plan.ids:
            item = dialect.renamed(item, plan.ids[index])
        if item is not None and index in plan.unbound:
            item = dialect.without_ids(item, plan.unbound[index])
        # From the last to the first: one that has its new id is counted no more.
        for old, occurrence, new in sorted(plan.results.get(index, ()), key=_last_first):
            item = dialect.renamed_result(item, old, new or old, occurrence)
        for old, occurrence, new in sorted(plan.calls.get(index, ()), key=_last_first):
            item = None if item is None else dialect.renamed_call(item, old, new, occurrence)
        if item is not None and plan.names:
            item = dialect.renamed_tool(item, plan.names)
        return self._reduced(index, item) if index in plan.large else item

    def _reduced(self, index: int, item: Any) -> Any:
        places = self._plan.large[index]
        for blob in [blob for blob in self._dialect.blobs(item) if blob.path in places]:
            item = self._dialect.replace_blob(item, blob.path, _spoken(blob))
        return item

    def _sound(self, item: Any) -> Any | None:
        try:
            return self._dialect.with_sound_text(item)
        except RecursionError:  # nested so deeply that no walk comes to its end
            return item

    def _note(self, index: int, item: Any) -> Any:
        """A message that speaks for the lost beginning; what hung off the lost part hangs off it."""
        lost = self._plan.dangling.get(index, ())
        note = self._dialect.user_note(LOST_BEGINNING, item)
        note = self._dialect.relinked(note, dict.fromkeys(lost, self._before(note)) | self._links)
        self._is_last(note)
        return note

    def _remember(self, item: Any, *, kept: bool) -> None:
        own, parent = self._dialect.link(item)
        self.changed = self.changed or not kept
        if own is not None and not kept:
            self._links[own] = parent
        elif kept:
            self._is_last(item)

    def _is_last(self, item: Any) -> None:
        own, _ = self._dialect.link(item)
        if own is not None:
            self._last[self._dialect.facts(item).branch] = own

    def _answers(self, place: Place, after: Any) -> Iterator[Any]:
        """New items that hold the place's results."""
        if self._dialect.results == "together":
            yield self._answer(place, after)
            return
        for call in place.unanswered:
            after = self._dialect.error_results([call], after, INTERRUPTED)
            yield after
        for call, content, is_error in place.moved:
            after = self._dialect.error_results([call], after, content, is_error=is_error)
            yield after

    def _answer(self, place: Place, after: Any) -> Any:
        """A new item that holds the place's results; what followed `after` follows it from now on."""
        if place.unanswered:
            new = self._dialect.error_results(place.unanswered, after, INTERRUPTED)
        else:
            call, content, is_error = place.moved[0]
            new = self._dialect.error_results([call], after, content, is_error=is_error)
        # `after` itself may have been dropped just now, and then its parent comes before the new item.
        new = self._dialect.relinked(self._filled(place, new), self._links)
        before, behind = self._dialect.link(after)[0], self._dialect.link(new)[0]
        if before is not None and behind is not None:
            self._links[before] = behind
            self._is_last(new)
        return new

    def _filled(self, place: Place, item: Any) -> Any:
        """The item with the place's results added; those it holds already are not added again."""
        if place.unanswered:
            item = self._dialect.with_results(item, place.unanswered, INTERRUPTED)
        for call, content, is_error in place.moved:
            item = self._dialect.with_results(item, [call], content, is_error=is_error)
        return item


def _last_first(one: Renamed) -> int:
    return -one.occurrence


def _spoken(blob: Blob) -> str:
    """A text that stands for a payload: what it was, how large, and its digest."""
    try:
        data = base64.b64decode(blob.data, validate=True)
    except (binascii.Error, ValueError):
        data = blob.data.encode("utf-8", "surrogatepass")
    return (
        f"[synthetic text: {blob.media_type[:100]} of {len(data):,} bytes, SHA-256 "
        f"{hashlib.sha256(data).hexdigest()}, was taken out because the provider refuses it here.]"
    )
