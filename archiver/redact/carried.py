"""The files of a workspace as they may be carried: redacted, as they are, or not at all.

What was scanned is what is carried: the digest of a file is that of the bytes that were scanned. Nothing is
written to disk before it was scanned.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Final, Protocol

from archiver.model.receipt import LeftOut
from archiver.redact import credential_files, long_files
from archiver.redact.contents import Contents, Seen, is_text
from archiver.redact.credential_files import Credentials
from archiver.redact.exact import ExactValue
from archiver.redact.finder import Finder
from archiver.redact.inflate import Allowance, InflateLimits
from archiver.redact.known import KnownValues
from archiver.redact.later import Later
from archiver.redact.ledger import Ledger
from archiver.redact.raw import RawOutcome
from archiver.redact.scrub import Clean, Scrubber
from archiver.redact.secretfiles import MAX_FILE, MOST_SECRETS, UnusableFileError, decoded, values_of
from archiver.redact.vouched import Vouched
from archiver.safetext import one_line
from archiver.scratch import Scratch

Blocks = Callable[[], Iterator[bytes]]
"""Reads a file from its beginning, each time it is called."""

WHOLE: Final = 4 << 20
"""Bytes of a file that is held in memory while it is scanned; a larger one goes through in windows."""
MOST_HELD: Final = 32 << 20
"""Bytes of carried files that stay in memory; what comes after them is written to the scratch folder."""
MOST_NAMED: Final = 1_000
"""Files that the receipt names as left out; the others are counted."""
_START: Final = 16 << 10
_OTHERS: Final = "(other files)"
_NAMED: Final = "its name holds a credential"
_PEM: Final = "-----BEGIN"
_PRIVATE = re.compile(
    r"-----BEGIN ([A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?)-----.{1,65536}?-----END \1-----", re.DOTALL
)


class Entry(Protocol):
    """A line of a tree."""

    @property
    def path(self) -> str: ...


class Found(Protocol):
    """A file as a capture finds it."""

    @property
    def entry(self) -> Entry: ...


@dataclass(frozen=True, slots=True)
class Carried:
    """Content as it may be packed: its SHA-256 in hex, its bytes or a private file that holds them."""

    sha256: str
    size: int
    source: bytes | Path
    redacted: bool = False


@dataclass(frozen=True, slots=True)
class Shared:
    """What a redactor shares with those who scan for it."""

    finder: Finder
    ledger: Ledger
    values: KnownValues
    later: Later
    vouched: Vouched
    left_out: list[LeftOut]
    learn: Callable[[Iterable[ExactValue]], None]
    clean: Clean


@dataclass(frozen=True, slots=True)
class _Scan:
    """The scan that all files go through."""

    registered: int
    known: int
    """Number of the values that it knows."""
    scrubber: Scrubber
    contents: Contents


class CarriedRedactor:
    """Redacts the files of one workspace.

    First `learn` from every file that `is_secret`, then `file` for each; at the end `again` for each that is
    carried, because a later file may have told a secret that stands in an earlier one.
    """

    def __init__(
        self,
        shared: Shared,
        scratch: Scratch,
        *,
        credentials: Credentials = "leave-out",
        limits: InflateLimits = InflateLimits(),  # noqa: B008 - immutable
    ) -> None:
        self._shared = shared
        self._scratch = scratch
        self._credentials = credentials
        self._allowance = Allowance(limits)
        self._held = 0
        self._named = self._unnamed = 0
        self._others: LeftOut | None = None
        self._noted: list[LeftOut] = []
        self._learned = 0
        self._clean: dict[str, Carried] = {}
        """Files that are carried as they are, by their digest: the same content is scanned once."""
        self._scan: _Scan | None = None

    def is_secret(self, path: str) -> bool:
        """True for a file whose name says that it holds credentials: `learn` from it before anything else."""
        return credential_files.by_name(path) is not None

    def learn(self, found: Found, blocks: Blocks) -> None:
        """Have the values of a file of credentials searched for in all that this save holds.

        A text that cannot be read as such is named in the receipt (`unread`): its values are not known.
        """
        data, rest = _upto(blocks(), MAX_FILE)
        if rest is not None or b"\0" not in data:
            self._learn(found.entry.path, data)

    def _learn(self, path: str, data: bytes) -> None:
        shown = one_line(path)
        try:
            values, missing = _values(decoded(data), path, shown), ""
        except UnusableFileError as error:
            values, missing = [], str(error)
        self._learned += len(values)
        if self._learned > MOST_SECRETS:
            values, missing = [], f"with all others it holds more than {MOST_SECRETS} secrets"
        self._shared.learn([ExactValue(shown, "", missing=missing)] if missing else values)

    def name(self, path: str) -> LeftOut | None:
        """Whether an entry of a tree, of any type, has to be left out because of its path; that is noted."""
        scrubber = self._by_all().scrubber
        data = os.fsencode(path)
        edits = scrubber.text_edits(data)
        if not edits:
            return None
        rules = {scrubber.rule_of(edit) for edit in edits}
        shown = scrubber.text(data, "the name of a file").decode("utf-8", "replace")
        return self._left(shown, _NAMED, tuple(sorted(rules)))

    def leave_out(self, path: str, reason: str) -> None:
        """Note that a path is not carried for a reason of the capture's."""
        self._left(path, reason)

    def forget(self) -> None:
        """Take back what was noted as left out: all files are going to be taken once more."""
        mine = set(map(id, self._noted))
        self._shared.left_out[:] = [one for one in self._shared.left_out if id(one) not in mine]
        self._noted, self._others = [], None
        self._named = self._unnamed = 0

    def target(self, target: str) -> str:
        """The target of a link with its credentials replaced."""
        data = os.fsencode(target)
        return os.fsdecode(self._by_all().scrubber.text(data, "the target of a link"))

    def file(self, found: Found, blocks: Blocks) -> Carried | LeftOut:
        """The content of a file as it may be carried, or why it is not, as the receipt says too.

        What `blocks` raises is raised, and nothing is left of the file.
        """
        path = found.entry.path
        if (left := self.name(path)) is not None:
            return left
        named = credential_files.by_name(path)
        if self._credentials == "leave-out":
            return self._without_credentials(path, named, blocks)
        data, rest = _upto(blocks(), WHOLE)
        what = named[1] if named is not None else credential_files.by_content(data[:_START])
        if what is not None and not is_text(data):
            return self._left(path, credential_files.reason(what))
        if named is not None:
            self._learn(path, data)
        return self._content(path, data, rest, blocks)

    def _without_credentials(
        self, path: str, named: credential_files.Named | None, blocks: Blocks
    ) -> Carried | LeftOut:
        if named is not None and named[0] == "always":
            return self._left(path, credential_files.reason(named[1]))
        data, rest = _upto(blocks(), WHOLE)
        what = credential_files.by_content(data[:_START])
        if what is not None:
            return self._left(path, credential_files.reason(what))
        made = self._content(path, data, rest, blocks)
        if named is not None and isinstance(made, Carried) and made.redacted:
            return self._left(path, credential_files.reason(named[1]))
        return made

    def _content(
        self, path: str, data: bytes, rest: Iterator[bytes] | None, blocks: Blocks
    ) -> Carried | LeftOut:
        return self._whole(path, data) if rest is None else self._long(path, data, rest, blocks)

    def _whole(self, path: str, data: bytes) -> Carried | LeftOut:
        digest = hashlib.sha256(data).hexdigest()
        scan = self._by_all()
        held = self._clean.get(digest)
        if held is not None:
            return held
        made = self._made(path, scan.contents.see(data, one_line(path)), digest, scan.known)
        if isinstance(made, Carried) and not made.redacted:
            self._clean[digest] = made
        return made

    def _long(self, path: str, start: bytes, rest: Iterator[bytes], blocks: Blocks) -> Carried | LeftOut:
        scan = self._by_all()
        every = chain((start,), rest)
        if is_text(start):
            given = long_files.text(every, one_line(path), scan.scrubber, self._scratch, self._allowance)
            return self._spooled(path, *given, scan.known)
        outcome, parts = long_files.scanned(every, one_line(path), scan.scrubber, self._allowance)
        if outcome.reason is None:
            outcome = long_files.copied(blocks(), parts, self._scratch)
        return self._spooled(path, outcome, False, scan.known)

    def again(self, found: Found, made: Carried) -> Carried | LeftOut:
        """The same content, searched for what became known since it was scanned, if anything did."""
        shared = self._shared
        scrubber = shared.later.scrubber_since(shared.vouched.known(made.sha256) or 0)
        if scrubber is None:
            return made
        path, known = found.entry.path, shared.values.count(shared.ledger)
        if scrubber.text_edits(os.fsencode(path)):
            return self._left(path, _NAMED)  # the receipt shows no value that is known by its end
        if isinstance(made.source, Path) and made.size > WHOLE:
            if not shared.later.holds(_blocks(made.source), scrubber):
                shared.vouched.add(made.sha256, known)
                return made
            blocks = _blocks(made.source)
            given = long_files.text(blocks, one_line(path), scrubber, self._scratch, self._allowance)
            return self._spooled(path, *given, known)
        data = made.source if isinstance(made.source, bytes) else made.source.read_bytes()
        seen = Contents(scrubber, self._allowance).see(data, one_line(path))
        if seen.data is not None and not seen.rules:
            shared.vouched.add(made.sha256, known)
            return made
        return self._made(path, seen, made.sha256, known)

    def _made(self, path: str, seen: Seen, sha256: str, known: int) -> Carried | LeftOut:
        """What was scanned in memory; `sha256` is that of the bytes before it."""
        if seen.data is None:
            return self._left(path, seen.reason or "", seen.rules)
        redacted = bool(seen.rules)
        digest = hashlib.sha256(seen.data).hexdigest() if redacted else sha256
        self._shared.vouched.add(digest, known)
        size = len(seen.data)
        if self._held + size <= MOST_HELD:
            self._held += size
            return Carried(digest, size, seen.data, redacted)
        return Carried(digest, size, self._scratch.keep(seen.data, "object"), redacted)

    def _spooled(self, path: str, outcome: RawOutcome, redacted: bool, known: int) -> Carried | LeftOut:
        """What was scanned on its way to a private file."""
        if outcome.spooled is None:
            return self._left(path, outcome.reason or "", outcome.rules)
        done = outcome.spooled
        self._shared.vouched.add(done.sha256, known)
        return Carried(done.sha256, done.size, done.path, redacted)

    def _by_all(self) -> _Scan:
        """By all rules and by the values that were known at the first file, or were learned since.

        Not by those that rules find on the way: a search is compiled for them once, by `again`.
        """
        shared = self._shared
        registered = len(shared.values.registered)
        if self._scan is None or self._scan.registered != registered:
            known = shared.values.matcher(shared.ledger)
            scrubber = Scrubber(shared.finder, known, shared.ledger, clean=shared.clean)
            count = shared.values.count(shared.ledger)
            self._scan = _Scan(registered, count, scrubber, Contents(scrubber, self._allowance))
            self._clean.clear()
        return self._scan

    def _left(self, path: str, reason: str, rules: tuple[str, ...] = ()) -> LeftOut:
        """Note that a file is not carried."""
        left = LeftOut(member=one_line(path), reason=reason, rules=rules)
        named = self._shared.left_out
        if self._named < MOST_NAMED:
            self._named += 1
            named.append(left)
            self._noted.append(left)
            return left
        if self._others is not None:
            named.remove(self._others)
            self._noted.pop()
        self._unnamed += 1
        self._others = LeftOut(member=_OTHERS, reason=f"{self._unnamed} more files are not carried")
        named.append(self._others)
        self._noted.append(self._others)
        return left


def _values(text: str, path: str, shown: str) -> list[ExactValue]:
    """The secrets of a file; of one in PEM form the private keys alone, as certificates are public."""
    if not text.lstrip().startswith(_PEM):
        return values_of(text, Path(path), shown)
    keys = (match[0] for match in _PRIVATE.finditer(text))
    return [ExactValue(f"a private key in {shown}", key) for key in keys]


def _upto(blocks: Iterator[bytes], most: int) -> tuple[bytes, Iterator[bytes] | None]:
    """All bytes; or the first, a few more than `most`, and the iterator that has the rest."""
    held: list[bytes] = []
    size = 0
    for block in blocks:
        held.append(block)
        size += len(block)
        if size > most:
            return b"".join(held), blocks
    return held[0] if len(held) == 1 else b"".join(held), None


def _blocks(source: bytes | Path) -> Iterator[bytes]:
    if isinstance(source, bytes):
        yield source
        return
    with source.open("rb") as file:
        while block := file.read(1 << 20):
            yield block
