"""The classes of what is stored, kept as records and notes say: the plan, one run, a whole store."""

from archiver.tagging.planning import Change, Known, There, Wanted, next_time, ordered, wanted
from archiver.tagging.settling import Settled, after_save, is_sweeper, settle
from archiver.tagging.sweeping import sweep

__all__ = [
    "Change",
    "Known",
    "Settled",
    "There",
    "Wanted",
    "after_save",
    "is_sweeper",
    "next_time",
    "ordered",
    "settle",
    "sweep",
    "wanted",
]
