"""The redaction of whole files as they lie: of any form, and byte for byte outside of what is replaced.

A file is looked at first (`look`), so that what is found in one is searched for in all (`settle`), and then
looked at or copied once more. What a file is decides how: JSON lines one by one, a JSON document as one text,
anything else in windows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from archiver import jsonio
from archiver.model import LeftOut, Member, Receipt
from archiver.redact.exact import ExactMatcher
from archiver.redact.file_forms import DOCUMENT_LIMIT, Bytes, Held, Shape, is_json, parsed
from archiver.redact.members import MemberScan, whole_lines
from archiver.redact.raw import RawPass
from archiver.redact.redactor import Redactor
from archiver.redact.scrub import ItemOpaque, Scrubber, never
from archiver.scratch import Scratch, Spooled
from archiver.transcripts import DIALECTS, detect, get_dialect


@dataclass(frozen=True, slots=True)
class Looked:
    """What came of one file: its copy if one was asked for, or why there can be none."""

    found: int = 0
    spooled: Spooled | None = None
    reason: str | None = None
    rules: tuple[str, ...] = ()


class FileRedactor(Redactor):
    """Looks for credentials in files and makes redacted copies of them."""

    def with_key(self, key: bytes) -> FileRedactor:
        """Another one with the same rules and known values, which has found nothing yet."""
        return FileRedactor(self._finder, key, self._given)

    def look(self, source: Bytes, shape: Shape, place: str, *, rules: bool = True) -> Looked:
        """Note what the file holds; `rules=False` searches for known values alone."""
        return self._pass(source, shape, place, rules, None)

    def copy(self, source: Bytes, shape: Shape, place: str, scratch: Scratch) -> Looked:
        """A redacted copy in a private file; none where the file cannot be made safe."""
        return self._pass(source, shape, place, True, scratch)

    def name(self, name: str) -> str:
        """A name with its credentials replaced, which are noted as found in a name."""
        scrubber = Scrubber(self._finder, self._known(), self._ledger)
        changed = scrubber.text(name.encode("utf-8", "surrogatepass"), "the name of a file")
        return changed.decode("utf-8", "surrogatepass")

    def whole_name(self, name: str) -> str:
        """A placeholder for the whole of a name that is too long to be one."""
        return Scrubber(self._finder, self._known(), self._ledger).whole(name, "the name of a file")

    def shown(self, text: str) -> str:
        """A text without any value that is known by now; nothing is noted."""
        return self._shown(text)

    def leave_out(self, name: str, looked: Looked) -> None:
        """Note in the receipt that a file has no copy, and why."""
        self._left_out.append(LeftOut(member=name, reason=looked.reason or "", rules=looked.rules))

    def settle(self) -> bool:
        """Forget where things were found, but not what: the next pass notes every occurrence anew.

        False if nothing was found: then no other pass finds more.
        """
        if not self._ledger.total:
            return False
        self._ledger = self._ledger.afresh()
        return True

    def stored(self, members: tuple[Member, ...], dialect: str, scratch: Scratch) -> Receipt:
        """What is found in the members of a bundle."""
        opaque = get_dialect(dialect if dialect in DIALECTS else detect.OPAQUE).opaque
        scrubber = Scrubber(self._finder, ExactMatcher(self._registered), self._ledger)
        scan = MemberScan(scrubber, opaque, scratch, foreign=True)
        for member in members:
            made = scan.scan(member)
            if made is not None and made is not member and isinstance(made.source, Path):
                made.source.unlink()
        self._left_out.extend(scan.left_out)
        return self.receipt()

    def _pass(self, source: Bytes, shape: Shape, place: str, rules: bool, scratch: Scratch | None) -> Looked:
        scrubber = Scrubber(self._finder, self._known(), self._ledger, rules=rules)
        before = self._ledger.total
        if shape.form == "document" and source.size <= DOCUMENT_LIMIT:
            source = Held(b"".join(source.blocks()))
        if shape.form == "raw" or (shape.form == "document" and not _is_document(source)):
            return self._raw(source, place, scrubber, scratch)
        spool = scratch.spool("copy", hashed=False) if scratch is not None else None
        write: Callable[[bytes], object] = _nowhere if spool is None else spool.write
        if shape.form == "document":
            text = b"".join(source.blocks())
            write(scrubber.json(text, place, _of_whole(shape.opaque, text)))
        else:
            _Lines(scrubber, place, shape.opaque, write).all_of(source)
        return Looked(self._ledger.total - before, spool.close() if spool is not None else None)

    def _raw(self, source: Bytes, place: str, scrubber: Scrubber, scratch: Scratch | None) -> Looked:
        before = self._ledger.total
        work = RawPass(scrubber, scratch, place, noting=True)
        for block in source.blocks():
            work.feed(block)
        outcome = work.close()
        found = self._ledger.total - before
        return Looked(found, outcome.spooled, outcome.reason, outcome.rules)


class _Lines:
    """JSON lines; one that is damaged, as the last of a session that died may be, is taken as text."""

    def __init__(
        self, scrubber: Scrubber, place: str, opaque: ItemOpaque, write: Callable[[bytes], object]
    ) -> None:
        self._scrubber = scrubber
        self._place = place
        self._opaque = opaque
        self._write = write
        self._number = 1

    def all_of(self, source: Bytes) -> None:
        for block in whole_lines(source.blocks()):
            done = start = 0
            while start < len(block):
                stop = block.find(b"\n", start) + 1 or len(block)
                if not is_json(block[start:stop]):
                    self._json(block[done:start])
                    self._text(block[start:stop])
                    done = stop
                start = stop
            self._json(block[done:])

    def _json(self, lines: bytes) -> None:
        if lines:
            self._scrubber.lines(lines, self._number, self._place, self._opaque, self._write)
            self._number += lines.count(b"\n")

    def _text(self, line: bytes) -> None:
        self._write(self._scrubber.text(line, f"{self._place} line {self._number}"))
        self._number += line.count(b"\n")


def _is_document(source: Bytes) -> bool:
    """Whether it is still what it was when its shape was found: files are written to meanwhile."""
    return isinstance(source, Held) and parsed(source.data) is not None


def _of_whole(opaque: ItemOpaque, text: bytes) -> ItemOpaque:
    """The same of a document that is too large to be parsed again for every word."""
    if opaque is never:
        return never
    value = jsonio.loads(text)
    return lambda path, _item: opaque(path, value)


def _nowhere(_data: bytes) -> None:
    """For a look: nothing is written."""
