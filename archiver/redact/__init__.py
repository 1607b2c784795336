"""Redaction: no credential leaves in a bundle, and no wrong hit breaks a resume."""

from archiver.redact.environment import exact_from_environment
from archiver.redact.exact import ExactValue
from archiver.redact.file_forms import Bytes, Held, Shape, shape_of
from archiver.redact.files import FileRedactor, Looked
from archiver.redact.placeholder import contains_placeholder, is_placeholder, usable
from archiver.redact.redactor import Redactor, new_key
from archiver.redact.ruleset import Chosen, OwnPattern
from archiver.redact.spelling import fingerprints, spellings

__all__ = [
    "Bytes",
    "Chosen",
    "ExactValue",
    "FileRedactor",
    "Held",
    "Looked",
    "OwnPattern",
    "Redactor",
    "Shape",
    "contains_placeholder",
    "exact_from_environment",
    "fingerprints",
    "is_placeholder",
    "new_key",
    "shape_of",
    "spellings",
    "usable",
]
