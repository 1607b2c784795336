"""What redaction did: counts, places and keyed fingerprints; never a value, its length or an unkeyed hash."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from archiver.model.base import Frozen, JsonValue
from archiver.model.checkpoint import Count, Digest

Fingerprint = Annotated[str, Field(pattern=r"^[0-9a-f]{12}$")]


class Finding(Frozen):
    """One credential that redaction replaced, wherever it stood."""

    rule: str
    kind: str
    fingerprint: Fingerprint
    count: int
    about: str = ""
    """What the rule says that this is."""
    places: tuple[str, ...] = ()
    """Where it stood, a few of all places: names, lines and keys that are no secrets themselves."""


class LeftOut(Frozen):
    """A member that was not carried because it could not be made safe."""

    member: str
    reason: str
    rules: tuple[str, ...] = ()


class Cut(Frozen):
    """An output, a file of the workspace, or one of an unknown format, that a limit had no room for."""

    member: str
    """What it would be in the bundle; of a file its name, of the workspace `workspace/` and its path."""
    limit: Literal["artifact", "bundle", "member", "members", "run"]
    policy: Literal["head-and-tail", "reference"]
    """What was done: only head and tail are carried, or nothing but what is said of it elsewhere."""
    size: Count
    """Its bytes, redacted."""
    kept: Count
    """Bytes of what is carried of it."""
    kept_as: str | None = None
    """The member that holds its head and tail."""

    @property
    def said(self) -> str:
        """In words, for whoever saves or restores."""
        what = f"{self.member} has {self.size} bytes, which limits.{self.limit} has no room for"
        if self.policy == "reference":
            return f"{what}: not carried"
        return f"{what}: of it {self.kept} bytes of head and tail are carried"


class RuleFile(Frozen):
    """A file of rules that was in force."""

    name: str
    sha256: Digest


class Receipt(Frozen):
    """All that redaction found in one save."""

    engine: str = ""
    rules_version: str = ""
    rules: int = 0
    rule_files: tuple[RuleFile, ...] = ()
    disabled_rules: tuple[str, ...] = ()
    """Rules of the package that were left out by the settings."""
    findings: tuple[Finding, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    too_short: tuple[str, ...] = ()
    """Names (never values) of registered secrets that are too short to search for."""
    unread: tuple[str, ...] = ()
    """Well-known files of credentials that could not be read, and why: their values were not searched for."""
    cut: tuple[Cut, ...] = ()
    """What limits had no room for; absent where there is none."""

    @model_serializer(mode="wrap")
    def _without_what_is_rare(self, as_usual: SerializerFunctionWrapHandler) -> dict[str, JsonValue]:
        """A receipt without cuts has the form of those made before there were any."""
        document: dict[str, JsonValue] = as_usual(self)
        if not self.cut:
            document.pop("cut", None)
        return document
