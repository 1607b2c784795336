"""What redaction did: counts, places and keyed fingerprints; never a value, its length or an unkeyed hash."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from archiver.model.base import Frozen
from archiver.model.checkpoint import Digest

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
