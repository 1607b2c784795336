"""What was found free of secrets before, so that unchanged content is not scanned again.

Content is known by names alone: HMACs under a key that only this user has, of a piece of whole lines and the
piece before it, and of all that a scan depends on (rules, engine, program, known values, dialect). A name
says that a scan of that piece, after that one, found nothing; of a piece with a finding nothing is kept.
Names live in memory and in one file of bounded size in the user's cache folder, which carries an HMAC of its
own. Any doubt means that everything is scanned.
"""

from __future__ import annotations

import atexit
import functools
import hashlib
import hmac
import secrets
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import archiver
from archiver.errors import RedactionUnavailableError
from archiver.redact import cache
from archiver.redact.engine import ENGINE, Expression
from archiver.redact.ruleset import Rule, RuleSet

_MOST: Final = 65_536
"""Names in the file: of pieces of 48 kB and more, so they speak of 3 GB of content and more."""
_SIZE: Final = 16
_SMALLEST: Final = 48 << 10
_LARGEST: Final = 256 << 10
_SHOWN: Final = 64
"""Bytes of a line that decide whether a piece may end before it."""
_PAUSE: Final = 5.0
"""Seconds between two writes of the file while runs are saved in a row: a full one takes 20 ms."""
_FILE: Final = "clean.names"
_KEY: Final = "clean.key"
_TAG: Final = 32


class Names:
    """The names of clean pieces, the last used last; shared by the redactors of a process."""

    def __init__(self, key: bytes, held: Iterable[bytes] = ()) -> None:
        """`key` is the user's, 32 random bytes."""
        self.key = key
        self._held = dict.fromkeys(held)
        self._used: dict[bytes, None] = {}
        self._is_new = False
        self._written = float("-inf")
        self._lock = threading.Lock()

    def __contains__(self, name: bytes) -> bool:
        if name not in self._held:
            return False
        self._used[name] = None
        return True

    def add(self, name: bytes) -> None:
        """Note a piece in which a scan found nothing."""
        with self._lock:
            if len(self._held) >= 2 * _MOST:
                self._held = dict.fromkeys(list(self._held)[-_MOST:])
                self._used = {}
            self._held[name] = self._used[name] = None
            self._is_new = True

    def save(self) -> None:
        """Write the names for other processes, with those that these wrote since; a failure is no error."""
        with self._lock:
            if not self._is_new:
                return
            self._is_new, self._written = False, time.monotonic()
            used, self._used = self._used, {}
            kept = dict.fromkeys(name for name in (*_read(self.key), *self._held) if name not in used)
            body = b"".join([*kept, *used][-_MOST:])
            cache.store_file(_FILE, hmac.digest(self.key, body, "sha256") + body)

    def save_in_time(self) -> None:
        """The same, unless it was done a moment ago: the next call does it, or the end of the program."""
        if time.monotonic() - self._written >= _PAUSE:
            self.save()


def _read(key: bytes) -> list[bytes]:
    """The names in the file; none where it is torn, or was not written under this key."""
    content = cache.load_file(_FILE, _TAG + _MOST * _SIZE) or b""
    tag, body = content[:_TAG], content[_TAG:]
    if len(body) % _SIZE or not hmac.compare_digest(tag, hmac.digest(key, body, "sha256")):
        return []
    return [body[at : at + _SIZE] for at in range(0, len(body), _SIZE)]


def shared_names() -> Names:
    """The names that this user's processes share; in memory alone where no cache can be kept."""
    return _names_in(cache.place())


@functools.cache
def _names_in(folder: str) -> Names:
    """The names of one cache folder, read once a process."""
    key = cache.load_file(_KEY, _TAG) if folder else None
    if key is None or len(key) != _TAG:
        key = secrets.token_bytes(_TAG)
        cache.store_file(_KEY, key)
    names = Names(key, _read(key))
    atexit.register(_save_last, names, folder)
    return names


def _save_last(names: Names, folder: str) -> None:
    """At the end of the program, unless the cache folder is another one by now."""
    if cache.place() == folder:
        names.save()


class Piece(NamedTuple):
    """Whole lines of a block, and what is not known of them yet."""

    start: int
    stop: int
    rules: bytes | None
    """The name to note when the rules find nothing (empty: none); None where that is known already."""
    values: bytes | None
    """The same for known values."""


class Known:
    """What one scrubber may skip: it knows by which rules and which values its pieces are judged."""

    def __init__(
        self, names: Names, rules: RuleSet | None, registered: Iterable[bytes], found: Iterable[bytes]
    ) -> None:
        """`rules` is None for a search of known values alone."""
        self._names = names
        self._rules = _context(names.key, "rules", _about(rules)) if rules is not None else None
        values = _listed(registered) + _FOUND + _listed(found)
        self._values = _context(names.key, "values", values) if values != _FOUND else None

    def pieces(self, block: bytes, opaque: Callable[..., Any], *, whole: bool = False) -> list[Piece]:
        """The block in pieces that are cut where its content says, so that they recur in changed blocks.

        `whole`: in one piece, because something in it may go on over any number of lines.
        """
        place = _named(opaque)
        if place is None:
            return [Piece(0, len(block), b"", b"")]
        made: list[Piece] = []
        before, start = bytes(_TAG), 0
        view = memoryview(block)
        for stop in (len(block),) if whole else _cuts(block):
            digest = hmac.digest(self._names.key, view[start:stop], "sha256")
            content = b"".join((before, digest, place))
            rules, values = self._unknown(self._rules, content), self._unknown(self._values, content)
            made.append(Piece(start, stop, rules, values))
            before, start = digest, stop
        return made

    def _unknown(self, context: bytes | None, content: bytes) -> bytes | None:
        """The name of what is not known yet."""
        if context is None:
            return None
        name = hmac.digest(context, content, "sha256")[:_SIZE]
        return None if name in self._names else name

    def note(self, piece: Piece) -> None:
        """A scan of the piece and those beside it found nothing in it."""
        for name in (piece.rules, piece.values):
            if name:
                self._names.add(name)


def to_scan(pieces: list[Piece]) -> Iterator[tuple[int, int, bool]]:
    """The runs of pieces to scan: the first, one past the last, and whether the rules are wanted too.

    A piece that is known is scanned with an unknown one beside it: what begins in one may end in the other.
    """
    need = [2 if piece.rules is not None else 1 if piece.values is not None else 0 for piece in pieces]
    wide = [max(need[max(0, at - 1) : at + 2]) for at in range(len(need))]
    at = 0
    while at < len(wide):
        upto = at + 1
        while upto < len(wide) and wide[upto] == wide[at]:
            upto += 1
        if wide[at]:
            yield at, upto, wide[at] == 2
        at = upto


def _cuts(block: bytes) -> Iterator[int]:
    """Where pieces end: at line ends, the first after `_SMALLEST` whose next line says so by its start."""
    size, start = len(block), 0
    while size - start > _LARGEST:
        cut = block.find(b"\n", start + _SMALLEST) + 1
        while cut and cut - start < _LARGEST and zlib.crc32(block[cut : cut + _SHOWN]) & 7:
            cut = block.find(b"\n", cut) + 1
        if not cut or cut >= size:
            break
        yield cut
        start = cut
    if start < size:
        yield size


_FOUND: Final = b"found"


def _listed(values: Iterable[bytes]) -> bytes:
    return b"".join(b"%d %b" % (len(value), value) for value in sorted(values))


def _context(key: bytes, what: str, about: bytes) -> bytes:
    """All that a scan depends on but its content, under the user's key."""
    head = f"{what}\n{archiver.__version__}\n{ENGINE}\n{_program()}\n".encode()
    return hmac.digest(key, head + about, "sha256")


@functools.cache
def own_key() -> bytes:
    """A key of this process alone, for a user who keeps no names."""
    return secrets.token_bytes(_TAG)


def fingerprint(key: bytes, rules: RuleSet, registered: Iterable[bytes], about: Iterable[str]) -> str:
    """All that decides what a scan finds but its content, in 32 hex digits; nothing without the key."""
    words = b"".join(b"%d %b" % (len(word), word) for word in (one.encode() for one in about))
    context = _context(key, "fingerprint", _about(rules) + words)
    return hmac.digest(context, _listed(set(registered)), "sha256")[:_SIZE].hex()


_described: Final[dict[str, tuple[list[Rule], list[Expression], bytes]]] = {}


def _about(rules: RuleSet) -> bytes:
    """All that decides what rules find; made once in a process for the same rules."""
    held = _described.get(rules.version)
    if held is None or held[0] is not rules.rules or held[1] is not rules.expressions:
        held = _described[rules.version] = rules.rules, rules.expressions, _digest(rules)
    return held[2]


def _digest(rules: RuleSet) -> bytes:
    digest = hashlib.sha256(f"{rules.version}\n".encode())
    for rule in rules.rules:
        digest.update(f"{rule.id}\n".encode())
    for expression in rules.expressions:
        digest.update(b"%d %b" % (len(expression.pattern), expression.pattern))
    return digest.digest()


@functools.cache
def _program() -> str:
    """Tells this package's code from any other, also where its version stayed the same."""
    folder = Path(archiver.__file__).parent
    digest = hashlib.sha256()
    try:
        for path in sorted(folder.rglob("*.py")):
            about = path.stat()
            digest.update(f"{path.relative_to(folder)} {about.st_size} {about.st_mtime_ns}\n".encode())
    except OSError as error:
        raise RedactionUnavailableError(
            f"the files of this program in {folder} cannot be listed: {error.strerror}",
            remedy="check the disk, and how many files may be open (`ulimit -n`)",
        ) from error
    return digest.hexdigest()


def _named(opaque: Callable[..., Any]) -> bytes | None:
    """The name of what says which fields are opaque; None for one whose name does not say all of it."""
    function = getattr(opaque, "__func__", opaque)
    name = getattr(function, "__qualname__", "<")
    if "<" in name or getattr(function, "__closure__", None):
        return None
    owner = type(getattr(opaque, "__self__", None))
    return f"{function.__module__} {name} {owner.__module__} {owner.__qualname__}".encode()
