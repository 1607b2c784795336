"""The probes that come with this release, in the order in which they are started."""

from __future__ import annotations

from archiver.freshness.age import AgeProbe
from archiver.freshness.agent import HarnessProbe, ModelProbe, PromptProbe, ToolsProbe
from archiver.freshness.credentials import CredentialsProbe
from archiver.freshness.git_branch import GitBranchProbe
from archiver.freshness.git_commit import GitCommitProbe
from archiver.freshness.git_dirty import GitDirtyProbe
from archiver.freshness.installed import InstalledProbe
from archiver.freshness.limits import ApprovalsProbe, BudgetProbe
from archiver.freshness.lockfiles import LockfilesProbe
from archiver.freshness.machine import PlatformProbe, RuntimeProbe
from archiver.freshness.probe import Probe
from archiver.freshness.remote_head import RemoteHeadProbe
from archiver.freshness.upstream import UpstreamProbe

STATED: tuple[Probe, ...] = (
    PromptProbe(),
    ToolsProbe(),
    HarnessProbe(),
    ModelProbe(),
    AgeProbe(),
    BudgetProbe(),
    ApprovalsProbe(),
)
"""Those that remember what the run says of itself, and so look at nothing that could keep them."""

BUILTIN: tuple[Probe, ...] = (
    UpstreamProbe(),
    RemoteHeadProbe(),
    CredentialsProbe(),
    GitDirtyProbe(),
    GitCommitProbe(),
    GitBranchProbe(),
    InstalledProbe(),
    LockfilesProbe(),
    RuntimeProbe(),
    PlatformProbe(),
    *STATED,
)
