"""Single files of a saved workspace: looked up in its tree, and written as a restore would write them.

A name is `workspace/` and a path of the tree, a folder of it, or a pattern. Of a git work tree only what
differs from its commit travelled; of what lies in the commit alone it is said where to find it.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import Final

from archiver.errors import InputNotFoundError
from archiver.model import Receipt
from archiver.model.git_document import GitDocument
from archiver.model.manifest import Manifest
from archiver.model.record import Record
from archiver.model.workspace import WORKSPACE, TreeEntry, WorkspaceDocument, object_member
from archiver.safetext import one_line
from archiver.workspace.git_overlay import check_name
from archiver.workspace.writing import write_tree
from archiver.workspace_out import content_of

FOLDER: Final = "workspace"
_PREFIX: Final = f"{FOLDER}/"
_TREES: Final = "workspace/tree/"
MAX_NEAR: Final = 3
"""Names like the one that is not there, in an error."""
_ALL: Final = "."
"""What a receipt calls the folder itself, or all in it that it does not name."""
_COMPARED: Final = 10_000
"""Paths that are compared with the one that is not there."""
_SHOWN: Final = 300
"""Characters of a path in a message."""
_GLOB: Final = frozenset("*?[")


def of_tree(wanted: str) -> bool:
    """Whether a name is meant for the tree of the workspace: it is `workspace`, or lies in that."""
    return wanted == FOLDER or wanted.startswith(_PREFIX)


def tree_members(manifest: Manifest, record: Record) -> set[str]:
    """The members that the tree is read from; `InputNotFoundError` for a bundle without a workspace."""
    if not any(member.path == WORKSPACE for member in manifest.members):
        raise InputNotFoundError(
            f"checkpoint {record.seq} of run {record.run} carries no workspace",
            remedy="`archiver archive --workspace DIR` saves one, and a loop with `workspace.capture`",
        )
    found = (member.path for member in manifest.members if member.path.startswith(_TREES))
    return {WORKSPACE, *found}


def fits(path: str, wanted: str) -> bool:
    """Whether a path is the wanted one, lies in the wanted folder, or fits the wanted pattern."""
    folder = wanted.rstrip("/")
    if path == wanted or (folder and f"{path}/".startswith(f"{folder}/")):
        return True
    return not _GLOB.isdisjoint(wanted) and fnmatch.fnmatchcase(path, wanted)


@dataclass(slots=True)
class PickedFiles:
    """What of a tree is wanted: entries in its order, and what is to be said of them."""

    document: WorkspaceDocument
    entries: list[TreeEntry] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    """Names that no entry has whose content is there."""
    of_members: list[str] = field(default_factory=list)
    """Those of them that may mean members: no entry has them, and they are not the whole workspace."""

    @property
    def objects(self) -> set[str]:
        """The members that hold their contents."""
        return {object_member(one.sha256) for one in self.entries if one.sha256 is not None}

    def write(self, unpacked: Path, into: Path) -> None:
        """Write the entries below the new folder `into`: content, modes, times, links, and nothing through a
        link. Raises what `write_tree` does.
        """
        skipped = write_tree(self.entries, content_of(unpacked), into)
        self.notes += (f"{_shown(note.path)}: {note.reason}" for note in skipped)
        redacted = [one.path for one in self.entries if one.redacted]
        if redacted:
            named = ", ".join(map(_shown, redacted[:MAX_NEAR])) + (", …" if redacted[MAX_NEAR:] else "")
            self.notes.append(f"placeholders stand where credentials were, in {named}: put them back by hand")


def pick(
    document: WorkspaceDocument,
    entries: Callable[[], Iterable[TreeEntry]],
    only: Sequence[str],
) -> PickedFiles:
    """The entries that any of `only` names, and which of these name none.

    `entries` gives the tree, each time anew. Raises `ArchiveFormatError` for one in a git folder.
    """
    plain = {wanted: wanted.removeprefix(FOLDER).lstrip("/") for wanted in only}
    found = PickedFiles(document)
    met: set[str] = set()
    named = {wanted for wanted, path in plain.items() if not path.strip("*")}
    left = frozenset(document.not_carried)
    for entry in entries():
        fitting = [wanted for wanted, path in plain.items() if not path or fits(entry.path, path)]
        if not fitting or entry.type == "gone":
            continue
        named.update(fitting)
        if entry.sha256 in left:
            found.notes.append(_no_room(entry))
            continue
        met.update(fitting)
        if document.git is not None:
            check_name(entry.path)
        found.entries.append(entry)
    found.missing = [wanted for wanted in only if wanted not in met]
    found.of_members = [wanted for wanted in found.missing if wanted not in named]
    return found


def absent(
    wanted: str, document: WorkspaceDocument, entries: Callable[[], Iterable[TreeEntry]], receipt: Receipt
) -> InputNotFoundError:
    """Why no entry has that name, and where the file may be; `receipt`: what the save left out."""
    path = wanted.removeprefix(FOLDER).lstrip("/")
    for one in receipt.left_out:
        if path and (fits(one.member, path) or path.startswith(f"{one.member}/")):
            return InputNotFoundError(
                f"{_shown(one.member)} was left out of this checkpoint: {one_line(one.reason)}",
                remedy="it is only where the run worked",
            )
    left = frozenset(document.not_carried)
    for entry in entries():
        if entry.sha256 in left and (not path or fits(entry.path, path)):
            return InputNotFoundError(_no_room(entry), remedy="it is only where the run worked")
    near = _near(path, entries)
    if document.git is not None and document.git.base is not None:
        return _in_commit(path, document.git, document.git.base, entries, near)
    whole = (one_line(one.reason) for one in receipt.left_out if one.member == _ALL)
    said = next((f"; its save says: {reason}" for reason in whole), "")
    if not path.strip("*"):
        return InputNotFoundError(
            f"the workspace of this checkpoint holds nothing{said}",
            remedy="its receipt says what was left out: `--only receipt.json`",
        )
    return InputNotFoundError(f"the workspace of this checkpoint has no {_shown(path)}{said}", remedy=near)


def _no_room(entry: TreeEntry) -> str:
    return f"{_shown(entry.path)} is not carried: limits had no room for its {entry.size} bytes"


def _in_commit(
    path: str, git: GitDocument, base: str, entries: Callable[[], Iterable[TreeEntry]], near: str
) -> InputNotFoundError:
    for module in git.submodules:
        if fits(path, module.path):
            return InputNotFoundError(
                f"{_shown(path)} lies in the submodule {_shown(module.path)}, whose files do not travel",
                remedy=f"look in a clone of it, at commit {module.checked_out or module.commit}",
            )
    gone = next((one.path for one in entries() if one.type == "gone" and fits(one.path, path)), None)
    what = f"{_shown(path)} is not among the files that differ from the commit"
    if not path.strip("*"):
        what = "no file of the workspace differs from its commit"
    elif gone is not None:
        what = f"{_shown(gone)} was deleted in the work tree"
    remote = f", such as one of {one_line(git.remotes[0].url)}" if git.remotes else ""
    how = f"`git show {base}:PATH` in a clone that has it{remote}"
    if base in git.commit_refs.values():
        how = "this checkpoint carries that commit: a restore of the whole, without --only, checks it out"
    return InputNotFoundError(f"{what}; if it is anywhere, it is in commit {base}", remedy=f"{how}; {near}")


def _near(path: str, entries: Callable[[], Iterable[TreeEntry]]) -> str:
    """Files of the same name elsewhere, then paths that read alike."""
    names = [entry.path for entry in islice(entries(), _COMPARED) if entry.type != "gone"]
    if not names:
        return "no file of the workspace travelled"
    name = path.rstrip("/").rpartition("/")[2]
    same = [one for one in names if one.rpartition("/")[2] == name]
    alike = get_close_matches(path.rstrip("/"), names, n=MAX_NEAR)
    if near := list(dict.fromkeys((*same, *alike)))[:MAX_NEAR]:
        return f"near it: {', '.join(map(_shown, near))}"
    return f"it begins with {', '.join(map(_shown, names[:MAX_NEAR]))}"


def _shown(path: str) -> str:
    text = one_line(_PREFIX + path if path else FOLDER)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
