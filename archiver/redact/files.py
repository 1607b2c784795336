"""The redaction of whole files as they lie: of any form, and byte for byte outside of what is replaced.

A file is looked at first (`look`), so that what is found in one is searched for in all (`settle`), and then
looked at or copied once more. What a file is decides how: JSON lines one by one, a JSON document as one text,
anything else in windows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from archiver.model import LeftOut, Member, Receipt
from archiver.redact import json_files
from archiver.redact.file_forms import DOCUMENT_LIMIT, Bytes, Held, Shape
from archiver.redact.later import Later
from archiver.redact.members import MemberScan
from archiver.redact.raw import RawPass
from archiver.redact.redactor import Redactor
from archiver.redact.scrub import Scrubber
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
        return FileRedactor(self._finder, key, self._values.given)

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
        self._later = Later(self._finder, self._ledger, self._values, self._key)
        return True

    def stored(self, members: tuple[Member, ...], dialect: str, scratch: Scratch) -> Receipt:
        """What is found in the members of a bundle."""
        opaque = get_dialect(dialect if dialect in DIALECTS else detect.OPAQUE).opaque
        scrubber = Scrubber(self._finder, self._values.registered_alone(), self._ledger)
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
        if shape.form == "raw" or (shape.form == "document" and not json_files.is_document(source)):
            return self._raw(source, place, scrubber, scratch)
        spool = scratch.spool("copy", hashed=False) if scratch is not None else None
        write: Callable[[bytes], object] = _nowhere if spool is None else spool.write
        json_files.copy(source, shape, place, scrubber, write)
        return Looked(self._ledger.total - before, spool.close() if spool is not None else None)

    def _raw(self, source: Bytes, place: str, scrubber: Scrubber, scratch: Scratch | None) -> Looked:
        before = self._ledger.total
        work = RawPass(scrubber, scratch, place, noting=True)
        for block in source.blocks():
            work.feed(block)
        outcome = work.close()
        found = self._ledger.total - before
        return Looked(found, outcome.spooled, outcome.reason, outcome.rules)


def _nowhere(_data: bytes) -> None:
    """For a look: nothing is written."""
