"""The redaction of a content that is held in memory: a file of a workspace, or an object of git."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from archiver.redact import json_files
from archiver.redact.edits import Edit
from archiver.redact.file_forms import Held, Shape, parsed, shape_of
from archiver.redact.inflate import Allowance
from archiver.redact.inflate.kinds import kind_of
from archiver.redact.raw import RawPass
from archiver.redact.scrub import Scrubber
from archiver.transcripts import detect

_OPENINGS: Final = (b"{", b"[")
_BLOCK: Final = 1 << 20
_PASSES: Final = 3
"""What redaction joined may look like a credential once more; a text that never settles is left out."""
UNSETTLED: Final = "it holds credentials that could not be told from what is around them"


@dataclass(frozen=True, slots=True)
class Seen:
    """A content after its redaction: `data` as it may be carried, or None and the reason why it may not."""

    data: bytes | None
    reason: str | None = None
    rules: tuple[str, ...] = ()
    """The rules that found something."""


class Contents:
    """Scans contents by one set of rules and values; what it finds is noted in the ledger of its scrubber."""

    def __init__(self, scrubber: Scrubber, allowance: Allowance) -> None:
        """`allowance` is what may still be inflated."""
        self._scrubber = scrubber
        self._allowance = allowance

    def see(self, data: bytes, place: str) -> Seen:
        """Text with its credentials replaced; anything else as it is, or not at all."""
        if not is_text(data):
            return self._closed(data, place)
        edits = self._edits(data)
        if not edits:
            return Seen(data)
        rules = {self._scrubber.rule_of(edit) for edit in edits}
        shape = shape_of(Held(data))
        changed = self._replaced(data, edits, shape, place)
        if shape.dialect != detect.OPAQUE:  # its seals may look like credentials, and stay
            return Seen(changed, None, tuple(sorted(rules)) if changed != data else ())
        for _ in range(_PASSES):
            edits = self._edits(changed)
            if not edits:
                return Seen(changed, None, tuple(sorted(rules)))
            rules.update(map(self._scrubber.rule_of, edits))
            changed = self._replaced(changed, edits, shape_of(Held(changed)), place)
        return Seen(None, UNSETTLED, tuple(sorted(rules)))

    def _edits(self, data: bytes) -> list[Edit]:
        """A JSON document is judged as such, as the last scan does."""
        if data[:64].lstrip()[:1] not in _OPENINGS:
            return self._scrubber.text_edits(data)
        if self._scrubber.is_quiet(data):
            return []
        is_json = parsed(data) is not None
        return self._scrubber.json_edits(data) if is_json else self._scrubber.text_edits(data)

    def _replaced(self, data: bytes, edits: Sequence[Edit], shape: Shape, place: str) -> bytes:
        if shape.form != "raw":
            out: list[bytes] = []
            json_files.copy(Held(data), shape, place, self._scrubber, out.append)
            return b"".join(out)
        return b"".join(self._spliced(data, edits, place))

    def _spliced(self, data: bytes, edits: Sequence[Edit], place: str) -> Iterator[bytes]:
        at, line = 0, 1
        for edit in edits:
            line += data.count(b"\n", at, edit.start)
            yield data[at : edit.start]
            yield self._scrubber.placeholder(edit, f"{place} line {line}")
            line += data.count(b"\n", edit.start, edit.end)
            at = edit.end
        yield data[at:]

    def _closed(self, data: bytes, place: str) -> Seen:
        work = RawPass(self._scrubber, None, place, noting=True, allowance=self._allowance)
        for at in range(0, len(data), _BLOCK):
            work.feed(data[at : at + _BLOCK])
        outcome = work.close()
        return Seen(data if outcome.reason is None else None, outcome.reason, outcome.rules)


def is_text(data: bytes) -> bool:
    """True for UTF-8 without NUL that is no archive."""
    if b"\0" in data:
        return False
    if not data.isascii():
        try:
            data.decode()
        except UnicodeDecodeError:
            return False
    return kind_of(data) is None
