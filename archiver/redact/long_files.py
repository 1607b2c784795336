"""The redaction of files that are too long to be held in memory."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Final

from archiver.redact.inflate import Allowance
from archiver.redact.raw import RawOutcome, RawPass
from archiver.redact.scrub import Scrubber
from archiver.scratch import Scratch

_BLOCK: Final = 1 << 20
_CHANGED: Final = "it changed while it was read"


def text(
    blocks: Iterable[bytes], place: str, scrubber: Scrubber, scratch: Scratch, allowance: Allowance
) -> tuple[RawOutcome, bool]:
    """A redacted copy of a text, each window written when it was scanned; and whether it differs."""
    work = RawPass(scrubber, scratch, place, hashed=True, allowance=allowance)
    try:
        for block in blocks:
            work.feed(block)
    except BaseException:
        work.abandon()
        raise
    return work.close(), work.found


def scanned(
    blocks: Iterable[bytes], place: str, scrubber: Scrubber, allowance: Allowance
) -> tuple[RawOutcome, list[bytes]]:
    """Scan a file that is no text, and give the digests of its parts, by which `copied` knows it again."""
    work = RawPass(scrubber, None, place, noting=True, allowance=allowance)
    parts: list[bytes] = []
    for part in _parts(blocks):
        parts.append(hashlib.sha256(part).digest())
        work.feed(part)
    return work.close(), parts


def copied(blocks: Iterable[bytes], parts: list[bytes], scratch: Scratch) -> RawOutcome:
    """A private copy of a file that was scanned: no part is written that is another one by now."""
    spool = scratch.spool("object")
    seen = 0
    try:
        for part in _parts(blocks):
            if seen == len(parts) or hashlib.sha256(part).digest() != parts[seen]:
                seen = -1
                break
            spool.write(part)
            seen += 1
    except BaseException:
        spool.abandon()
        spool.path.unlink(missing_ok=True)
        raise
    done = spool.close()
    if seen == len(parts):
        return RawOutcome(done)
    done.path.unlink()
    return RawOutcome(None, _CHANGED)


def _parts(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes in parts of one size, the last one smaller, however they were cut."""
    held = b""
    for block in blocks:
        held = held + block if held else block
        at = 0
        while len(held) - at >= _BLOCK:
            yield held[at : at + _BLOCK]
            at += _BLOCK
        held = held[at:]
    if held:
        yield held
