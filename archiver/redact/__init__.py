"""Redaction: no credential leaves in a bundle, and no wrong hit breaks a resume."""

from archiver.redact.exact import ExactValue, exact_from_environment
from archiver.redact.placeholder import contains_placeholder, is_placeholder
from archiver.redact.redactor import Redactor, new_key

__all__ = [
    "ExactValue",
    "Redactor",
    "contains_placeholder",
    "exact_from_environment",
    "is_placeholder",
    "new_key",
]
