"""Messages as JSON in any folder: each file that is a transcript of a known provider is a run.

What is no transcript, or holds rows of a database, is passed over with a word. Links are not followed: what
is written into such a folder must not lead to what its owner did not mean.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from archiver import jsonio
from archiver.errors import ArchiverError
from archiver.safetext import one_line
from archiver.sources import places
from archiver.sources.agents import session_of
from archiver.sources.beneath import led_astray
from archiver.sources.found import FileStamp, Found, Unusable
from archiver.sources.listing import Entry, Walk
from archiver.sources.place import Once, Place, given
from archiver.sources.session import files_of, said_of
from archiver.transcripts.detect import CLAUDE_CODE, OPAQUE
from archiver.transcripts.reader import recognise
from archiver.transcripts.sniff import first_lines
from archiver.transcripts.source import FileSource

_HEAD: Final = 1 << 16
_BLANKS: Final = b" \t\r\n\0"
_LARGEST_ROWS: Final = 64 << 20
_ROW: Final = ({"task_id", "goal", "messages"}, {"schema_version", "task_id"})


class Messages(Place):
    """A folder with transcripts, at any depth."""

    def find(self) -> Iterator[Found | Unusable]:
        """Each transcript once; hidden files are nobody's."""
        if (missing := self.missing()) is not None:
            yield missing
            return
        pattern, once, problems = self.pattern(), Once(), list[Unusable]()
        for listed in Walk(self.path, self.kind):
            if isinstance(listed, Unusable):
                yield listed
                continue
            for entry in listed[1]:
                if entry.name.startswith(".") or not pattern.fits(entry.path):
                    continue
                file = self._file(entry, problems)
                if file is not None and file.size > 0 and once.first(file):
                    yield self._look(file)
                yield from given(problems)

    def _file(self, entry: Entry, problems: list[Unusable]) -> FileStamp | None:
        if entry.is_symlink():
            why = "it is a link; name the folder that it leads to as a source"
            problems.append(self._passed(Path(entry.path), why))
            return None
        return self.stamp(entry, problems, follow=False)

    def _look(self, file: FileStamp) -> Found | Unusable:
        """The run that a file is, or what it is instead."""
        try:
            source = FileSource.of(file.path, follow=False)
            if not source.head(_HEAD).lstrip(_BLANKS).startswith((b"{", b"[")):
                return self._passed(file.path, "it is no JSON")
            dialect, _ = recognise(source)
            if dialect == OPAQUE:
                return self._passed(file.path, "it is no transcript of a known format")
            if _holds_rows(source):
                return self._passed(file.path, "it holds rows; name it to `archiver archive`")
            return self._run(file, dialect)
        except (ArchiverError, OSError) as error:
            return Unusable(self.kind, str(file.path), one_line(str(error)))

    def _run(self, file: FileStamp, dialect: str) -> Found | Unusable:
        if dialect == CLAUDE_CODE and places.is_agent(file.path.name):
            session = session_of(file.path)
            near = (file.path.parent, *file.path.parents[2:3])
            if any((folder / f"{session}.jsonl").is_file() for folder in near):
                return self._passed(file.path, "it is of a sub-agent and goes with its session")
        files = files_of((file.path,)) if dialect == CLAUDE_CODE else (file,)
        if (astray := led_astray(self.path, files)) is not None:
            why = f"{one_line(os.path.relpath(astray, file.path.parent))} is reached through a link"
            return Unusable(self.kind, str(file.path), why)
        return self.found(file.path, files, **said_of(file.path, dialect))

    def _passed(self, path: Path, why: str) -> Unusable:
        return Unusable(self.kind, str(path), why, broken=False)


def _holds_rows(source: FileSource) -> bool:
    """Whether the first document has the columns of a row, as teams keep them in a table."""
    if b'"task_id"' not in source.head(_HEAD):
        return False
    values = first_lines(source)
    if values is None and source.size <= _LARGEST_ROWS:
        values = _document(source)
    first: Any = values[0] if values else None
    first = first[0] if isinstance(first, list) and first else first
    return isinstance(first, dict) and any(row <= first.keys() for row in _ROW)


def _document(source: FileSource) -> list[Any] | None:
    try:
        return [jsonio.loads(b"".join(source.blocks()))]
    except ValueError:
        return None
