"""Redaction: no credential leaves in a bundle, and no wrong hit breaks a resume.

What stands here is loaded when it is first used: whoever only asks whether a text holds a placeholder, as a
plan does, needs no rules and no engine.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from archiver.redact.carried import Carried, CarriedRedactor
    from archiver.redact.credential_files import Credentials
    from archiver.redact.environment import exact_from_environment
    from archiver.redact.exact import ExactValue
    from archiver.redact.file_forms import Bytes, Held, Shape, shape_of
    from archiver.redact.files import FileRedactor, Looked
    from archiver.redact.inflate import InflateLimits
    from archiver.redact.later import Mark
    from archiver.redact.objects import GitObject, Refusal, ScannedObjects
    from archiver.redact.placeholder import contains_placeholder, is_placeholder, usable
    from archiver.redact.redactor import Redactor, new_key
    from archiver.redact.ruleset import Chosen, OwnPattern
    from archiver.redact.spelling import fingerprints, spellings

__all__ = [
    "Bytes",
    "Carried",
    "CarriedRedactor",
    "Chosen",
    "Credentials",
    "ExactValue",
    "FileRedactor",
    "GitObject",
    "Held",
    "InflateLimits",
    "Looked",
    "Mark",
    "OwnPattern",
    "Redactor",
    "Refusal",
    "ScannedObjects",
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

_HOME: Final = {
    **dict.fromkeys(("Carried", "CarriedRedactor"), "carried"),
    "Credentials": "credential_files",
    "InflateLimits": "inflate",
    "Mark": "later",
    **dict.fromkeys(("GitObject", "Refusal", "ScannedObjects"), "objects"),
    "exact_from_environment": "environment",
    "ExactValue": "exact",
    **dict.fromkeys(("Bytes", "Held", "Shape", "shape_of"), "file_forms"),
    **dict.fromkeys(("FileRedactor", "Looked"), "files"),
    **dict.fromkeys(("contains_placeholder", "is_placeholder", "usable"), "placeholder"),
    **dict.fromkeys(("Redactor", "new_key"), "redactor"),
    **dict.fromkeys(("Chosen", "OwnPattern"), "ruleset"),
    **dict.fromkeys(("fingerprints", "spellings"), "spelling"),
}
"""The module that each name comes from."""


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = found
    return found
