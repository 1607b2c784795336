"""Settings of workspaces: what of a folder is carried, and how much."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Literal

from pydantic import Field

from archiver.config.values import Duration, Size, Words
from archiver.model import Frozen
from archiver.model.checkpoint import Count
from archiver.workspace.options import CaptureOptions, WorkspaceLimits


class WorkspaceSettings(Frozen):
    """What of the folder that a run works in is saved with it."""

    capture: bool = Field(
        False,
        description="The library saves the folder given as `workspace` with each checkpoint.",
    )
    ignore: Words = Field(
        (),
        description="Patterns as in `.gitignore` of what is not carried, after the built-in ones.",
    )
    include: Words = Field((), description="Patterns of what is carried although it is ignored.")
    defaults: bool = Field(
        True, description="Ignore what a command makes again, such as `node_modules` and `.venv`."
    )
    credential_files: Literal["leave-out", "redact"] = Field(
        "leave-out",
        description="Files of credentials, such as `.env`: left out and named, or, where they are text, "
        "carried redacted.",
    )
    file: Size = Field(64 << 20, description="Bytes of one file; a larger one is left out and named.")
    entries: Annotated[Count, Field(ge=1, le=1_000_000)] = Field(
        90_000, description="Files, folders and links of a workspace; what comes after them is left out."
    )
    total: Size = Field(1536 << 20, description="Bytes of all files; one that does not fit is left out.")
    git_timeout: Duration = Field(timedelta(seconds=30), description="How long git may take for one capture.")

    def options(self) -> CaptureOptions:
        """The same in the words of a capture."""
        return CaptureOptions(
            ignore=self.ignore,
            include=self.include,
            defaults=self.defaults,
            timeout=self.git_timeout.total_seconds(),
            limits=WorkspaceLimits(file=self.file, files=self.entries, total=self.total),
        )
