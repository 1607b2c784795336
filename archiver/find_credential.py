"""Which runs held a credential: by the fingerprint that their receipts give it, each under its own key.

The value is compared and forgotten: it is in no answer and no error, and nothing of it is written.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from archiver import members
from archiver.errors import ArchiverError, KeyUnavailableError, UsageError
from archiver.model import Finding
from archiver.redact import fingerprints, spellings
from archiver.stored import Opened, look

if TYPE_CHECKING:
    from archiver.setup import Setup

LONGEST: Final = 1 << 20
"""Bytes of a value; a longer one is no credential."""


@dataclass(frozen=True, slots=True)
class Held:
    """One checkpoint: the findings of its receipt that are the value, or why it could not be looked at."""

    run: str
    seq: int | None
    findings: tuple[Finding, ...] = ()
    error: ArchiverError | None = None

    @property
    def is_closed(self) -> bool:
        """True when no identity at hand opens it."""
        return isinstance(self.error, KeyUnavailableError)


def value_of(data: bytes) -> bytes:
    """The value that was given: all bytes but one line end; `UsageError` for none, or for far too many."""
    if len(data) > LONGEST:
        raise UsageError(
            f"more than {LONGEST} bytes came on standard input", remedy="give one credential and nothing else"
        )
    value = data.removesuffix(b"\n").removesuffix(b"\r")
    if not value.strip():
        raise UsageError(
            "no value came on standard input", remedy="pipe the credential in, or type it when asked"
        )
    return value


def find(setup: Setup, value: bytes, *, newest: bool = False) -> Iterator[Held]:
    """Every checkpoint of every run, or the newest of each, with what its receipt says of the value.

    The value's usual spellings count too: quoted, in base64, percent-encoded, a key with other line ends.
    """
    forms = spellings(value)

    def search(opened: Opened) -> tuple[Finding, ...]:
        wanted = fingerprints(opened.redaction_key, forms)
        receipt = members.receipt_in(opened.scratch.path / "bundle")
        return tuple(finding for finding in receipt.findings if finding.fingerprint in wanted)

    for seen in look(setup, (), search, newest=newest):
        yield Held(seen.run, seen.seq, seen.answer or (), seen.error)
