"""Repair: what makes a restored transcript invalid is mended on a copy, and said.

Unanswered calls get marked error results, results without a call and second results are dropped, late ones
are moved, broken links, empty texts and lone surrogates are mended. What is open by design stays open.
"""

from archiver.repair.repairing import RepairReport, mended, reasons, repair
from archiver.repair.words import INTERRUPTED, Action

__all__ = ["INTERRUPTED", "Action", "RepairReport", "mended", "reasons", "repair"]
