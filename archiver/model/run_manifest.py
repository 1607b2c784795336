"""What a file beside the transcript of a run says of it, so that any harness can be swept."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field

from archiver.model.base import Frozen
from archiver.model.checkpoint import Outcome

MANIFEST_NAME: Final = "archiver-run.json"
"""The file's name: the folder that it lies in is the run."""
RUN_MANIFEST_FORMAT: Final = 1


class RunManifest(Frozen):
    """One run in a folder: whoever wrote it says what it is, and how it ended once it has."""

    format: Literal[1] = RUN_MANIFEST_FORMAT
    run: Annotated[str, Field(min_length=1, max_length=200)]
    """Its id."""
    transcript: Annotated[tuple[Annotated[str, Field(min_length=1)], ...], Field(min_length=1)]
    """Files of its transcript, the main one first, relative to the folder; none may lead out of it."""
    outcome: Outcome | None = None
    """How it ended; absent or `running` while it goes on. Without a word it is told as of other sources."""
    task: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    user: str | None = None
    phase: str = ""
    note: str = ""
