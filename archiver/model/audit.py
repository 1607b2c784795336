"""What somebody did with stored runs: a line of the local file, and the signed object in the store."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field

from archiver.model.base import Frozen, JsonValue, Utc
from archiver.model.checkpoint import Digest
from archiver.model.note import Fingerprint

AUDIT_FORMAT: Final = 1
MAX_WHY: Final = 500
"""Characters of each text that somebody typed."""

Action = Literal[
    "open", "restore", "refuse", "accept", "resolve", "claim", "session", "rekey", "export", "drill",
    "hold", "release", "remove", "erase", "expire", "lifecycle",
]  # fmt: skip
"""What this release writes down."""


class Act(Frozen):
    """Who did what to which run, when, why, and with which key."""

    format: Literal[1] = AUDIT_FORMAT
    at: Utc
    action: Annotated[str, Field(pattern=r"^[a-z][a-z-]{0,31}$")]
    """An `Action`, or one of a later release, which is shown by its name."""
    run: str | None = None
    """None where it is about several."""
    seq: int | None = None
    who: str
    uid: int
    sudo_user: str | None = None
    """Who became another user with sudo, as the environment says."""
    why: str = ""
    opened_by: Fingerprint | None = None
    """The identity that opened what was opened."""
    break_glass: bool = False
    """Whether that is one for emergencies only."""
    within: str = ""
    """The action that this one was a part of."""
    command: str = ""
    """The command and the names of its options, without their values."""
    software: str = ""
    detail: dict[str, JsonValue] = Field(default_factory=dict)


class AuditLine(Act):
    """One line of the local file."""

    store: str | None
    url: str
    previous: Digest | None
    """SHA-256 of the line before, without its line end; None for the first."""


class AuditEntry(Act):
    """What is put into the store, signed by whoever acted."""

    store: str
    task: str
    by: str
    """The signing key, as in a record."""
    opened: Annotated[dict[str, int], Field(max_length=1000)] = Field(default_factory=dict)
    """Bundles that were opened, by run, where the action is a look at many."""
