"""What an administrator signed about a run: so far, that headers of its objects were rewritten."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field

from archiver.model.base import Frozen, Utc
from archiver.model.checkpoint import Digest

NOTE_FORMAT: Final = 1
MAX_REASON: Final = 500
"""Characters."""

Fingerprint = Annotated[str, Field(pattern=r"^([0-9a-f]{32}|scrypt)$")]


class Rekeyed(Frozen):
    """One object whose header is rewritten, named by what does not change with it."""

    name: str
    payload_sha256: Digest
    before: tuple[Fingerprint, ...]
    """Whom the header was for."""
    written: Utc
    """When the store said that the object was written, before its header was ever rewritten."""


class Note(Frozen):
    """Signed before the headers are rewritten; covers an object whether or not that has happened yet."""

    format: Literal[1] = NOTE_FORMAT
    kind: Literal["rekey"] = "rekey"
    store: str
    run: str
    task: str
    at: Utc
    by: str
    """The administrator's signing key, as in a record."""
    reason: Annotated[str, Field(max_length=MAX_REASON)] = ""
    recipients: tuple[Fingerprint, ...]
    """Whom the headers are for afterwards."""
    objects: tuple[Rekeyed, ...]
    software: str = ""
