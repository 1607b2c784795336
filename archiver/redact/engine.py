"""The Vectorscan database: every trigger in one pass over a buffer, reporting where matches end."""

from __future__ import annotations

import hashlib
import logging
import platform
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import metadata
from typing import Final

from archiver.errors import RedactionUnavailableError
from archiver.redact import cache

try:
    import hyperscan

    ENGINE = f"vectorscan {metadata.version('hyperscan')}"
except ImportError as error:
    raise RedactionUnavailableError(
        f"the redaction engine cannot be loaded: {error}", remedy="reinstall the package 'hyperscan'"
    ) from error

log = logging.getLogger("archiver")
Hit = tuple[int, int]
"""End offset of a match, and the index of its expression."""

Wanted = Callable[[int, int], bool]
"""(end, index of the expression) -> whether a match counts."""

_MOST_LITERALS: Final = 16_000
"""Compiling as many takes about 50 MB for a moment."""


@dataclass(frozen=True, slots=True)
class Expression:
    """One trigger: a pattern in Vectorscan's syntax, or a literal."""

    pattern: bytes
    caseless: bool = False


class Engine:
    """A compiled set of expressions; `scan` may be called from several threads."""

    def __init__(self, expressions: Sequence[Expression], *, literal: bool = False) -> None:
        """Compile, or load from the cache; raises `RedactionUnavailableError`."""
        try:
            self._databases = list(_literals(expressions)) if literal else [_patterns(expressions)]
            self._scratch = threading.local()
            self.scan(b"ready?")
        except RedactionUnavailableError:
            raise
        except Exception as error:
            raise RedactionUnavailableError(
                f"the redaction engine could not be made from its rules: {error}",
                remedy="reinstall the package 'hyperscan', and check rule files of your own",
            ) from error

    def scan(self, data: bytes, most: int = 0, wanted: Wanted | None = None) -> list[Hit]:
        """Every match in the buffer, by end offset; a match may be reported more than once.

        `most`: a scan that comes to more matches ends there, with one more than so many. `wanted` is asked
        of each.
        """
        hits: list[Hit] = []
        held = getattr(self._scratch, "held", None)
        if held is None:
            held = self._scratch.held = [hyperscan.Scratch(database) for database in self._databases]
        note = _counted(most, wanted) if most else _note
        for database, scratch in zip(self._databases, held, strict=True):
            try:
                database.scan(data, match_event_handler=note, context=hits, scratch=scratch)
            except hyperscan.ScanTerminated:
                break
        return hits


def refused(expression: Expression) -> str | None:
    """Why the engine does not take an expression, or None."""
    try:
        _compile([expression], literal=False)
    except Exception as error:
        return str(error)
    return None


def _note(number: int, _start: int, end: int, _flags: int, hits: object) -> None:
    hits.append((end, number))  # type: ignore[attr-defined]  # a list of this module, handed through as context


def _counted(most: int, wanted: Wanted | None) -> Callable[[int, int, int, int, object], bool]:
    def note(number: int, _start: int, end: int, _flags: int, hits: object) -> bool:
        hits.append((end, number))  # type: ignore[attr-defined]  # as in `_note`
        return len(hits) > most  # type: ignore[arg-type]  # as in `_note`

    def ask(number: int, _start: int, end: int, _flags: int, hits: object) -> bool:
        return wanted(end, number) and note(number, 0, end, 0, hits)  # type: ignore[misc]  # it is asked if given

    return note if wanted is None else ask


def _patterns(expressions: Sequence[Expression]) -> hyperscan.Database:
    key = _key(expressions)
    held = cache.load(key)
    if held is not None:
        try:
            return hyperscan.loadb(held, hyperscan.HS_MODE_BLOCK)
        except Exception:  # noqa: S110 - whatever is wrong with a cached database, a fresh one is right
            pass
    log.info("rules of redaction are compiled, which may take seconds, and kept in %s", cache.place())
    database = _compile(expressions, literal=False)
    cache.store(key, hyperscan.dumpb(database))
    return database


def _literals(expressions: Sequence[Expression]) -> Iterator[hyperscan.Database]:
    """Databases of so many literals each that no compilation takes much memory."""
    for first in range(0, len(expressions), _MOST_LITERALS):
        yield _compile(expressions[first : first + _MOST_LITERALS], literal=True, first=first)


def _compile(expressions: Sequence[Expression], *, literal: bool, first: int = 0) -> hyperscan.Database:
    database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
    dotall = 0 if literal else hyperscan.HS_FLAG_DOTALL
    database.compile(
        expressions=[expression.pattern for expression in expressions],
        ids=list(range(first, first + len(expressions))),
        elements=len(expressions),
        flags=[dotall | (hyperscan.HS_FLAG_CASELESS if e.caseless else 0) for e in expressions],
        literal=literal,
    )
    return database


def _key(expressions: Sequence[Expression]) -> str:
    """Names a compiled database by all that decides what is in it."""
    digest = hashlib.sha256(f"{ENGINE} {platform.platform()} {platform.machine()}\n".encode())
    for expression in expressions:
        digest.update(b"%d %d " % (expression.caseless, len(expression.pattern)))
        digest.update(expression.pattern)
    return digest.hexdigest()
