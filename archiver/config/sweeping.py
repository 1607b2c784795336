"""Settings of completed runs: how long what is stored is kept, where runs lie, and how they are swept."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from archiver.config.values import Count, Duration, Place, json_text
from archiver.model import Frozen
from archiver.model.record import RetentionClass
from archiver.retention import DAYS


def _days(class_: RetentionClass) -> Any:
    """A length of time in whole days, no shorter than what a stored run was promised."""
    least = DAYS[class_]
    assert least is not None  # noqa: S101 - a hold has no key

    def whole(value: timedelta) -> timedelta:
        if value % timedelta(days=1) or value.days < least:
            raise ValueError(
                f"{value.days}d is less than the {least} days that class `{class_}` promises, or not in "
                "whole days; to have a run gone earlier use `archiver rm` or `archiver erase`"
            )
        return value

    return AfterValidator(whole)


class RetentionSettings(Frozen):
    """How long what is stored is kept; longer than the defaults, never shorter."""

    sweeper: bool | None = Field(
        None,
        description="Whether this machine changes the classes of what it has saved. Unset: yes in a folder, "
        "no in a bucket, where that is the right of one role.",
    )
    intermediate: Annotated[Duration, _days("intermediate")] = Field(
        timedelta(days=8), description="Bundles of a run that are superseded, beyond the newest `run.ring`."
    )
    success: Annotated[Duration, _days("success")] = Field(
        timedelta(days=30), description="Runs that succeeded, were cancelled, or are merged."
    )
    failure: Annotated[Duration, _days("failure")] = Field(
        timedelta(days=180), description="Runs that failed or crashed."
    )
    live: Annotated[Duration, _days("live")] = Field(
        timedelta(days=180), description="The newest bundles of runs that go on."
    )
    record: Annotated[Duration, _days("record")] = Field(
        timedelta(days=400), description="Records, effects and audit, whatever became of the bundles."
    )

    @property
    def days(self) -> dict[RetentionClass, int | None]:
        """Days by class; None without end."""
        return {
            "intermediate": self.intermediate.days,
            "success": self.success.days,
            "failure": self.failure.days,
            "live": self.live.days,
            "record": self.record.days,
            "hold": None,
        }


class SourceSettings(Frozen):
    """A place where finished runs lie."""

    kind: Literal["claude-code", "codex", "messages", "folder"]
    path: Place | None = None
    """The folder to look in; unset for a harness: its own place."""
    match: str = "**"
    """Only paths below the folder that fit this pattern."""
    idle: Annotated[Duration, Field(gt=timedelta())] | None = None
    """How long a run of this source must be quiet; unset: `sweep.idle`."""
    task: str | None = None
    """Id of the task of its runs; unset: what they say, else the run's id."""

    @model_validator(mode="after")
    def _has_a_place(self) -> SourceSettings:
        if self.path is None and self.kind in ("messages", "folder"):
            raise ValueError(f"a source of kind {self.kind!r} needs a path")
        return self


class SweepSettings(Frozen):
    """How completed runs archive themselves (`archiver sweep`)."""

    sources: Annotated[tuple[SourceSettings, ...], BeforeValidator(json_text)] = Field(
        (),
        description="Where runs lie: tables with `kind` (`claude-code`, `codex`, `messages`, `folder`), and "
        "`path`, `match`, `idle`, `task`. Unset: Claude Code and Codex, where they keep their sessions. In a "
        "variable: JSON.",
    )
    idle: Annotated[Duration, Field(gt=timedelta())] = Field(
        timedelta(minutes=30),
        description="How long a run without a final marker must be quiet, and open in no process, to count "
        "as complete.",
    )
    every: Annotated[Duration, Field(ge=timedelta(seconds=1))] = Field(
        timedelta(minutes=5), description="How long `sweep --watch` waits between two looks."
    )
    parallel: Annotated[Count, Field(le=64)] = Field(
        2, description="Runs that are archived at the same time."
    )
    state: Place | None = Field(
        None,
        description="Folder that remembers what was archived, so that it is not read again. Unset: `sweep` "
        "in the state home.",
    )
    log: Place | None = Field(
        None,
        description="JSON lines, appended to: what each sweep did. Unset: `sweep.jsonl` in the state home.",
    )
