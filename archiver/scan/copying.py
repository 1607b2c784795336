"""Redacted copies of files in a folder: whole or not at all, never over anything, never through a link.

look at all files → look again for what was found → name the copies → write each and give it its name
→ the receipt, last: where it lies, everything is there
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from archiver import jsonio
from archiver.errors import ArchiverError, InputNotFoundError, RefusedError, UsageError
from archiver.model import Receipt
from archiver.progress import Progress, Silent
from archiver.redact import FileRedactor, Looked
from archiver.safetext import one_line
from archiver.scan.inputs import STANDARD_INPUT, Entry, Problem, Said, as_given, entries, top, unreadable
from archiver.scan.target import Target
from archiver.scan.work import Seen, Work
from archiver.scratch import Scratch

RECEIPT: Final = "redaction-receipt.json"
_LONGEST_NAME: Final = 255


@dataclass(frozen=True, slots=True)
class Copied:
    """What came of it; fingerprints are those of a key that nobody keeps."""

    receipt: Receipt
    files: tuple[str, ...]
    """Names of the copies below the folder."""
    bytes: int
    skipped: tuple[Said, ...]
    problems: tuple[Problem, ...]

    @property
    def exit_code(self) -> int:
        """0 when every file has its copy or was left out; else the code of what went wrong."""
        return max((problem.error.exit_code for problem in self.problems), default=0)


def redact(
    paths: Sequence[str],
    into: Path,
    redactor: FileRedactor,
    *,
    overwrite: bool = False,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> Copied:
    """Write redacted copies of the files and folders below `into`.

    A file that holds credentials and is no text has no copy; the receipt names it. Raises `UsageError` for
    inputs that overlap with each other or with `into`, or have one name; `AlreadyExistsError` for a name that
    is taken (nothing is written then); `StoreFullError`.
    """
    into = _apart(paths, into)
    work = Work(redactor, progress or Silent())
    seen = work.first(entries(paths))
    _look_into_bytes(work, seen)
    redactor.settle()
    names = _names(seen, redactor)
    target = Target(into, overwrite=overwrite)
    target.demand_free((*names, RECEIPT))
    done: list[str] = []
    work.progress.stage("copy" if not dry_run else "look once more", work.bytes)
    if dry_run:
        done = [name for name, one in zip(names, seen, strict=True) if _look(work, one, name)]
    else:
        with target, Scratch(into) as scratch:
            for name, one in zip(names, seen, strict=True):
                if _copy(work, one, name, target, scratch):
                    done.append(name)
            _write_receipt(redactor.receipt(), target, scratch)
    return Copied(
        receipt=redactor.receipt(),
        files=tuple(done),
        bytes=work.bytes,
        skipped=work.said(work.skipped),
        problems=tuple(work.problems),
    )


def _look_into_bytes(work: Work, seen: list[Seen]) -> None:
    """Whether what is no text holds a value that only another file gave away: then it has no copy.

    So nothing that has to stay out is ever written, not even to a place that is removed again.
    """
    for one in seen:
        if one.shape.form == "raw" and one.looked.reason is None:
            with suppress(ArchiverError):  # what happened to it is said when its copy is made
                looked = work.redactor.look(work.source(one.entry), one.shape, "", rules=False)
                one.looked = looked if looked.reason is not None else one.looked


def _copy(work: Work, one: Seen, name: str, target: Target, scratch: Scratch) -> bool:
    """Give the copy of one file its name; False where it has none."""
    try:
        if one.looked.reason is not None:  # known to be unsafe: not a byte of it is written anywhere
            work.redactor.look(work.source(one.entry), one.shape, one_line(name))
            looked = one.looked
        else:
            looked = work.redactor.copy(work.source(one.entry), one.shape, one_line(name), scratch)
    except (InputNotFoundError, RefusedError) as error:
        work.gone_or_problem(one.entry, error)
        return False
    if looked.spooled is None:
        work.redactor.leave_out(one_line(name), looked)
        return False
    work.progress.advance(looked.spooled.size)
    target.put(looked.spooled, name)
    return True


def _look(work: Work, one: Seen, name: str) -> bool:
    """The same, without a copy."""
    try:
        looked: Looked = work.redactor.look(work.source(one.entry), one.shape, one_line(name))
    except ArchiverError as error:
        work.gone_or_problem(one.entry, error)
        return False
    if looked.reason is not None:
        work.redactor.leave_out(one_line(name), looked)
    return looked.reason is None


def _write_receipt(receipt: Receipt, target: Target, scratch: Scratch) -> None:
    spool = scratch.spool("receipt", hashed=False)
    spool.write(jsonio.pretty(receipt.document()))
    target.put(spool.close(), RECEIPT)


def _apart(paths: Sequence[str], into: Path) -> Path:
    """The folder's real path, once it is certain that nothing lies in anything else."""
    if not paths or STANDARD_INPUT in paths:
        raise UsageError("copies are made of files and folders", remedy="name the files to be redacted")
    into = _real(into)
    reals: list[tuple[str, Path]] = []
    for text in paths:
        path = _real(Path(text))
        for other_text, other in reals:
            if path == other or path in other.parents or other in path.parents:
                raise UsageError(
                    f"{as_given(text)} and {as_given(other_text)} are the same, or one lies in the other",
                    remedy="name every file once",
                )
        if path == into or path in into.parents:
            raise UsageError(
                f"the folder of --into lies in {as_given(text)}, of which copies are made",
                remedy="choose a folder elsewhere",
            )
        if into in path.parents:
            raise UsageError(
                f"{as_given(text)} lies in the folder of --into", remedy="choose a folder elsewhere"
            )
        reals.append((text, path))
    _demand_names_apart(paths)
    return into


def _demand_names_apart(paths: Sequence[str]) -> None:
    named: dict[str, str] = {}
    for text in paths:
        before = named.setdefault(top(Path(text)), text)
        if before is not text:
            raise UsageError(
                f"{one_line(before)} and {one_line(text)} would have the same name in the folder of --into",
                remedy="redact them into a folder each",
            )


def _real(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError) as error:
        reason = error if isinstance(error, OSError | ValueError) else ValueError("it is a loop of links")
        raise unreadable(str(path), reason) from error


def _names(seen: Iterable[Seen], redactor: FileRedactor) -> tuple[str, ...]:
    """The name of each copy: that of its file with credentials replaced, numbered where it is taken."""
    names: list[str] = []
    files: set[str] = {RECEIPT}
    folders: set[str] = set()
    for one in seen:
        entry = _demand_not_receipt(one.entry)
        for name in _numbered(_fitting(redactor.name(entry.name), redactor)):
            above = {name[:at] for at, sign in enumerate(name) if sign == "/"}
            if name not in files and name not in folders and files.isdisjoint(above):
                break
        files.add(name)
        folders |= above
        names.append(name)
    return tuple(names)


def _demand_not_receipt(entry: Entry) -> Entry:
    if entry.name == RECEIPT:
        raise UsageError(
            f"{RECEIPT} is the name of the receipt and of a file to be redacted",
            remedy="leave out what an earlier run has made",
        )
    return entry


def _fitting(name: str, redactor: FileRedactor) -> str:
    """The name with each step that has grown too long for a file system as a word of its own."""
    steps = name.split("/")
    return "/".join(
        step if len(step.encode("utf-8", "surrogateescape")) <= _LONGEST_NAME else redactor.whole_name(step)
        for step in steps
    )


def _numbered(name: str) -> Iterator[str]:
    yield name
    number = 2
    while True:
        yield f"{name}-{number}"
        number += 1
