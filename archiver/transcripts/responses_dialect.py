"""What the dialects made of Responses items share: edits, done to the items inside one of their own."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from archiver.transcripts import responses_edits as edits
from archiver.transcripts.checks import without_surrogates
from archiver.transcripts.dialect import Blob, Call, DialectDefaults, Path, Results
from archiver.transcripts.places import at, put
from archiver.transcripts.responses_checks import with_sound_role, with_sound_text
from archiver.transcripts.responses_items import REASONING, RESULTS, kind_of, result_id
from archiver.transcripts.responses_sealed import is_broken

Change = Callable[[Any], Any | None]
"""Gives the changed Responses item, the same object, or None where it goes."""


class ResponsesDialect(DialectDefaults):
    """The edits; a subclass says where the Responses items of one transcript item stand."""

    results: Results = "apart"
    no_image: str | None = None
    """What stands in a generated image's place once that became an artifact."""

    def places(self, item: Any) -> Sequence[Path]:
        """The paths of the Responses items inside a transcript item; empty where it is one itself."""
        raise NotImplementedError

    def stub_result(self, item: Any, call_id: str, text: str) -> Any:
        return self._changed(
            item, lambda one: edits.with_output(one, text) if _answers(one, call_id) else one
        )

    def without_reasoning(self, item: Any) -> Any | None:
        return self._changed(item, lambda one: None if kind_of(one) == REASONING else one)

    def relinked(self, item: Any, removed: Mapping[str, str | None]) -> Any:
        return item

    def link(self, item: Any) -> tuple[str | None, str | None]:
        return None, None

    def blobs(self, item: Any) -> Iterator[Blob]:
        for place in self.places(item):
            for blob in edits.blobs(at(item, place)):
                yield replace(blob, path=(*place, *blob.path))

    def replace_blob(self, item: Any, path: Path, text: str) -> Any:
        place = next(place for place in self.places(item) if path[: len(place)] == place)
        inner = edits.without_blob(at(item, place), path[len(place) :], text, empty=self.no_image)
        return put(item, place, inner)

    def with_results(self, item: Any, calls: Sequence[Call], text: Any, *, is_error: bool = True) -> Any:
        return item

    def result_content(self, item: Any, call_id: str, occurrence: int = 0) -> Any:
        """The whole item of the result: its id stays with it."""
        inner = (at(item, place) for place in self.places(item))
        found = (one for one in inner if _answers(one, call_id))
        return next(islice(found, occurrence, None), "")

    def without_result(self, item: Any, call_id: str, occurrence: int = 0) -> Any | None:
        return self._one_of(item, lambda one: _answers(one, call_id), occurrence, lambda _: None)

    def with_sound_text(self, item: Any) -> Any | None:
        return self._changed(without_surrogates(item), with_sound_text)

    def renamed_call(self, item: Any, call_id: str, new_id: str | None, occurrence: int = 0) -> Any | None:
        def new(one: Any) -> Any | None:
            return None if new_id is None else edits.with_call_id(one, new_id)

        return self._one_of(item, lambda one: edits.is_call(one, call_id), occurrence, new)

    def renamed_result(self, item: Any, call_id: str, new_id: str, occurrence: int = 0) -> Any:
        def new(one: Any) -> Any:
            return edits.with_call_id(one, new_id)

        return self._one_of(item, lambda one: _answers(one, call_id), occurrence, new)

    def renamed_tool(self, item: Any, names: Mapping[str, str]) -> Any:
        return self._changed(item, lambda one: edits.renamed_tool(one, names))

    def renamed(self, item: Any, new_id: str | None) -> Any | None:
        """An item needs no id, and one that the provider did not give it would refuse: there is none then."""
        return self._changed(item, lambda one: None if new_id is None else edits.without_id(one))

    def without_broken_seals(self, item: Any) -> Any | None:
        return self._changed(item, lambda one: None if _is_broken_thought(one) else one)

    def without_ids(self, item: Any, ids: Collection[str]) -> Any:
        return self._changed(item, lambda one: edits.without_id(one) if _own_id(one) in ids else one)

    def with_sound_role(self, item: Any) -> Any | None:
        return self._changed(item, with_sound_role)

    def _one_of(self, item: Any, which: Callable[[Any], bool], occurrence: int, new: Change) -> Any | None:
        """The item with that one changed of the Responses items inside that are `which`."""
        left = occurrence + 1

        def change(one: Any) -> Any | None:
            nonlocal left
            found = which(one)
            left -= found
            return new(one) if found and left == 0 else one

        return self._changed(item, change)

    def _changed(self, item: Any, change: Change) -> Any | None:
        """The item with its Responses items changed, without those that go; None when nothing is left."""
        gone: list[Path] = []
        for place in self.places(item):
            one = at(item, place)
            made = change(one)
            if made is None:
                gone.append(place)
            elif made is not one:
                item = put(item, place, made)
        for place in reversed(gone):
            if not place or not isinstance(place[-1], int):
                return None
            kept = at(item, place[:-1])
            item = put(item, place[:-1], [*kept[: place[-1]], *kept[place[-1] + 1 :]])
        return item


def _is_broken_thought(one: Any) -> bool:
    return kind_of(one) == REASONING and is_broken(one.get("encrypted_content"))


def _own_id(one: Any) -> str:
    own = one.get("id") if isinstance(one, dict) else None
    return own if isinstance(own, str) else ""


def _answers(one: Any, call_id: str) -> bool:
    kind = kind_of(one)
    return kind in RESULTS and result_id(one, kind) == call_id
