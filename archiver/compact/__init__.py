"""Compaction: the smallest sufficient transcript, made after redaction, pure and deterministic.

What a person or the system prompt said and the last turns stay whole. Older tool results become stubs where
that saves bytes, older reasoning and structured copies go, large outputs and images become artifacts. The
result is valid for its dialect, and compacting it again changes nothing.
"""

from archiver.compact.compaction import Compacted, compact
from archiver.compact.fitting import Fitted, fit
from archiver.compact.kept import Kept, Reuse
from archiver.compact.marks import Marks
from archiver.compact.notes import Conclusion, Stub, read_stub
from archiver.compact.options import CompactOptions, CompactReport
from archiver.compact.outline import Outline
from archiver.compact.summary import CommandRun, Summarise, SummaryFacts, default_summary

__all__ = [
    "CommandRun",
    "CompactOptions",
    "CompactReport",
    "Compacted",
    "Conclusion",
    "Fitted",
    "Kept",
    "Marks",
    "Outline",
    "Reuse",
    "Stub",
    "Summarise",
    "SummaryFacts",
    "compact",
    "default_summary",
    "fit",
    "read_stub",
]
