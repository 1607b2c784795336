"""One thing that was looked at: what was found, what it means, and what to do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from archiver.errors import ArchiverError, DamagedError

Verdict = Literal["ok", "warning", "failure", "unknown"]


@dataclass(frozen=True, slots=True)
class Check:
    """One line of `archiver doctor`.

    `ok` was seen to be so; `unknown` could not be looked at and promises nothing; a `warning` is to be
    weighed; a `failure` keeps something from working as it is promised, and has an exit code.
    """

    name: str
    verdict: Verdict
    text: str
    remedy: str | None = None
    exit_code: int = 0


def ok(name: str, text: str) -> Check:
    """It is so."""
    return Check(name, "ok", text)


def warning(name: str, text: str, remedy: str | None = None) -> Check:
    """It works, and is not as it should be."""
    return Check(name, "warning", text, remedy)


def failure(name: str, text: str, remedy: str | None, kind: type[ArchiverError]) -> Check:
    """It does not work as promised; the exit code is that of the error which a command would meet."""
    return Check(name, "failure", text, remedy, kind.exit_code)


def failed(name: str, error: ArchiverError) -> Check:
    """It does not work, as the error says."""
    return Check(name, "failure", str(error), error.remedy, error.exit_code)


def unknown(name: str, text: str, remedy: str | None = None) -> Check:
    """It could not be looked at."""
    return Check(name, "unknown", text, remedy)


ENFORCED = "enforced"
NOT_ENFORCED = "NOT enforced"
"""How the text of the check `fencing` begins where it could be seen."""


def fencing(checks: Iterable[Check]) -> Literal["enforced", "not enforced", "unknown"]:
    """What can be promised to two writers of one run."""
    for check in checks:
        if check.name == "fencing" and check.text.startswith(ENFORCED):
            return "enforced"
        if check.name == "fencing" and check.text.startswith(NOT_ENFORCED):
            return "not enforced"
    return "unknown"


def exit_code(checks: Iterable[Check]) -> int:
    """0 without a failure; 4 if something is damaged, else the highest code of the failures."""
    codes = {check.exit_code for check in checks if check.verdict == "failure"}
    return DamagedError.exit_code if DamagedError.exit_code in codes else max(codes, default=0)
