"""What to replace in a text, in order."""

from __future__ import annotations

from dataclasses import dataclass, replace

from archiver.redact.finder import Finder
from archiver.redact.tokens import Path


@dataclass(frozen=True, slots=True)
class Edit:
    """Bytes of the raw text to replace: the rule (-1: a known value), the secret, and where it stands."""

    start: int
    end: int
    rule: int
    value: bytes
    path: Path
    rest: bool = False
    """True for a further part of a secret whose first part is another edit: it is only taken out."""

    def moved(self, by: int) -> Edit:
        """The same edit in a text that has more bytes before it."""
        return replace(self, start=self.start + by, end=self.end + by)


def settle(found: list[Edit], finder: Finder) -> list[Edit]:
    """Put edits in order and join those that overlap; the one that knows most gives rule and value."""

    def weight(edit: Edit) -> tuple[bool, int, int]:
        # What was found over several records is more than one of them shows.
        return edit.rest, len(edit.value) * (finder.tells(edit.rule) > 0), finder.tells(edit.rule)

    settled: list[Edit] = []
    for edit in sorted(found, key=lambda edit: (edit.start, -edit.end)):
        last = settled[-1] if settled else None
        if last is None or edit.start >= last.end:
            settled.append(edit)
        elif edit.end > last.end:
            best = max(last, edit, key=lambda one: (finder.tells(one.rule), one.end - one.start))
            rest = last.rest and edit.rest
            settled[-1] = Edit(last.start, edit.end, best.rule, best.value, last.path, rest)
        elif (edit.start, edit.end) == (last.start, last.end) and weight(edit) > weight(last):
            settled[-1] = edit
    return settled
