"""Two looks at many files: the first finds what is secret, the second finds it everywhere."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from archiver.errors import ArchiverError
from archiver.progress import Progress
from archiver.redact import Bytes, FileRedactor, Looked, Shape, shape_of
from archiver.safetext import one_line
from archiver.scan.inputs import Entry, Problem, Said, Stream

_UNSEEN = "it could not be looked into"


@dataclass(slots=True)
class Seen:
    """A file after the first look."""

    entry: Entry
    shape: Shape
    looked: Looked


class Work:
    """Goes through files; what is passed over, or cannot be read, is kept to be said."""

    def __init__(self, redactor: FileRedactor, progress: Progress, given: Bytes | None = None) -> None:
        """`given` are the bytes of standard input, where that is named."""
        self.redactor = redactor
        self.progress = progress
        self.bytes = 0
        self.skipped: list[Said] = []
        self.unseen: list[Said] = []
        self.problems: list[Problem] = []
        self._given = given
        self._names: dict[str, str] = {}

    def first(self, found: Iterable[Entry | Said | Problem]) -> list[Seen]:
        """Look at every file with all rules."""
        seen: list[Seen] = []
        self.progress.stage("look", None)
        for one in found:
            if isinstance(one, Problem):
                self._problem(one.name, one.error)
            elif isinstance(one, Said):
                self.skipped.append(Said(self.place(one.name), one.why))
            elif (made := self._look(one)) is not None:
                seen.append(made)
        return seen

    def again(self, seen: list[Seen]) -> None:
        """Look at every file once more, now for all values that were found in any of them."""
        if isinstance(self._given, Stream) or not self.redactor.settle():
            return
        self._names.clear()
        self.progress.stage("look again", self.bytes)
        for one in seen:
            place = self.place(one.entry.name)
            try:
                source = one.entry.source(self._given)
                self.redactor.look(source, one.shape, place, rules=one.looked.found > 0)
                self.progress.advance(source.size)
            except ArchiverError as error:
                self.gone_or_problem(one.entry, error)

    def source(self, entry: Entry) -> Bytes:
        """The bytes of a file."""
        return entry.source(self._given)

    def place(self, name: str) -> str:
        """A file's name as it may be shown: inert, and free of credentials."""
        held = self._names.get(name)
        if held is None:
            held = self._names[name] = one_line(self.redactor.name(name))
        return held

    def gone_or_problem(self, entry: Entry, error: ArchiverError) -> None:
        """Keep what happened to a file: that it vanished is no error."""
        if entry.is_gone and not entry.named:
            self.skipped.append(Said(self.place(entry.name), "it vanished meanwhile"))
        else:
            self._problem(entry.name, error)

    def said(self, found: Iterable[Said]) -> tuple[Said, ...]:
        """The same as it is said at the end, when all values are known."""
        return tuple(Said(self.redactor.shown(one.name), one.why) for one in found)

    def _look(self, entry: Entry) -> Seen | None:
        try:
            source = self.source(entry)
            shape = shape_of(source) if not isinstance(source, Stream) else Shape("raw")
            looked = self.redactor.look(source, shape, self.place(entry.name))
        except ArchiverError as error:
            self.gone_or_problem(entry, error)
            return None
        self.bytes += source.size
        self.progress.advance(source.size)
        if looked.reason is not None and looked.reason.startswith(_UNSEEN):
            self.unseen.append(Said(self.place(entry.name), looked.reason))
        return Seen(entry, shape, looked)

    def _problem(self, name: str, error: ArchiverError) -> None:
        """The error with its words free of credentials: they name the file."""
        error.args = tuple(self.redactor.text(str(part)) for part in error.args)
        error.remedy = self.redactor.text(error.remedy) if error.remedy else None
        self.problems.append(Problem(self.place(name), error.with_traceback(None)))
