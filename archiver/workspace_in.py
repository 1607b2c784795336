"""A workspace on its way into a bundle: captured, redacted, and made into members.

First what is there (`WorkspaceIn.begin`), whose files of credentials are learned from before anything else is
redacted; then, when all that the run says was redacted, the contents (`members`). What a later file tells to
be secret is searched for in the earlier ones before the tree is written. With the memory of earlier saves,
what the base of the bundle holds is neither read nor made into members.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from archiver.errors import InputNotFoundError
from archiver.model import Member
from archiver.model.git_document import COMMITS, MAX_ENTRIES, GitDocument
from archiver.model.workspace import (
    MAX_DOCUMENT,
    WORKSPACE,
    TreeEntry,
    WorkspaceDocument,
    object_member,
    path_bytes,
)
from archiver.pack import Base, Kept
from archiver.redact import Redactor
from archiver.redact.carried import Carried
from archiver.redact.later import Mark
from archiver.redact.objects import ScannedObjects
from archiver.scratch import Scratch
from archiver.workspace.captured import capture_folder
from archiver.workspace.found import Capture, Found, Skipped
from archiver.workspace.git_capture import GitCapture, capture_git
from archiver.workspace.memory import WorkspaceMemory
from archiver.workspace.options import CaptureOptions
from archiver.workspace.reading import NotReadError, stable
from archiver.workspace_files import Files, readable
from archiver.workspace_tree import TreeMembers, changes, whole

if TYPE_CHECKING:
    from archiver.redact.carried import CarriedRedactor

_GIT = ".git"
_NAMED_BY_CONTENT = ("workspace/objects/", "workspace/tree/")
"""Members that are no use if the last scan changes them."""
_MOVED = Skipped(
    "(the same moment)",
    "the run went on before all of its folder was read: files may be newer than its conversation",
)
_TOO_MUCH = f"the state of git has more than {MAX_DOCUMENT >> 20} MiB or {MAX_ENTRIES} entries of a kind"
_NOT_STAGED = Skipped(f"{_GIT}/index", f"what was staged is not carried: with it {_TOO_MUCH}")


class WorkspaceIn:
    """One workspace in one save."""

    def __init__(
        self,
        folder: Path,
        redactor: Redactor,
        scratch: Scratch,
        options: CaptureOptions,
        memory: WorkspaceMemory,
    ) -> None:
        """`begin` makes one."""
        self._folder = folder
        self._redactor = redactor
        self._scratch = scratch
        self._options = options
        self._memory = memory
        self._carrier: CarriedRedactor
        self._capture: Capture
        self._found: list[Found] = []
        self._apart: Sequence[Path] = ()
        self._mark: Mark
        self._remembered: Mark | None = None
        """What the memory was searched for when this save began with it; of names, `_named`."""
        self._named: Mark = frozenset()
        self._settled: Mark
        self._lenient = False
        self._failed = self._read_before = False
        self._files: Files
        self._entries: list[TreeEntry] = []
        self._checked: tuple[tuple[list[TreeEntry], Mark], ...] = ()
        """Entries, and the values that their names have been searched for before."""
        self._tree: TreeMembers

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
        memory: WorkspaceMemory | None = None,
        lenient: bool = False,
    ) -> WorkspaceIn:
        """Look at the folder, and learn what its files of credentials hold.

        A folder in a git work tree stands for the whole of that; where git cannot read it, for its files
        alone. `memory`: of earlier saves in this process. Raises `InputNotFoundError` for what is no folder,
        or cannot be read to its end; if `lenient`, the receipt says so instead, and no member comes.
        """
        self = cls(folder, redactor, scratch, options, memory or WorkspaceMemory())
        self._carrier = redactor.carried(scratch, credentials="redact" if keep_credentials else "leave-out")
        self._apart, self._lenient = apart, lenient
        try:
            self._look()
        except InputNotFoundError as error:
            self._fail(error)
        self._mark = redactor.mark()
        self._learn_all()
        return self

    def read(
        self, was_still: Callable[[], bool]
    ) -> Callable[[Base | None, bool], tuple[tuple[Member, ...], Kept]]:
        """`members` by the base, and whether all is to be read."""
        return lambda base, everything: self.members(base, was_still, everything=everything)

    def members(
        self,
        base: Base | None = None,
        was_still: Callable[[], bool] = lambda: True,
        *,
        everything: bool = False,
    ) -> tuple[tuple[Member, ...], Kept]:
        """The members of the workspace: document, tree, contents, and commits that no remote has.

        Where the bundle is to have a base, what that holds is kept as it is, as far as the memory knows it;
        of files not, where `everything` is to be read.
        To be asked again where all of it is needed, or the last scan found more (`outdated`). `was_still` is
        called when all was read for the first time; where it says no, or more is read later, the receipt says
        so. What git cannot read any more costs its state and not the save: the files alone are carried then.
        """
        while not self._failed:
            try:
                return self._members(base, None if everything else base, was_still)
            except InputNotFoundError as error:
                if isinstance(self._capture, GitCapture):
                    self._take_files(error)
                    self._learn_all()
                else:
                    self._fail(error)
        return (), Kept()

    def _fail(self, error: InputNotFoundError) -> None:
        """Go on without a workspace, and have the receipt say why, or raise the error."""
        if not self._lenient:
            raise error
        self._failed, self._found = True, []
        self._carrier.forget()
        self._carrier.leave_out("workspace", self._redactor.text(str(error)))

    def _members(
        self, base: Base | None, holding: Base | None, was_still: Callable[[], bool]
    ) -> tuple[tuple[Member, ...], Kept]:
        """`holding`: the base whose files are kept."""
        self._begin_with_memory()
        files, commits = self._taken(holding)
        self._settled = self._redactor.mark()  # what follows may tell more, which nobody has searched for
        git, staged = self._git()
        if self._read_before or not was_still():
            files.leave_out(_MOVED)
        self._read_before = True
        entries = sorted(files.entries(), key=lambda one: path_bytes(one.path))
        self._entries = self._without_late_names(entries, files)
        for skipped in self._capture.skipped:
            files.leave_out(skipped)
        kept = {object_member(entry.sha256 or ""): entry.size for _, entry in files.kept}
        carried = (*(each.carried for each in files.contents), *staged)
        objects = {path: one for one in map(_object, carried) if (path := one.path) not in kept}
        self._files, self._tree = files, self._lines(base)
        made = (self._document(git, files), *self._tree.members, *objects.values(), *commits)
        if base is not None:
            kept |= {path: base.table[path][0] for path in self._tree.kept}
        return made, Kept(frozenset(kept), sum(kept.values()))

    def outdated(self, given: Iterable[Member], scanned: Iterable[Member]) -> bool:
        """Whether the last scan, of what was given to it, found what `members`, asked again, has to look for.

        That is a value that stands in what was not read, or in a line of the tree or a content that was.
        """
        if self._failed:
            return False
        redactor, mark = self._redactor, self._settled
        if redactor.grew_since(mark):
            if any(redactor.search_again(map(_names, some), mark | more) for some, more in self._checked):
                return True
            if self._tree.kept and self._in_past(mark | self._named):
                return True
            before = mark | (self._remembered or frozenset())
            if redactor.grew_since(before) and any(
                self._files.holds(found, before) for found, _ in self._files.kept
            ):
                return True
            self._settled = redactor.mark()
        left = {member.path: member.sha256 for member in scanned}
        return any(
            left.get(one.path) != one.sha256 for one in given if one.path.startswith(_NAMED_BY_CONTENT)
        )

    def remember(self) -> None:
        """Keep in the memory what this save has found out: all that it holds was scanned by now."""
        if self._failed:
            return
        memory = self._memory
        self._files.remember(self._capture.began)
        if isinstance(self._capture, GitCapture):
            memory.tree.clear()
        else:
            memory.tree.name(self._tree.digests)
        memory.mark = self._settled

    def _begin_with_memory(self) -> None:
        """Take what the memory was searched for; until this save is through, it was searched for nothing."""
        memory = self._memory
        if self._remembered is None:
            memory.begin(self._redactor.fingerprint())
            self._remembered = self._named = memory.mark
            memory.mark = frozenset()
        else:  # by now the tree of the memory is that of this save
            self._named = self._mark
            self._carrier.forget()

    def _taken(self, base: Base | None) -> tuple[Files, tuple[Member, ...]]:
        """All that was found, and the commits that go with it."""
        files = self._files_of(base)
        if not isinstance(self._capture, GitCapture) or self._capture.commits is None:
            return files, ()
        scanned = self._redactor.git_objects(self._capture.objects())
        if isinstance(scanned, ScannedObjects):
            return files, (self._bundle(self._capture, scanned),)
        self._take(self._capture.without_commits())  # what the commits changed travels as changed files
        self._carrier.forget()
        return self._files_of(base), ()

    def _files_of(self, base: Base | None) -> Files:
        table = base.table if base is not None else {}
        files = Files(self._redactor, self._carrier, self._memory, table, self._options.limits.file)
        files.take(self._found, self._remembered or frozenset())
        return files

    def _look(self) -> None:
        """Find all that is there, as git sees it where git can read it."""
        if not os.path.isdir(self._folder):  # noqa: PTH112 - nor is a name that no system takes
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
        files = [found for found in self._found if found.entry.type == "file"]
        secret = self._memory.secret((found.entry.path for found in files), self._carrier.is_secret)
        for found in files:
            if found.entry.path in secret:
                self._learn(found)

    def _learn(self, found: Found) -> None:
        try:
            stable(found, lambda blocks, _: self._carrier.learn(found, readable(blocks, found)))
        except NotReadError as error:
            text = self._redactor.text
            self._carrier.leave_out(text(found.entry.path), text(str(error)))

    def _without_late_names(self, entries: list[TreeEntry], files: Files) -> list[TreeEntry]:
        """Without names that hold what only a later file told to be secret: a tree is in their order.

        Of the files neither.
        """
        late: set[str] = set()
        before = self._memory.tree
        old = [entry for entry in entries if entry.path in before]
        new = entries if not old else [entry for entry in entries if entry.path not in before]
        self._checked = ((old, self._named), (new, self._mark))
        for some, mark in self._checked:
            late.update(self._late(some, mark))
        if not late:
            return entries
        files.drop(late)
        return [entry for entry in entries if entry.path not in late]

    def _late(self, entries: list[TreeEntry], mark: Mark) -> Iterator[str]:
        """Paths of entries whose names hold what became known since; the receipt names them."""
        known = self._redactor
        if not known.grew_since(mark) or not known.search_again(map(_names, entries), mark):
            return
        for entry in entries:
            if known.search_again((_names(entry),), mark):
                self._carrier.leave_out(known.text(entry.path), "its name holds a credential")
                yield entry.path

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

    def _lines(self, base: Base | None) -> TreeMembers:
        """The lines of the tree: what changed since the base, where the tree has all there is."""
        if isinstance(self._capture, GitCapture):  # it lists changes to a commit, and what goes is no change
            return whole(self._entries, self._scratch)
        versions = self._memory.tree
        versions.take(self._entries)
        if self._in_past(self._named):
            versions.forget_saves()
        made = changes(self._entries, versions, base.table) if base is not None else None
        return made or whole(self._entries, self._scratch)

    def _in_past(self, mark: Mark) -> bool:
        """Whether the tree of a base may hold what became known since, in a line that others overrule."""
        known, past = self._redactor, self._memory.tree.past()
        return bool(past) and known.grew_since(mark) and known.search_again(past, mark)

    def _document(self, git: GitDocument | None, files: Files) -> Member:
        """`InputNotFoundError` where there is more to say of git than a reader takes."""
        document = WorkspaceDocument(
            kind="folder" if git is None else "git",
            root=self._redactor.text(str(self._folder.absolute())),
            trees=self._tree.trees,
            entries=len(self._entries),
            bytes=sum(entry.size for entry in self._entries),
            git=git,
        )
        if git is not None and not document.is_readable:
            document = document.model_copy(update={"git": git.model_copy(update={"staged": ()})})
            if not document.is_readable:
                raise InputNotFoundError(_TOO_MUCH, remedy="save it when no operation of git is in progress")
            files.leave_out(_NOT_STAGED)
        raw = document.raw
        return Member(WORKSPACE, raw, len(raw), hashlib.sha256(raw).hexdigest())


@dataclass(frozen=True, slots=True)
class _Named:
    """A content that lies in no file of the tree."""

    entry: TreeEntry


def _held(data: bytes) -> Iterator[bytes]:
    return iter((data,))


def _names(entry: TreeEntry) -> bytes:
    return path_bytes(f"{entry.path}\0{entry.target or ''}\0")


def _object(carried: Carried) -> Member:
    return Member(object_member(carried.sha256), carried.source, carried.size, carried.sha256)


def _is_in_git(folder: Path) -> bool:
    place = folder.resolve()
    return any((one / _GIT).exists() for one in (place, *place.parents))
