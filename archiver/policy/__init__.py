"""When a checkpoint pays: reasons, profiles and the break-even; pure."""

from archiver.policy.breakeven import Estimate, estimate, interval, probability, rate
from archiver.policy.costs import INTERRUPTIONS_PER_HOUR, Costs
from archiver.policy.deciding import Decision, Moment, Policy, Profile, decide, proves

__all__ = [
    "INTERRUPTIONS_PER_HOUR",
    "Costs",
    "Decision",
    "Estimate",
    "Moment",
    "Policy",
    "Profile",
    "decide",
    "estimate",
    "interval",
    "probability",
    "proves",
    "rate",
]
