"""Redaction of a file that is not one JSON value a line: text in windows, anything else only looked at."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from typing import Final

from archiver.redact.edits import Edit
from archiver.redact.inflate import START, Allowance, Inflater, Wide, inflater_for
from archiver.redact.scrub import FLOOD, KNOWN, Scrubber
from archiver.scratch import Scratch, Spooled

WINDOW = 1 << 20
LONGEST_LINE = 4 << 20
"""A longer line is cut, so it is judged as text even if it is JSON."""
OVERLAP = 64 << 10
"""No secret is longer than this; one that begins in a window and ends after it is seen whole in the next."""
CONTEXT = 1 << 10
"""Bytes already written that stay in view, because they say what follows them."""

_SURE: Final = frozenset({KNOWN, FLOOD})
"""What counts in bytes of any kind: values that are known, and places that are not looked at one by one."""
_TELLING: Final = 8
"""Bytes of a credential that have to be text: chance makes these of four in ten thousand places."""
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\x9f]")


@dataclass(frozen=True, slots=True)
class RawOutcome:
    """The redacted file, or why it was left out and the rules that found something in it."""

    spooled: Spooled | None
    reason: str | None = None
    rules: tuple[str, ...] = ()


class RawPass:
    """Takes chunks of a file and makes its redacted copy, in bounded memory."""

    def __init__(
        self,
        scrubber: Scrubber,
        scratch: Scratch | None,
        place: str,
        *,
        noting: bool = False,
        hashed: bool = False,
        allowance: Allowance | None = None,
    ) -> None:
        """Without `scratch` nothing is written, and noted only if asked: `found` says whether it would be.

        `hashed`: what is written gets its SHA-256. `allowance`: what may still be inflated.
        """
        self._allowance = allowance
        self._noting = noting or scratch is not None
        self._scrubber = scrubber
        self._place = place
        self._spool = scratch.spool("raw", hashed=hashed) if scratch is not None else None
        self._buffer = b""
        self._done = 0
        self._line = 1
        self._found: set[str] = set()
        self._text = codecs.getincrementaldecoder("utf-8")()
        self._binary = False
        self._inflater: Inflater | None = None
        self._start: bytes | None = b""

    def feed(self, chunk: bytes) -> None:
        """The next bytes of the file."""
        if self._start is not None:
            chunk = self._start + chunk
            self._start = chunk
            if len(chunk) >= START:
                self._begin(chunk)
        else:
            self._take(chunk)

    def _begin(self, start: bytes) -> None:
        self._start = None
        self._inflater = inflater_for(start, self._allowance)
        self._take(start)

    def _take(self, chunk: bytes) -> None:
        self._check_text(chunk)
        if self._binary and self._inflater is None:
            self._inflater = Wide()
        if self._inflater is not None:
            for piece in self._inflater.feed(chunk):
                self._look(piece)
        self._buffer = self._buffer + chunk if self._buffer else chunk
        held = len(self._buffer) - self._done
        if held >= WINDOW + OVERLAP and (held >= LONGEST_LINE + OVERLAP or self._line_end() > 0):
            self._advance(final=False)

    def close(self) -> RawOutcome:
        """The end of the file."""
        if self._start:
            self._begin(self._start)
        self._check_text(b"", final=True)
        self._advance(final=True)
        spooled = self._spool.close() if self._spool is not None else None
        reason = self._reason()
        if reason is None:
            return RawOutcome(spooled)
        if spooled is not None:
            spooled.path.unlink()
        return RawOutcome(None, reason, tuple(sorted(self._found)))

    def _reason(self) -> str | None:
        if self._inflater is not None:
            for piece in self._inflater.close():
                self._look(piece)
            if self._inflater.failure is not None:
                return f"it could not be looked into: {self._inflater.failure}"
        if self._found and (self._binary or self._inflater is not None):
            return "it holds credentials and is no text in UTF-8, so they cannot be replaced in it"
        return None

    def _look(self, piece: bytes) -> None:
        """Search bytes that will not be written."""
        for edit in self._scrubber.text_edits(piece):
            if self._counts(edit):
                self._note(edit)

    def _counts(self, edit: Edit) -> bool:
        """False for what chance made of bytes that are no text: a name and a sign without text behind it."""
        is_text = not self._binary and self._inflater is None
        return is_text or self._scrubber.rule_of(edit) in _SURE or _begins_as_text(edit.value)

    @property
    def found(self) -> bool:
        """True when something was found so far."""
        return bool(self._found)

    def abandon(self) -> None:
        """Give up: the file could not be read to its end."""
        if self._spool is not None:
            self._spool.abandon()
            self._spool.path.unlink(missing_ok=True)

    def _note(self, edit: Edit) -> bytes:
        self._found.add(self._scrubber.rule_of(edit))
        if not self._noting:
            return b""
        return self._scrubber.placeholder(edit, f"{self._place} line {self._line}")

    def _check_text(self, chunk: bytes, *, final: bool = False) -> None:
        if self._binary:
            return
        if b"\0" in chunk:
            self._binary = True
            return
        try:
            self._text.decode(chunk, final)
        except UnicodeDecodeError:
            self._binary = True

    def _advance(self, *, final: bool) -> None:
        buffer = self._buffer
        edits = [
            edit for edit in self._scrubber.text_edits(buffer) if edit.end > self._done and self._counts(edit)
        ]
        stop = len(buffer) if final else self._stop(edits)
        at = self._done
        for edit in edits:
            if edit.start >= stop:
                break  # the next window shows it, and all that follows it, once more
            start = max(edit.start, at)
            self._write(buffer[at:start])
            self._put(self._note(edit))
            self._line += buffer.count(b"\n", start, edit.end)
            at = edit.end
        self._write(buffer[at : max(at, stop)])
        at = max(at, stop)
        keep = max(0, at - CONTEXT)
        self._buffer = buffer[keep:]
        self._done = at - keep

    def _stop(self, edits: list[Edit]) -> int:
        """Where to stop writing: no secret of several parts is written in part."""
        stop = self._line_end() or len(self._buffer) - OVERLAP
        head = 0
        for edit in edits:
            if not edit.rest:
                head = edit.start
            elif edit.start >= stop > head > self._done:
                return head
        return stop

    def _line_end(self) -> int:
        """Where the last line ends that can be written; 0 where none does."""
        return self._buffer.rfind(b"\n", self._done, len(self._buffer) - OVERLAP) + 1

    def _write(self, data: bytes) -> None:
        if data:
            self._put(data)
            self._line += data.count(b"\n")

    def _put(self, data: bytes) -> None:
        if self._spool is not None:
            self._spool.write(data)


def _begins_as_text(value: bytes) -> bool:
    if len(value) < _TELLING and not value.isascii():
        return False  # so few bytes are UTF-8 by chance too often
    try:
        text = value.decode()
    except UnicodeDecodeError as error:
        if error.start < _TELLING:
            return False
        text = value[: error.start].decode()
    return _CONTROL.search(text.encode()[:_TELLING].decode("utf-8", "ignore")) is None
