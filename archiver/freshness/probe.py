"""What a probe is and what it may look at."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

from archiver.aws.options import AwsOptions
from archiver.freshness.verdict import Verdict
from archiver.model import Budget, Environment, JsonValue, Spend
from archiver.model.checkpoint import Approval


@dataclass(frozen=True, slots=True)
class Current:
    """What the restorer is going to go on with; None where nobody said it."""

    harness: str | None = None
    model: str | None = None
    prompt: str | Path | None = None
    """The whole text of the system prompt, or the file that it stands in."""
    tools: JsonValue | Path = None
    """The schemas of the tools as the model is told them, or the JSON file that they stand in."""


@dataclass(frozen=True, slots=True)
class Context:
    """The world as the caller gives it to the probes; the clock is an argument."""

    now: datetime
    checkpoint_at: datetime
    workspace: Path | None = None
    """Where the run worked, or where its work lies on this machine."""
    apart: tuple[Path, ...] = ()
    """Files and folders that are no part of the work wherever they lie: the store, what a restore writes."""
    max_age: timedelta = timedelta(days=7)
    timeout: float = 10.0
    """Seconds that one probe may take."""
    network: bool = False
    """Whether other hosts may be asked at all."""
    hosts: tuple[str, ...] = ()
    """The hosts that may be asked: `example.com`, `*.example.com`, `example.com:8443`."""
    watch: tuple[str, ...] = ()
    """At a save: the resources whose version is remembered."""
    credentials: tuple[str, ...] = ()
    """At a save: the credentials of which presence and expiry are remembered, such as `env:NAME`."""
    aws: AwsOptions = AwsOptions()  # noqa: RUF009 - frozen and without state
    """How the store's server is reached, for what lies in buckets."""
    environ: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """The environment variables; their values are never remembered."""
    environment: Environment = Environment()  # noqa: RUF009 - frozen and without state
    """At a save: what the run itself states it ran in."""
    shown: Current = Current()
    """At a save: prompt and tools as the redacted transcript shows them."""
    current: Current = Current()
    """At a restore: what the run is going to go on with."""
    budget: Budget | None = None
    spend: Spend = Spend()  # noqa: RUF009 - as above
    pending: tuple[Approval, ...] = ()
    """Questions that wait for a person."""
    redact: Callable[[str], str] = str
    """Takes credentials out of a text, as a save does."""


class Probe(Protocol):
    """One question about the world; what `capture` returns is stored in the sealed record."""

    @property
    def name(self) -> str:
        """The word in records, reports and `--accept`; it never changes its meaning."""

    def capture(self, context: Context) -> JsonValue | None:
        """What to remember at save time, a few KiB at most; None when nothing can be compared later."""

    def judge(self, captured: JsonValue, context: Context) -> Verdict:
        """Compare what was remembered with the world now; raising counts as UNKNOWN."""
