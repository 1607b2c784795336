"""Everything that is invalid about the files of one transcript, by file and line."""

from __future__ import annotations

import re
from array import array
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from json import JSONDecodeError
from pathlib import Path
from typing import Any, Final

from archiver import jsonio
from archiver.migrate import migrate
from archiver.model import SCHEMA_VERSION, TranscriptPart
from archiver.repair import reasons
from archiver.transcripts import get_dialect, sniff
from archiver.transcripts.detect import OPAQUE
from archiver.transcripts.dialect import Problem
from archiver.transcripts.reader import Dropped, Reading, read
from archiver.transcripts.source import FileSource

LARGEST: Final = 64 << 20
"""Bytes of an item: a picture that the provider refuses may have more than an archive takes.

Also of a document that is read as a whole, to say where it stops being one.
"""
_HEAD: Final = 1 << 16
_DOCUMENT: Final = re.compile(
    rb'\s*(?:\[\s*\{\s*"(?:role|content|type|id)"'
    rb'|\{\s*"(?:messages|input|output|model|system|tools|instructions|request|body|object|id|max_tokens'
    rb'|max_output_tokens|max_completion_tokens|stream|temperature|created|created_at|interactions)")'
)
"""How a list of messages or items begins, alone or in the body of a request or a response."""
_SAID: Final = re.compile(
    rb'"(?:role"\s*:\s*"(?:user|assistant|system|developer|tool)|(?:tool_)?call_id|tool_use_id|encrypted_content)"'
)
"""Words that stand in transcripts of models."""
_MARKS: Final = {
    BOM_UTF8: "a byte-order mark",
    BOM_UTF16_LE: "the mark of UTF-16",
    BOM_UTF16_BE: "the mark of UTF-16",
}
_STATE: Final = frozenset({"run_id", "task_id", "goal", "objective", "transcript"})
"""Keys of a checkpoint, of any version."""
NO_MARK: Final = "save it as UTF-8 without the mark, and check that: nothing behind it was looked at"
NO_DOCUMENT: Final = "what is left of it is no document, and nothing says how it went on"


@dataclass(frozen=True, slots=True)
class Finding:
    """One problem: in which file, at which line (1-based) or item (0-based), and whether it can be mended."""

    file: Path
    code: str
    detail: str
    line: int | None = None
    column: int | None = None
    item: int | None = None
    call_id: str | None = None
    reason: str | None = None
    """Why it cannot be mended; None where it can."""


@dataclass(frozen=True, slots=True)
class Checked:
    """What was found in the files of one transcript; one that is `opaque` was not looked into."""

    path: Path
    dialect: str
    files: int
    items: int
    findings: tuple[Finding, ...]

    @property
    def valid(self) -> bool | None:
        """False where something was found; None where nothing could be looked for, as of no known format."""
        if self.findings:
            return False
        return None if self.dialect == OPAQUE else True


def check(path: Path) -> Checked:
    """Look for everything that makes the transcript at `path` invalid; a file, or the folder of a session.

    Memory grows with calls and problems, not with what was said. Raises as `reader.read` does, and
    `UnsupportedSchemaError` for a checkpoint of a newer version.
    """
    reading = opened(path)
    findings: list[Finding] = []
    items = 0
    for part, found in zip(reading.transcript.parts, reading.files, strict=True):
        numbers = array("Q")
        if not part.items.raw and reading.transcript.dialect != OPAQUE:
            problems = get_dialect(reading.transcript.dialect).problems(_values(reading, part, numbers))
            findings += _found(found.source.path, problems, numbers)
            items += len(numbers)
        findings += broken(reading, part.name, found.source)
    findings.sort(key=lambda one: one.line or 0)  # stable: by file first
    order = {found.source.path: place for place, found in enumerate(reading.files)}
    findings.sort(key=lambda one: order[one.file])
    return Checked(path, reading.transcript.dialect, len(reading.files), items, tuple(findings))


def opened(path: Path) -> Reading:
    """The transcript at `path`, damage passed over and noted."""
    reading = read([path], salvage=True, max_item=LARGEST)
    for found in reading.files[:1]:
        for value in _documents(found.source):
            version = value.get("schema_version")
            if type(version) is int and version > SCHEMA_VERSION and not _STATE.isdisjoint(value):
                migrate(value)
    return reading


def _documents(source: FileSource) -> list[dict[str, Any]]:
    """The objects on the first lines of a file, or the one that it is."""
    head = source.head(_HEAD)
    if b'"schema_version"' not in head:
        return []
    values = sniff.first_lines(source)
    if values is None and source.size <= LARGEST:
        try:
            values = [jsonio.loads(source.head(source.size))]
        except ValueError:
            values = None
    return [value for value in values or () if isinstance(value, dict)]


def _values(reading: Reading, part: TranscriptPart, numbers: array[int]) -> Iterator[Any]:
    """The items; `numbers` is told the line of each, or 0 where items are not lines."""
    lines = reading.lines.get(part.name)
    for _, value in part.items.pairs():
        numbers.append(lines.number if lines is not None else 0)
        yield value


def _found(file: Path, problems: Sequence[Problem], numbers: array[int]) -> Iterator[Finding]:
    for problem, reason in zip(problems, reasons(problems), strict=True):
        line = numbers[problem.item] if problem.item < len(numbers) else 0
        yield Finding(
            file,
            problem.code,
            problem.detail,
            line or None,
            None,
            problem.item,
            problem.call_id,
            reason,
        )


def broken(reading: Reading, name: str, source: FileSource) -> Iterator[Finding]:
    """Lines of a part that cannot be read as they stand, once a pass was through them."""
    for one in reading.dropped:
        if one.part == name:
            yield Finding(source.path, "broken_line", _lost(one), one.line, one.column)
    lines = reading.lines.get(name)
    for number in lines.glued if lines is not None else ():
        yield Finding(source.path, "broken_line", "several objects on one line", number, 1)
    if reading.transcript.dialect == OPAQUE:
        yield from _torn(source)


def _lost(one: Dropped) -> str:
    return f"{one.reason}: {one.bytes:,} bytes cannot be read"


def _torn(source: FileSource) -> Iterator[Finding]:
    """A transcript that is no JSON any more; what else is not JSON is nobody's transcript."""
    head = source.head(_HEAD)
    for mark, name in _MARKS.items():
        if head.startswith(mark):
            detail = f"the file begins with {name}, and no JSON begins so"
            yield Finding(source.path, "broken_line", detail, 1, 1, reason=NO_MARK)
            return
    if _DOCUMENT.match(head) is None or _SAID.search(head) is None or source.size > LARGEST:
        return
    if len(sniff.first_lines(source) or ()) > 1:
        return
    text = source.head(source.size)
    try:
        jsonio.loads(text)
    except JSONDecodeError as error:
        if not error.msg.startswith("Extra data"):
            detail = f"the document is damaged: {error.msg}"
            yield Finding(source.path, "broken_line", detail, error.lineno, error.colno, reason=NO_DOCUMENT)
    except UnicodeDecodeError as error:
        line = text.count(b"\n", 0, error.start) + 1
        column = error.start - text.rfind(b"\n", 0, error.start)
        detail = "the document holds bytes that are not UTF-8"
        yield Finding(source.path, "broken_line", detail, line, column, reason=NO_DOCUMENT)
    except ValueError:  # such as a NaN: sound enough for others
        return
