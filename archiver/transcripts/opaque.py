"""Dialect "opaque": nothing is known of the items but what providers seal, so nothing in them is edited."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from archiver.transcripts import seals
from archiver.transcripts.dialect import Blob, Call, DialectDefaults, Facts, Path, Problem, Results

_FACTS = Facts("meta")


class Opaque(DialectDefaults):
    """Any other JSON, JSONL or text: redacted and kept whole."""

    name = "opaque"
    results: Results = "together"

    def facts(self, item: Any) -> Facts:
        return _FACTS

    def opaque(self, path: Path, item: Any = None) -> bool:
        return seals.is_sealed(path, item)

    def problems(self, items: Iterator[Any]) -> list[Problem]:
        return []

    def stub_result(self, item: Any, call_id: str, text: str) -> Any:
        return item

    def fold(self, item: Any) -> Any:
        return item

    def without_reasoning(self, item: Any) -> Any | None:
        return item

    def relinked(self, item: Any, removed: Mapping[str, str | None]) -> Any:
        return item

    def link(self, item: Any) -> tuple[str | None, str | None]:
        return None, None

    def blobs(self, item: Any) -> Iterator[Blob]:
        return iter(())

    def replace_blob(self, item: Any, path: Path, text: str) -> Any:
        return item

    def error_results(self, calls: Sequence[Call], after: Any, text: Any, *, is_error: bool = True) -> Any:
        raise TypeError("an opaque transcript has no calls")

    def with_results(self, item: Any, calls: Sequence[Call], text: Any, *, is_error: bool = True) -> Any:
        return item

    def result_content(self, item: Any, call_id: str, occurrence: int = 0) -> Any:
        return ""

    def without_result(self, item: Any, call_id: str, occurrence: int = 0) -> Any | None:
        return item

    def with_sound_text(self, item: Any) -> Any | None:
        return item

    def user_note(self, text: str, before: Any) -> Any:
        raise TypeError("an opaque transcript has no messages")
