"""Sees the redacted items of a transcript on their way, so that surveying them needs no pass of its own."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from archiver.compact import CompactOptions, Outline
from archiver.model import Transcript
from archiver.transcripts import get_dialect
from archiver.transcripts.survey import PartSurvey, Surveyor


class Watch:
    """The survey and the outline of each part of one transcript."""

    def __init__(self, transcript: Transcript, options: CompactOptions, *, survey: bool = True) -> None:
        """`survey`: whether `surveys` will be asked for."""
        self._transcript = transcript
        self._dialect = get_dialect(transcript.dialect)
        self._options = options
        self._survey = survey
        self._surveyors = [Surveyor(self._dialect) for _ in transcript.parts]
        self.outlines = [Outline(self._dialect, options) for _ in transcript.parts]

    def part(self, number: int, seen: object = None) -> Callable[[Any], object]:
        """What sees each item of that part, in order; asked again, it starts anew.

        After those of `seen`, an earlier outline by the same options, where that is given.
        """
        surveyor = self._surveyors[number] = Surveyor(self._dialect)
        outline = self.outlines[number] = (
            self._copy(seen) if isinstance(seen, Outline) else Outline(self._dialect, self._options)
        )

        def see(item: Any) -> None:
            outline.see(item, surveyor.see(item) if self._survey else self._dialect.facts(item))

        return see

    def seen(self, number: int) -> Outline:
        """The outline of that part as it is now, for a later save."""
        return self._copy(self.outlines[number])

    def surveys(self) -> list[PartSurvey]:
        """The surveys, once every part was seen."""
        parts = zip(self._surveyors, self._transcript.parts, strict=True)
        return [surveyor.finish(part.header) for surveyor, part in parts]

    def _copy(self, outline: Outline) -> Outline:
        same = (self._dialect, self._options)
        return copy.deepcopy(outline, {id(one): one for one in same})
