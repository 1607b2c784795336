"""Regular expressions as RE2 and Go write them: parsed, judged, and written for Python and for Vectorscan."""

from archiver.redact.re2.cost import why_costly
from archiver.redact.re2.emit import TELLING, python, trigger
from archiver.redact.re2.parse import ExpressionError, parse
from archiver.redact.re2.sample import sample
from archiver.redact.re2.tree import Node, groups, literal, shortest, telling

__all__ = [
    "TELLING",
    "ExpressionError",
    "Node",
    "groups",
    "literal",
    "parse",
    "python",
    "sample",
    "shortest",
    "telling",
    "trigger",
    "why_costly",
]
