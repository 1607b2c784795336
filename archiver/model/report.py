"""What a restore found out before, and did while, it handed a checkpoint over."""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict, Field

from archiver.model.base import Frozen, JsonValue, Utc
from archiver.model.checkpoint import EffectStatus
from archiver.model.record import Decision, Record


class ProbeVerdict(Frozen):
    """Whether one aspect of the world still matches the checkpoint."""

    probe: str
    state: Literal["FRESH", "STALE", "UNKNOWN"]
    evidence: str
    remedy: str | None = None
    accepted: bool = False


class Blocker(Frozen):
    """A reason not to go on; `accept` is the word that `--accept` takes to go on all the same."""

    accept: str
    reason: str
    remedy: str | None = None
    exit_code: Literal[3, 7] = 3


class OpenEffect(Frozen):
    """An effect that somebody has to decide on before the run goes on."""

    key: str
    tool: str
    arguments: str
    """As JSON text, cut."""
    status: EffectStatus
    at: Utc | None = None
    result: str = ""
    """What was recorded of an answer, as JSON text, cut."""
    resolve: str
    """The flag that decides on it, as a shell reads it, before `=done` or `=not-done`. It has the key, or
    `sha256:` and the digest of a key that no command could hold."""


class TakenOver(Frozen):
    """A claim after the checkpoint: somebody took the run over."""

    seq: int
    at: Utc
    writer: str
    """Name of the trusted writer that signed the claim."""
    own: bool = False
    """Whether that is the own signing key."""


class Repaired(Frozen):
    """One thing that repair changed, so that the transcript is valid again."""

    part: str
    item: int
    code: str
    action: str
    detail: str


def _with_exit_code(schema: dict[str, JsonValue]) -> None:
    """What `as_document` adds."""
    schema["properties"]["exit_code"] = {"enum": [0, 3, 7], "title": "Exit Code"}


class RestoreReport(Frozen):
    """The plan of a restore; the last fields are filled once the bundle was opened."""

    model_config = ConfigDict(json_schema_extra=_with_exit_code)

    run: str
    seq: int
    newest: int
    record: Record
    flags: tuple[str, ...] = ()
    """Options of this call that name the configuration, the store and the keys, as a shell reads them: the
    commands of the report have them."""
    chain: str = "verified"
    """`verified`, or `verified up to N` where what comes after record N does not hold together."""
    writer: str
    """Name of the trusted writer that signed the record."""
    newest_writer: str = ""
    """Name of the writer of the newest record, where that is another one."""
    may_go_on: bool | None = None
    """Whether the own signing key may go on with the run as it is, because the newest record is its own;
    None where that is not known."""
    rollback: Literal["unverified", "verified"] = "unverified"
    witness: str = ""
    """What the witness has seen of the run before, in words; empty where there is none."""
    lost: tuple[str, ...] = ()
    """What came after this checkpoint and is not restored."""
    freshness: tuple[ProbeVerdict, ...] = ()
    not_recorded: tuple[str, ...] = ()
    """Probes of which nothing was captured when the checkpoint was saved."""
    blockers: tuple[Blocker, ...] = ()
    warnings: tuple[str, ...] = ()
    accepted: tuple[str, ...] = ()
    """What was named with `--accept` and stood against the restore."""
    decisions: tuple[Decision, ...] = ()
    """What a person said of effects whose outcome was not known, now or when the run was taken over."""
    undecided: tuple[OpenEffect, ...] = ()
    """What is to be decided on before the run goes on; known once the bundle is open."""
    taken_over: tuple[TakenOver, ...] = ()
    """Who took the run over since this checkpoint."""
    reason: str = ""
    """Why somebody restores, in their words."""
    opened_by: str | None = None
    """Fingerprint of the identity that opened the bundle; None for a plan."""
    break_glass: bool = False
    """Whether that is a break-glass identity."""
    next_seq: int | None = None
    """The number that the run goes on with."""
    claimed: int | None = None
    """The number of the claim by which this restore took the run over."""
    migrations: tuple[str, ...] = ()
    repairs: tuple[Repaired, ...] = ()
    findings: dict[str, int] = Field(default_factory=dict)
    replaced_before: tuple[str, ...] = ()
    """Credentials that earlier checkpoints of the run replaced and this one did not, in words: they are to be
    rotated all the same."""
    rotate: tuple[str, ...] = ()
    """What to do about the credentials that were replaced, the worst first; known once the bundle is open."""
    left_out: tuple[str, ...] = ()
    redacted: tuple[str, ...] = ()
    """Where in the state a value holds a placeholder, as `effects[0].arguments`: it must not be used."""
    folder: str | None = None
    next_steps: tuple[str, ...] = ()
    """Commands for a shell and comments; the last one is the command to go on with."""

    @property
    def exit_code(self) -> int:
        """0 when nothing blocks; 7 when a person must decide; else 3."""
        return max((blocker.exit_code for blocker in self.blockers), default=0)

    def as_document(self) -> dict[str, JsonValue]:
        """The report as JSON, with the exit code it stands for; what to do next stands last."""
        document = self.document()
        steps = document.pop("next_steps")
        return {**document, "exit_code": self.exit_code, "next_steps": steps}
