"""Which runs held a credential: by the fingerprint that their receipts give it, each under its own key.

What redaction let through when a run was saved is in no receipt, so the members are looked through as well.

The value is compared and forgotten: it is in no answer and no error, and nothing of it is written.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from archiver import members
from archiver.errors import ArchiverError, KeyUnavailableError, UsageError
from archiver.model import Finding
from archiver.redact import ExactValue, FileRedactor, fingerprints, new_key, spellings
from archiver.setup import chosen_rules
from archiver.stored import Opened, look, receipt_of_today

if TYPE_CHECKING:
    from archiver.setup import Setup

LONGEST: Final = 1 << 20
"""Bytes of a value; a longer one is no credential."""


@dataclass(frozen=True, slots=True)
class Held:
    """One checkpoint: what its receipt says of the value, where it stands unreplaced, or why nobody knows."""

    run: str
    seq: int | None
    findings: tuple[Finding, ...] = ()
    clear: tuple[Finding, ...] = ()
    """Places of the bundle that hold the value itself."""
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
    """Every checkpoint of every run, or the newest of each, with what is known of the value in it.

    The value's usual spellings count too: quoted, in base64, percent-encoded, a key with other line ends.
    Of members only the encodings of known values count, and none of a value that is too short to search for.
    """
    forms = spellings(value)
    exact = ExactValue("the value that is looked for", value.decode("utf-8", "surrogateescape"))
    load = FileRedactor.load(new_key(), exact=(exact,), chosen=chosen_rules(setup.settings)).with_key

    def search(opened: Opened) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
        wanted = fingerprints(opened.redaction_key, forms)
        said = members.receipt_in(opened.scratch.path / "bundle")
        now = receipt_of_today(opened, load)
        found, clear = (
            tuple(finding for finding in receipt.findings if finding.fingerprint in wanted)
            for receipt in (said, now)
        )
        return found, clear

    for seen in look(setup, (), search, newest=newest):
        found, clear = seen.answer or ((), ())
        yield Held(seen.run, seen.seq, found, clear, seen.error)
