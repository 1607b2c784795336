"""What an administrator signed about a run: that headers were rewritten, and how long it is kept."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from archiver.model.base import Frozen, JsonValue, Utc
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


NoteKind = Literal["rekey", "hold", "release", "merged", "remove", "erase"]
"""`hold`, `release`: the run is kept without end, and is not any more. `merged`: what it made is in the
default branch upstream, so it goes to the short clock. `remove`: its bundles were taken away, its records
stay. `erase`: everything was, and this is the tombstone."""


class Note(Frozen):
    """Signed before what it says is done; holds whether or not that has happened yet."""

    format: Literal[1] = NOTE_FORMAT
    kind: NoteKind = "rekey"
    store: str
    run: str
    task: str
    at: Utc
    by: str
    """The administrator's signing key, as in a record."""
    reason: Annotated[str, Field(max_length=MAX_REASON)] = ""
    recipients: tuple[Fingerprint, ...]
    """Of a rekey: whom the headers are for afterwards. Of another: whom the note itself is for."""
    objects: tuple[Rekeyed, ...] = ()
    """Of a rekey."""
    last: Annotated[int, Field(ge=1, le=99_999_999)] | None = None
    """Of the others: the number of the newest record when it was signed; None where there was none."""
    software: str = ""

    @model_validator(mode="after")
    def _kind_fits(self) -> Note:
        if self.objects and self.kind != "rekey":
            raise ValueError("only a rekey has objects")
        if self.last is not None and self.kind == "rekey":
            raise ValueError("a rekey has no last record")
        return self

    @model_serializer(mode="wrap")
    def _as_before(self, as_usual: SerializerFunctionWrapHandler) -> dict[str, JsonValue]:
        """A rekey has the one form that it had before there were other kinds."""
        document: dict[str, JsonValue] = as_usual(self)
        if self.kind == "rekey":
            document.pop("last", None)
        else:
            document.pop("objects", None)
        return document
