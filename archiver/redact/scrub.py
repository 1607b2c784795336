"""The redaction of one piece: a block of JSON lines, one JSON text, or plain text.

JSON lines are scanned raw first. A line without a trigger is copied; only lines with one are read token by
token and decoded. Triggers are made so that a raw scan sees all that a scan of the decoded text would see.
"""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from archiver import jsonio
from archiver.errors import RedactionUnavailableError
from archiver.redact.documents import KNOWN_PART, Documents
from archiver.redact.edits import Edit, settle
from archiver.redact.engine import Hit
from archiver.redact.exact import ExactMatcher
from archiver.redact.finder import Finder
from archiver.redact.glance import Glance
from archiver.redact.ledger import KNOWN, Ledger
from archiver.redact.negatives import is_scrambled
from archiver.redact.reuse import Known, Names, to_scan
from archiver.redact.streams import Streams, holds_records
from archiver.redact.texts import Texts
from archiver.redact.tokens import decode, string_around
from archiver.redact.work import SEPARATOR

Write = Callable[[bytes], object]
ItemOpaque = Callable[[tuple[str | int, ...], Any], bool]
"""A dialect's word on a leaf: its path inside the item, and the item."""

Clean = dict[ItemOpaque | None, set[bytes]]
"""Digests of lines in which nothing is, by what is opaque in them; and (None) of parts of strings."""

FLOOD: Final = "dense"
_PROVE_WHOLE = 8 << 20
_PLAIN_KEY = re.compile(r"[A-Za-z_]{1,30}")
_MOST_CLEAN = 100_000
_IN_A_ROW = 8
"""Lines with secrets after which the next one is read without a glance at it."""
_MANY = 10
"""Triggers of a line that take longer than its digest."""


def never(_path: tuple[str | int, ...], _item: Any) -> bool:
    """For texts of no dialect: nothing is opaque."""
    return False


class Scrubber:
    """Replaces secrets and notes them in the ledger."""

    def __init__(
        self,
        finder: Finder,
        exact: ExactMatcher,
        ledger: Ledger,
        *,
        rules: bool = True,
        decode_all: bool = False,
        clean: Clean | None = None,
        names: Names | None = None,
    ) -> None:
        """`rules=False` replaces known values only; `decode_all` skips the raw scan (to prove it right).

        `clean` holds digests of lines in which the rules found nothing, so that the last scan need not read
        them again; scrubbers that share it must share their rules. `names`, likewise, of pieces of lines in
        this and other runs.
        """
        self._clean: Clean = {} if clean is None else clean
        self._finder = finder
        self._exact = exact
        self._ledger = ledger
        self._rules = rules
        self._decode_all = decode_all
        self._reuse: Known | None = None
        if names is not None and not decode_all:
            self._reuse = Known(names, finder.rules if rules else None, *exact.parted())
        self._documents = Documents(finder, exact)
        self._glance = Glance(finder, exact, self._documents)
        self._texts = Texts(finder, exact, rules=rules)
        self._streams = Streams(finder, exact)
        self._harmless: set[bytes] = set()
        self._full = 0
        """How many of the last lines that were read held secrets, one after the other."""
        self._plain: dict[str, bool] = {}
        """Keys that were asked for, and whether they may be shown as part of a path."""

    def lines(
        self, block: bytes, first: int | Callable[[], int], place: str, opaque: ItemOpaque, write: Write
    ) -> None:
        """Copy a block of whole JSON lines to `write`; `first` gives the number of its first line, from 1."""
        done = number = 0
        for start, stop, edits in self.line_edits(block, opaque):
            if not number:
                number = first if isinstance(first, int) else first()
            if start > done:
                write(block[done:start])
            number += block.count(b"\n", done, start)
            self._put(block[start:stop], edits, f"{place} line {number}", write)
            done = stop
        if done < len(block):
            write(block[done:] if done else block)

    def line_edits(self, block: bytes, opaque: ItemOpaque) -> Iterator[tuple[int, int, list[Edit]]]:
        """The lines of a block that hold secrets: their bytes and their edits."""
        if self._reuse is None or self._streams.may_be_in(block):
            # What was clean alone may hold the first half of what a further record completes.
            yield from self._scan(block, opaque, rules=self._rules)
            return
        pieces = self._reuse.pieces(block, opaque, whole=holds_records(block))
        for first, last, rules in to_scan(pieces):
            low, high = pieces[first].start, pieces[last - 1].stop
            part = block if high - low == len(block) else block[low:high]
            held: list[int] = []
            for start, stop, edits in self._scan(part, opaque, rules=rules):
                held.append(low + start)
                yield low + start, low + stop, edits
            for piece in pieces[first:last]:
                if bisect_left(held, piece.start) == bisect_left(held, piece.stop):
                    self._reuse.note(piece)

    def _scan(
        self, block: bytes, opaque: ItemOpaque, *, rules: bool
    ) -> Iterator[tuple[int, int, list[Edit]]]:
        hits = self._hits(block, rules=rules, between=b"\n")
        told = hits if rules and not self._decode_all else None
        split = self._streams.edits(block, rules=rules, hits=told)
        if split:
            hits = sorted({*hits, *((edit.end, KNOWN_PART) for edit in split)})
        at, count = 0, len(hits)
        while at < count:
            first = hits[at][0] - 1
            start = block.rfind(b"\n", 0, first) + 1
            stop = block.find(b"\n", first)
            stop = len(block) if stop < 0 else stop
            upto = at
            while upto < count and hits[upto][0] - 1 <= stop:
                upto += 1
            if start == 0 and stop >= len(block) - 1:
                stop = len(block)  # one line alone, perhaps a huge one: it need not be copied
            inside = [(end - start, number) for end, number in hits[at:upto]]
            edits = self._line_edits(block[start:stop], inside, opaque, rules=rules)
            if split:
                here = [edit.moved(-start) for edit in split if start <= edit.start < stop]
                edits = settle([*edits, *here], self._finder)
            if edits:
                yield start, stop, edits
            at = upto

    def json(self, text: bytes, place: str, opaque: ItemOpaque = never) -> bytes:
        """One JSON text (not necessarily on one line) with its secrets replaced."""
        edits = self.json_edits(text, opaque)
        if not edits:
            return text
        out: list[bytes] = []
        self._put(text, edits, place, out.append)
        return b"".join(out)

    def json_edits(self, text: bytes, opaque: ItemOpaque = never) -> list[Edit]:
        """The secrets of one JSON text, in order, not overlapping."""
        return self._line_edits(text, self._hits(text, rules=self._rules), opaque, rules=self._rules)

    def is_quiet(self, data: bytes) -> bool:
        """True when nothing can be found in a text, however it is read: it has no trigger."""
        return b"\x1b" not in data and b"delta" not in data and not self._hits(data, rules=self._rules)

    def text(self, data: bytes, place: str) -> bytes:
        """Plain text with its secrets replaced."""
        edits = self.text_edits(data)
        return self.splice(data, edits, place) if edits else data

    def text_edits(self, data: bytes) -> list[Edit]:
        """The secrets of plain text, in order, not overlapping."""
        return self._texts.edits(data)

    def splice(self, data: bytes, edits: Sequence[Edit], place: str) -> bytes:
        """The data with each edit replaced by its placeholder, which the ledger notes."""
        out: list[bytes] = []
        at = 0
        for edit in edits:
            out.append(data[at : edit.start])
            out.append(self.placeholder(edit, place))
            at = edit.end
        out.append(data[at:])
        return b"".join(out)

    def placeholder(self, edit: Edit, place: str) -> bytes:
        """The placeholder of one edit, which is noted; nothing for a further part of a secret."""
        if edit.rest:
            return b""
        rule, kind = self._named(edit.rule)
        return self._ledger.replace(rule, kind, edit.value, place)

    def whole(self, text: str, place: str) -> str:
        """A placeholder for the whole of a text."""
        return self._ledger.replace(KNOWN, KNOWN, text.encode("utf-8", "surrogatepass"), place).decode()

    def rule_of(self, edit: Edit) -> str:
        """The id of the rule behind an edit."""
        return self._named(edit.rule)[0]

    def _named(self, rule: int) -> tuple[str, str]:
        if rule < 0:
            return KNOWN, KNOWN
        if rule == self._finder.flood:
            return FLOOD, FLOOD
        return self._finder.rules.rules[rule].id, self._finder.rules.rules[rule].kind

    def _hits(self, data: bytes, *, rules: bool, between: bytes = SEPARATOR) -> list[Hit]:
        """All triggers in a raw text, ascending."""
        ends = self._exact.ends(data)
        if rules and self._decode_all:
            ends += _line_ends(data)
        elif not rules and self._exact:
            ends += self._finder.escaped(data)
        hits = [(end, KNOWN_PART) for end in ends]
        if rules and not self._decode_all:
            hits += self._finder.hits(data, between)
        return sorted(dict.fromkeys(hits))  # nearly in order, which a set would not keep

    def _line_edits(self, line: bytes, hits: list[Hit], opaque: ItemOpaque, *, rules: bool) -> list[Edit]:
        if not hits:
            return []
        alone = rules and not self._decode_all and not self._exact.ends(line)
        if alone and self._full < _IN_A_ROW and not self._is_suspicious(line, hits):
            return []
        ends = sorted({end for end, _ in hits})
        wanted = None if self._decode_all or self._finder.is_cut(hits) else ends
        item: list[Any] = []

        def is_opaque(path: tuple[str | int, ...]) -> bool:
            if not item:
                item.append(jsonio.loads(line) if len(line) <= _PROVE_WHOLE else None)
            return opaque(path, item[0])

        if not rules and not self._decode_all and not self._may_hold_known(line, ends):
            return []
        if not alone:
            return self._documents.edits(line, wanted, is_opaque, rules=rules)
        clean = self._clean.setdefault(opaque, set())
        name = hashlib.sha256(line).digest()[:16]
        if name in clean:
            return []
        edits = self._documents.edits(line, wanted, is_opaque)
        self._full = self._full + 1 if edits else 0
        if not edits and len(clean) < _MOST_CLEAN:
            clean.add(name)
        return edits

    def _is_suspicious(self, line: bytes, hits: list[Hit]) -> bool:
        """False when a glance says so; of lines with many triggers, the same line is looked at once."""
        if len(hits) < _MANY:
            return self._glance.suspicious(line, hits)
        name = hashlib.sha256(line).digest()[:16]
        if name in self._harmless:
            return False
        told = self._glance.suspicious(line, hits)
        if not told and len(self._harmless) < _MOST_CLEAN:
            self._harmless.add(name)
        return told

    def _may_hold_known(self, line: bytes, ends: list[int]) -> bool:
        """False when it is certain that no string with a trigger holds a known value; that is cheap."""
        done = 0
        for end in ends:
            if end <= done:
                continue
            place = string_around(line, end)
            if place is None:
                return True
            done = place[1]
            data = decode(line[place[0] : done])
            if self._exact.find(data):
                return True
            # What is escaped once more, in JSON inside the string, shows only when that is decoded too.
            if b"\\" in data and (self._exact.ends(data) or self._finder.escaped(data)):
                return True
        return False

    def _shown(self, path: tuple[str | int, ...]) -> str:
        """A path as JSON path; a key that is not one plain word, or holds a secret, is not shown."""
        out = ["$"]
        for key in path:
            if isinstance(key, int):
                out.append(f"[{key}]")
            else:
                out.append(f".{key}" if self._is_plain(key) else ".*")
        return "".join(out)

    def _is_plain(self, key: str) -> bool:
        plain = self._plain.get(key)
        if plain is None:
            if len(self._plain) > _MOST_CLEAN:
                self._plain.clear()
            plain = self._plain[key] = self._judge_key(key)
        return plain

    def _judge_key(self, key: str) -> bool:
        data = key.encode("utf-8", "surrogatepass")
        if not _PLAIN_KEY.fullmatch(key) or is_scrambled(data, 8):
            return False
        return not self._finder.find(data) and not self._exact.ends(data)

    def _put(self, line: bytes, edits: Sequence[Edit], place: str, write: Write) -> None:
        """Write a JSON text with its edits, having proved that it is JSON still."""
        pieces = self._pieces(line, edits, place)
        if len(line) > _PROVE_WHOLE:  # each edit lies inside one string; to parse it all would take too much
            for piece in pieces:
                write(piece)
            return
        changed = b"".join(pieces)
        try:
            jsonio.loads(changed)
        except ValueError as error:
            raise RedactionUnavailableError(
                f"{place} would not be JSON after redaction: a fault of the redaction engine",
                remedy="report it; nothing was saved",
            ) from error
        write(changed)

    def _pieces(self, line: bytes, edits: Sequence[Edit], place: str) -> Iterator[bytes]:
        at = 0
        for edit in edits:
            yield line[at : edit.start]
            yield self.placeholder(edit, f"{place} {self._shown(edit.path)}")
            at = edit.end
        yield line[at:]


def _line_ends(data: bytes) -> list[int]:
    return [match.start() for match in re.finditer(rb"\n", data) if match.start()] or [len(data)]


__all__ = ["FLOOD", "KNOWN", "ItemOpaque", "Scrubber", "never"]
