"""The files of a workspace as they are carried: read and redacted, or known and held by the base of a bundle.

A file that looks as it did when it was scanned is not opened, if the base holds its content. Where a value
became known since, such files are searched for it, and one that holds it is read as any other.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from archiver.model import LeftOut
from archiver.model.workspace import TreeEntry, object_member
from archiver.redact import Redactor
from archiver.redact.carried import Carried
from archiver.redact.later import Mark
from archiver.workspace.found import Found, Skipped
from archiver.workspace.memory import WorkspaceMemory
from archiver.workspace.reading import NotReadError, content, stable

if TYPE_CHECKING:
    from archiver.pack import Held
    from archiver.redact.carried import CarriedRedactor

_MODE = 0o644
"""Of a member that is the content of a file."""


@dataclass(frozen=True, slots=True)
class Content:
    """A file of the tree, and its content as it is carried."""

    found: Found
    carried: Carried

    @property
    def entry(self) -> TreeEntry:
        """Its line of the tree."""
        made = self.carried
        return replace(self.found.entry, sha256=made.sha256, size=made.size, redacted=made.redacted)


@dataclass(slots=True)
class Files:
    """What a tree is made of, as one save takes it."""

    redactor: Redactor
    carrier: CarriedRedactor
    memory: WorkspaceMemory
    table: Mapping[str, Held]
    """Of the base; empty where there is none, so that everything is read."""
    limit: int
    """Bytes of a file."""
    contents: list[Content] = field(default_factory=list)
    others: list[TreeEntry] = field(default_factory=list)
    """Entries without content."""
    kept: list[tuple[Found, TreeEntry]] = field(default_factory=list)
    """Files that were not read."""

    def take(self, found: Iterable[Found], mark: Mark) -> None:
        """All that was found; for what values named in `mark` the memory was searched."""
        for one in found:
            if one.entry.type != "file":
                self._without_content(one.entry)
            elif (entry := self._held(one)) is not None:
                self.kept.append((one, entry))
            else:
                self._read(one)
        while self.kept and self.redactor.grew_since(mark):
            now = self.redactor.mark()
            stale = [one for one, _ in self.kept if self.holds(one, mark)]
            for one in stale:
                self._read(one)
            left = {one.entry.path for one in stale}
            self.kept = [pair for pair in self.kept if pair[1].path not in left]
            mark = now
        self.contents = list(self._again())

    def holds(self, found: Found, mark: Mark) -> bool:
        """Whether a file that was not read holds what is known by now and was not then, or is another one."""
        try:
            return self.redactor.search_again(content(found), mark)
        except NotReadError:
            return True

    def drop(self, paths: Container[str]) -> None:
        """Carry none of these files."""
        self.kept = [pair for pair in self.kept if pair[1].path not in paths]
        self.contents = [one for one in self.contents if one.found.entry.path not in paths]

    def entries(self) -> Iterator[TreeEntry]:
        """The lines of the tree, in no order."""
        yield from self.others
        yield from (entry for _, entry in self.kept)
        yield from (one.entry for one in self.contents)

    def remember(self, began: int) -> None:
        """Keep in the memory what is carried as it is, and nothing else; `began`: as of the capture."""
        for found, entry in self.kept:
            self.memory.files.keep(found, entry, began)
        for one in self.contents:
            if not one.carried.redacted:  # what is found in it has to be found in each save
                self.memory.files.keep(one.found, one.entry, began)
        self.memory.files.settle()

    def leave_out(self, skipped: Skipped) -> None:
        """Have the receipt say what is not carried, and why."""
        text = self.redactor.text  # what the file system says of a name may repeat it
        self.carrier.leave_out(text(skipped.path), text(skipped.reason))

    def _held(self, found: Found) -> TreeEntry | None:
        """The entry of a file that need not be read."""
        entry = self.memory.files.known(found) if self.table else None
        if entry is None or entry.sha256 is None:
            return None
        held = self.table.get(object_member(entry.sha256))
        return entry if held == (entry.size, entry.sha256, _MODE) else None

    def _without_content(self, entry: TreeEntry) -> None:
        if entry.path not in self.memory.tree and self.carrier.name(entry.path) is not None:
            return
        if entry.target is not None:
            entry = replace(entry, target=self.carrier.target(entry.target))
        self.others.append(entry)

    def _read(self, found: Found) -> None:
        def take(blocks: Iterator[bytes], _size: int) -> Carried | LeftOut:
            return self.carrier.file(found, readable(blocks, found))

        try:
            made, seen = stable(found, take, limit=self.limit)
        except NotReadError as error:
            self.leave_out(Skipped(found.entry.path, str(error)))
            return
        if isinstance(made, Carried):
            self.contents.append(Content(seen, made))

    def _again(self) -> Iterator[Content]:
        """The contents, searched for what a later file told to be secret."""
        for one in self.contents:
            made = self.carrier.again(one.found, one.carried)
            if isinstance(made, Carried):
                yield one if made is one.carried else Content(one.found, made)


def readable(blocks: Iterator[bytes], found: Found) -> Callable[[], Iterator[bytes]]:
    """The blocks, and once more from the file where somebody reads it a second time."""
    first = [blocks]
    return lambda: first.pop() if first else content(found)
