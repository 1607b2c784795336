"""A workspace out of an unpacked bundle: its tree, or its git work tree, made again in a new folder."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from archiver.errors import ArchiveFormatError, DigestMismatchError
from archiver.model.git_document import COMMITS
from archiver.model.workspace import MAX_DOCUMENT, WORKSPACE, TreeEntry, WorkspaceDocument, object_member
from archiver.safetext import one_line
from archiver.workspace.git_writing import write_git
from archiver.workspace.tree import read_tree
from archiver.workspace.writing import write_tree

_NAMED: Final = 5
_BLOCK: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class LaidOut:
    """What was made: which of its files hold placeholders, and what is to be said of it."""

    redacted: tuple[str, ...]
    notes: tuple[str, ...]


def document_in(unpacked: Path) -> WorkspaceDocument | None:
    """The document of the workspace that an unpacked bundle holds, if it holds one."""
    try:
        with (unpacked / WORKSPACE).open("rb") as file:
            raw = file.read(MAX_DOCUMENT + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ArchiveFormatError(f"{WORKSPACE} of the bundle cannot be read: {error.strerror}") from error
    return WorkspaceDocument.parse(raw)


def lay_out(unpacked: Path, into: Path, *, entries: int, repository: Path | None) -> LaidOut | None:
    """Make the workspace in the new folder `into`; None where the bundle holds none.

    `entries`: how many a tree may have. `repository`: a clone of the project that has what only a remote of
    it has. Raises `ArchiveFormatError`, `DigestMismatchError`, and what writing raises.
    """
    document = document_in(unpacked)
    if document is None:
        return None
    seen = _Seen(tree_of(document, unpacked, entries), frozenset(document.not_carried))
    if document.git is None:
        said = tuple(
            f"{one_line(note.path)}: {note.reason}" for note in write_tree(seen, content_of(unpacked), into)
        )
    else:
        commits = unpacked / COMMITS
        written = write_git(
            document.git,
            seen,
            _verified(unpacked),
            commits if commits.is_file() else None,
            into,
            repository,
        )
        said = (*written.notes, *((written.missing.remedy,) if written.missing is not None else ()))
    return LaidOut(tuple(seen.redacted), (*seen.said(), *said))


class _Seen:
    """Entries on their way, without those whose content is not carried, and what is to be said of them."""

    def __init__(self, entries: Iterator[TreeEntry], absent: frozenset[str]) -> None:
        self._entries, self._absent = entries, absent
        self._left: list[str] = []
        self.redacted: list[str] = []

    def __iter__(self) -> Iterator[TreeEntry]:
        for entry in self._entries:
            if entry.sha256 in self._absent:
                self._left.append(entry.path)
                continue
            if entry.redacted and len(self.redacted) < _NAMED:
                self.redacted.append(entry.path)
            yield entry

    def said(self) -> Iterator[str]:
        """What has no content here."""
        if self._left:
            named = ", ".join(map(one_line, self._left[:_NAMED])) + (", …" if self._left[_NAMED:] else "")
            yield (
                f"limits had no room for {len(self._left)} of its files, which are not here, or as the "
                f"commit has them: {named}"
            )


def tree_of(document: WorkspaceDocument, unpacked: Path, entries: int) -> Iterator[TreeEntry]:
    """The entries of the tree, from members that lie in `unpacked`; raises as `read_tree` does."""
    trees = [_tree(unpacked, path) for path in document.trees]
    return read_tree(trees, limit=entries, git=document.git is not None)


def _tree(unpacked: Path, path: str) -> Path:
    if not (unpacked / path).is_file():
        raise ArchiveFormatError(f"the bundle holds no {path}, which its workspace names")
    return unpacked / path


def content_of(unpacked: Path) -> Callable[[str], Path]:
    """Where a content lies, by its SHA-256; whoever writes it compares the digest."""

    def place(sha256: str) -> Path:
        found = unpacked / object_member(sha256)
        if not found.is_file():
            raise ArchiveFormatError(f"the bundle holds no content {sha256}, which its tree names")
        return found

    return place


def _verified(unpacked: Path) -> Callable[[str], Path]:
    """The same, compared here."""
    plain, known = content_of(unpacked), set[str]()

    def place(sha256: str) -> Path:
        found = plain(sha256)
        if sha256 not in known:
            digest = hashlib.sha256()
            with found.open("rb") as file:
                while block := file.read(_BLOCK):
                    digest.update(block)
            if digest.hexdigest() != sha256:
                raise DigestMismatchError(f"the content {sha256} of the workspace is another one")
            known.add(sha256)
        return found

    return place
