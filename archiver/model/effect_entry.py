"""What the ledger keeps of one attempt at one effect: the intent before it, the outcome after it."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field, model_validator

from archiver.model.base import Frozen, JsonValue, Utc
from archiver.model.note import Fingerprint

EFFECT_FORMAT: Final = 1

EffectId = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
EffectPart = Literal["intent", "outcome"]
EffectEnd = Literal["confirmed", "not-done"]


class EffectEntry(Frozen):
    """One small signed object; an outcome says all that its intent does, so that it can stand alone."""

    format: Literal[1] = EFFECT_FORMAT
    part: EffectPart
    id: EffectId
    """What its object is called."""
    store: str
    run: str
    task: str
    key: Annotated[str, Field(min_length=1)]
    tool: str
    attempt: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    replayable: bool = False
    arguments: JsonValue = None
    at: Utc
    intent: EffectId | None = None
    """Of an outcome: the intent that it ends."""
    begun: Utc | None = None
    """Of an outcome: `at` of that intent."""
    status: EffectEnd | None = None
    """Of an outcome."""
    result: JsonValue = None
    """Of an outcome that is confirmed."""
    by: str = ""
    """Of an outcome that somebody decided on: who."""
    decided: Utc | None = None
    """And when."""
    reason: str = ""
    """Why it was not done, or what was found out."""
    writer: str
    """The signing key, as in a record."""
    recipients: tuple[Fingerprint, ...]
    """Fingerprints of those it was sealed to."""
    missing_recipients: tuple[str, ...] = ()
    """Those it could not be sealed to, because KMS was away."""
    software: str = ""

    @model_validator(mode="after")
    def _part_fits(self) -> EffectEntry:
        ends = (self.intent, self.begun, self.status)
        if self.part == "outcome" and None in ends:
            raise ValueError("an outcome names its intent, when that was, and what came of it")
        if self.part == "intent" and (ends != (None, None, None) or self.by or self.reason):
            raise ValueError("an intent has no outcome")
        if self.result is not None and self.status != "confirmed":
            raise ValueError("only what is confirmed has a result")
        if bool(self.by) != (self.decided is not None):
            raise ValueError("a decision has somebody who made it, and a time")
        return self
