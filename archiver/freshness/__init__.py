"""Whether the world still matches a checkpoint: one probe a question, the most cautious answer wins."""

from archiver.freshness.callables import register_resource, unregister_resource
from archiver.freshness.git_commit import workspace_of
from archiver.freshness.limits import stated
from archiver.freshness.probe import Context, Current, Probe
from archiver.freshness.registry import all_probes, capture_all, judge_all, register, unregister
from archiver.freshness.resources import unseen
from archiver.freshness.verdict import Action, Finding, FreshnessReport, Policy, State, Verdict, together

__all__ = [
    "Action",
    "Context",
    "Current",
    "Finding",
    "FreshnessReport",
    "Policy",
    "Probe",
    "State",
    "Verdict",
    "all_probes",
    "capture_all",
    "judge_all",
    "register",
    "register_resource",
    "stated",
    "together",
    "unregister",
    "unregister_resource",
    "unseen",
    "workspace_of",
]
