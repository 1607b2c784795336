"""What lies in an exported folder beside the sealed objects: where each came from, and whether it holds."""

from __future__ import annotations

from typing import Final, Literal

from archiver.model.base import Frozen, Utc
from archiver.model.checkpoint import Digest
from archiver.model.record import RetentionClass

EXPORT_FORMAT: Final = 1
_SOUND: Final = ("ok", "not verified", "BundleExpiredError")


class ExportedObject(Frozen):
    """One version of one object."""

    name: str
    file: str | None = None
    """Where its bytes lie in the folder; None where there are none."""
    size: int | None = None
    sha256: Digest | None = None
    """Of the sealed bytes, as they were copied."""
    version: str | None = None
    """The store's id of the version, where it keeps versions."""
    latest: bool = True
    deleted: bool = False
    """Whether it is a marker that hides the versions before it."""
    hidden: bool = False
    """Whether such a marker hides it."""
    modified: Utc | None = None
    """When the store got it, as the store says."""
    retention: RetentionClass | None = None
    signer: str | None = None
    """Name of the trusted key that signed it."""
    verification: str = "not verified"
    """`ok`, `not verified`, or the name of the error."""
    said: str = ""


class Export(Frozen):
    """`EXPORT.json`."""

    format: Literal[1] = EXPORT_FORMAT
    run: str
    at: int | None = None
    """The number of the last checkpoint, where not all were asked for."""
    store: str | None
    url: str
    exported: Utc
    who: str
    why: str = ""
    software: str
    chain: str
    """`verified`, `not verified`, or the name of the error."""
    chain_said: str = ""
    remarks: tuple[str, ...] = ()
    objects: tuple[ExportedObject, ...]

    @property
    def damaged(self) -> tuple[ExportedObject, ...]:
        """Those that do not hold."""
        return tuple(one for one in self.objects if one.verification not in _SOUND)
