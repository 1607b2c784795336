"""Whether the world still matches a checkpoint: one probe a question, the most cautious answer wins."""

from archiver.freshness.git_commit import workspace_of
from archiver.freshness.probe import Context, Probe
from archiver.freshness.registry import PROBES, capture_all, judge_all
from archiver.freshness.verdict import FreshnessReport, Policy, State, Verdict

__all__ = [
    "PROBES",
    "Context",
    "FreshnessReport",
    "Policy",
    "Probe",
    "State",
    "Verdict",
    "capture_all",
    "judge_all",
    "workspace_of",
]
