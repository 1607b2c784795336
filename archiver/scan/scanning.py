"""Look for credentials in files: what was found, where, and what to rotate. Nothing is written."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from archiver.model import Receipt
from archiver.progress import Progress, Silent
from archiver.redact import Bytes, FileRedactor
from archiver.scan.inputs import Problem, Said, entries
from archiver.scan.work import Work


@dataclass(frozen=True, slots=True)
class Scanned:
    """What came of a scan; fingerprints are those of its own key, which nobody keeps."""

    receipt: Receipt
    files: int
    bytes: int
    skipped: tuple[Said, ...]
    """What is no regular file, or vanished."""
    unseen: tuple[Said, ...]
    """Files that are packed or encrypted in a way that cannot be looked into."""
    problems: tuple[Problem, ...]

    @property
    def exit_code(self) -> int:
        """0 nothing found, 1 credentials found; where a file could not be read, the code of that error."""
        if self.problems:
            return max(problem.error.exit_code for problem in self.problems)
        return 1 if self.receipt.findings else 0


def scan(
    paths: Iterable[str],
    redactor: FileRedactor,
    *,
    standard_input: Bytes | None = None,
    progress: Progress | None = None,
) -> Scanned:
    """Look at the files and folders; `-` stands for `standard_input`.

    What cannot be read is kept as a problem of the answer. Of a standard input that is too long to be kept,
    the copies of a value that stand before the place that gave it away are not counted.
    """
    work = Work(redactor, progress or Silent(), standard_input)
    seen = work.first(entries(paths))
    work.again(seen)
    return Scanned(
        receipt=redactor.receipt(),
        files=len(seen),
        bytes=work.bytes,
        skipped=work.said(work.skipped),
        unseen=work.said(work.unseen),
        problems=tuple(work.problems),
    )
