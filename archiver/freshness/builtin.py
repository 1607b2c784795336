"""The probes that come with this release, in the order in which they are started."""

from __future__ import annotations

from archiver.freshness.age import AgeProbe
from archiver.freshness.git_commit import GitCommitProbe
from archiver.freshness.limits import ApprovalsProbe, BudgetProbe
from archiver.freshness.probe import Probe

BUILTIN: tuple[Probe, ...] = (
    GitCommitProbe(),
    AgeProbe(),
    BudgetProbe(),
    ApprovalsProbe(),
)
