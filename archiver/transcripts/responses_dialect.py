"""What the dialects made of Responses items share: edits, done to the items inside one of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from archiver.transcripts import responses_edits as edits
from archiver.transcripts.checks import without_surrogates
from archiver.transcripts.dialect import Blob, Call, DialectDefaults, Path, Results
from archiver.transcripts.places import at, put
from archiver.transcripts.responses_items import REASONING, RESULTS, kind_of, result_id

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

    def result_content(self, item: Any, call_id: str) -> Any:
        """The whole item of the result: its id stays with it."""
        inner = (at(item, place) for place in self.places(item))
        return next((one for one in inner if _answers(one, call_id)), "")

    def without_result(self, item: Any, call_id: str, occurrence: int = 0) -> Any | None:
        left = occurrence + 1

        def change(one: Any) -> Any | None:
            nonlocal left
            left -= _answers(one, call_id)
            return None if _answers(one, call_id) and left == 0 else one

        return self._changed(item, change)

    def with_sound_text(self, item: Any) -> Any | None:
        sound = without_surrogates(item)
        return self._changed(sound, _with_sound_name)

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


def _answers(one: Any, call_id: str) -> bool:
    kind = kind_of(one)
    return kind in RESULTS and result_id(one, kind) == call_id


def _with_sound_name(one: Any) -> Any:
    """The item with a tool's name that holds nothing but its characters."""
    name = one.get("name") if isinstance(one, dict) else None
    return {**one, "name": name.replace("\0", "")} if isinstance(name, str) and "\0" in name else one
