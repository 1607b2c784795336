"""A workspace on its way into a bundle: captured, redacted, and made into members.

First what is there (`WorkspaceIn.begin`), whose files of credentials are learned from before anything else is
redacted; then, when all that the run says was redacted, the contents (`members`). What a later file tells to
be secret is searched for in the earlier ones before the tree is written.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from archiver.errors import InputNotFoundError
from archiver.model import LeftOut, Member
from archiver.model.git_document import COMMITS, GitDocument
from archiver.model.workspace import (
    WORKSPACE,
    TreeEntry,
    WorkspaceDocument,
    object_member,
    path_bytes,
    tree_member,
)
from archiver.redact import Redactor
from archiver.redact.carried import Carried
from archiver.redact.later import Mark
from archiver.redact.objects import ScannedObjects
from archiver.scratch import Scratch
from archiver.workspace.captured import capture_folder
from archiver.workspace.found import Capture, Found, Skipped
from archiver.workspace.git_capture import GitCapture, capture_git
from archiver.workspace.options import CaptureOptions
from archiver.workspace.reading import NotReadError, content, stable

if TYPE_CHECKING:
    from archiver.redact.carried import CarriedRedactor

_GIT = ".git"
_MOVED = Skipped(
    "(the same moment)",
    "the run went on before all of its folder was read: files may be newer than its conversation",
)


@dataclass(frozen=True, slots=True)
class _Content:
    """A file of the tree, and its content as it is carried."""

    found: Found
    carried: Carried


class WorkspaceIn:
    """One workspace in one save."""

    def __init__(self, folder: Path, redactor: Redactor, scratch: Scratch, options: CaptureOptions) -> None:
        """`begin` makes one."""
        self._folder = folder
        self._redactor = redactor
        self._scratch = scratch
        self._options = options
        self._carrier: CarriedRedactor
        self._capture: Capture
        self._found: list[Found] = []
        self._apart: Sequence[Path] = ()
        self._mark: Mark

    @classmethod
    def begin(
        cls,
        folder: Path,
        redactor: Redactor,
        scratch: Scratch,
        options: CaptureOptions,
        *,
        apart: Sequence[Path],
        keep_credentials: bool = False,
    ) -> WorkspaceIn:
        """Look at the folder, and learn what its files of credentials hold.

        A folder in a git work tree stands for the whole of that; where git cannot read it, for its files
        alone. Raises `InputNotFoundError` for what is no folder.
        """
        self = cls(folder, redactor, scratch, options)
        self._carrier = redactor.carried(scratch, credentials="redact" if keep_credentials else "leave-out")
        self._apart = apart
        self._look()
        self._mark = redactor.mark()
        self._learn_all()
        return self

    def members(self, was_still: Callable[[], bool] = lambda: True) -> tuple[Member, ...]:
        """The members of the workspace: document, tree, contents, and commits that no remote has.

        `was_still` is called when all was read; where it says no, the receipt does. What git cannot read any
        more costs its state and not the save: the files alone are carried then.
        """
        try:
            return self._members(was_still)
        except InputNotFoundError as error:
            if not isinstance(self._capture, GitCapture):
                raise
            self._take_files(error)
            self._learn_all()
        return self._members(was_still)

    def _members(self, was_still: Callable[[], bool]) -> tuple[Member, ...]:
        contents, others = self._contents()
        commits: tuple[Member, ...] = ()
        if isinstance(self._capture, GitCapture) and self._capture.commits is not None:
            scanned = self._redactor.git_objects(self._capture.objects())
            if isinstance(scanned, ScannedObjects):
                commits = (self._bundle(self._capture, scanned),)
            else:  # what the commits changed travels as changed files
                self._take(self._capture.without_commits())
                contents, others = self._contents()
        git, staged = self._git()
        if not was_still():
            self._leave_out(_MOVED)
        entries = sorted((*others, *_entries(contents)), key=lambda one: path_bytes(one.path))
        entries = self._without_late_names(entries)
        for skipped in self._capture.skipped:
            self._leave_out(skipped)
        objects = {one.sha256: _object(one) for one in (*(each.carried for each in contents), *staged)}
        return (*self._described(entries, git), *objects.values(), *commits)

    def _look(self) -> None:
        """Find all that is there, as git sees it where git can read it."""
        if not self._folder.is_dir():
            raise InputNotFoundError(
                f"the workspace {self._folder} is no folder", remedy="name the folder that the run worked in"
            )
        broken = None
        if _is_in_git(self._folder):
            try:
                self._take(capture_git(*self._place))
            except InputNotFoundError as error:
                broken = error
            else:
                return
        self._take_files(broken)

    @property
    def _place(self) -> tuple[Path, CaptureOptions, Scratch, Sequence[Path]]:
        return self._folder, self._options, self._scratch, self._apart

    def _take_files(self, broken: InputNotFoundError | None) -> None:
        """Find the files alone; `broken` is why git cannot be asked."""
        self._take(capture_folder(*self._place))
        if broken is not None:
            self._capture.skipped.append(Skipped(_GIT, f"only the files are carried: {broken}"))

    def _take(self, capture: Capture) -> None:
        self._capture = capture
        self._found = list(capture.found)

    def _learn_all(self) -> None:
        for found in self._found:
            if found.entry.type == "file" and self._carrier.is_secret(found.entry.path):
                self._learn(found)

    def _learn(self, found: Found) -> None:
        try:
            stable(found, lambda blocks, _: self._carrier.learn(found, _readable(blocks, found)))
        except NotReadError as error:
            self._leave_out(Skipped(found.entry.path, str(error)))

    def _contents(self) -> tuple[list[_Content], list[TreeEntry]]:
        """What is carried of each file, and the entries without content."""
        contents, others = [], []
        for found in self._found:
            if found.entry.type == "file":
                if (one := self._content(found)) is not None:
                    contents.append(one)
            elif self._carrier.name(found.entry.path) is None:
                others.append(self._without_content(found.entry))
        again = (
            _Content(one.found, made)
            for one in contents
            if isinstance(made := self._carrier.again(one.found, one.carried), Carried)
        )
        return list(again), others

    def _content(self, found: Found) -> _Content | None:
        def take(blocks: Iterator[bytes], _size: int) -> Carried | LeftOut:
            return self._carrier.file(found, _readable(blocks, found))

        try:
            made, seen = stable(found, take, limit=self._options.limits.file)
        except NotReadError as error:
            self._leave_out(Skipped(found.entry.path, str(error)))
            return None
        return _Content(seen, made) if isinstance(made, Carried) else None

    def _without_content(self, entry: TreeEntry) -> TreeEntry:
        return entry if entry.target is None else replace(entry, target=self._carrier.target(entry.target))

    def _without_late_names(self, entries: list[TreeEntry]) -> list[TreeEntry]:
        """Without names that hold what only a later file told to be secret: a tree is in their order."""
        known, mark = self._redactor, self._mark
        if not known.grew_since(mark) or not known.search_again(map(_names, entries), mark):
            return entries
        kept = []
        for entry in entries:
            if known.search_again((_names(entry),), mark):
                self._leave_out(Skipped(known.text(entry.path), "its name holds a credential"))
            else:
                kept.append(entry)
        return kept

    def _git(self) -> tuple[GitDocument | None, list[Carried]]:
        """The state of git, and the contents that its index alone has."""
        capture = self._capture
        if not isinstance(capture, GitCapture):
            return None, []
        paths = {one.blob: one.path for one in capture.staged if one.blob is not None}
        staged: list[Carried] = []
        digests = {}
        for blob, _size, data in capture.staged_blobs():
            named = _Named(TreeEntry(paths[blob], "file", 0o644, 0))
            made = self._carrier.file(named, partial(_held, data))
            if isinstance(made, Carried):
                made = self._carrier.again(named, made)
            if isinstance(made, Carried):
                staged.append(made)
                digests[blob] = made.sha256
        return capture.finished(digests), staged

    def _bundle(self, capture: GitCapture, scanned: ScannedObjects) -> Member:
        spool = self._scratch.spool("commits")
        assert capture.commits is not None  # noqa: S101 - asked for by whoever calls
        capture.commits(spool.write)
        done = spool.close()
        self._redactor.accept_commits(scanned, done.sha256)
        return Member(COMMITS, done.path, done.size, done.sha256)

    def _described(self, entries: list[TreeEntry], git: GitDocument | None) -> tuple[Member, Member]:
        spool = self._scratch.spool("tree")
        for entry in entries:
            spool.write(entry.line())
        tree = spool.close()
        document = WorkspaceDocument(
            kind="folder" if git is None else "git",
            root=self._redactor.text(str(self._folder.absolute())),
            trees=(tree_member(0),),
            entries=len(entries),
            bytes=sum(entry.size for entry in entries),
            git=git,
        )
        raw = document.raw
        return (
            Member(WORKSPACE, raw, len(raw), hashlib.sha256(raw).hexdigest()),
            Member(tree_member(0), tree.path, tree.size, tree.sha256),
        )

    def _leave_out(self, skipped: Skipped) -> None:
        text = self._redactor.text  # what the file system says of a name may repeat it
        self._carrier.leave_out(text(skipped.path), text(skipped.reason))


@dataclass(frozen=True, slots=True)
class _Named:
    """A content that lies in no file of the tree."""

    entry: TreeEntry


def _entries(contents: Sequence[_Content]) -> Iterator[TreeEntry]:
    for one in contents:
        made = one.carried
        yield replace(one.found.entry, sha256=made.sha256, size=made.size, redacted=made.redacted)


def _readable(blocks: Iterator[bytes], found: Found) -> Callable[[], Iterator[bytes]]:
    """The blocks, and once more from the file where somebody reads it a second time."""
    first = [blocks]
    return lambda: first.pop() if first else content(found)


def _held(data: bytes) -> Iterator[bytes]:
    return iter((data,))


def _names(entry: TreeEntry) -> bytes:
    return path_bytes(f"{entry.path}\0{entry.target or ''}\0")


def _object(carried: Carried) -> Member:
    return Member(object_member(carried.sha256), carried.source, carried.size, carried.sha256)


def _is_in_git(folder: Path) -> bool:
    place = folder.resolve()
    return any((one / _GIT).exists() for one in (place, *place.parents))
