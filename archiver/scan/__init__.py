"""Credentials in files and in what is stored: to be counted, or to be replaced in copies."""

from archiver.scan.copying import Copied, redact
from archiver.scan.examining import Checked, examine
from archiver.scan.inputs import Problem, Said, Stream
from archiver.scan.scanning import Scanned, scan

__all__ = [
    "Checked",
    "Copied",
    "Problem",
    "Said",
    "Scanned",
    "Stream",
    "examine",
    "redact",
    "scan",
]
