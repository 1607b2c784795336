"""The steps from a new repository to the captured state: files, HEAD, index, operation, remotes."""

from __future__ import annotations

import os
import shlex
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from archiver.git import objects
from archiver.git.addresses import stripped
from archiver.git.making import NewRepository
from archiver.git.running import GitError
from archiver.git.view import View
from archiver.git.worktree import entries as split
from archiver.model.git_document import GitDocument, StagedEntry
from archiver.model.workspace import TreeEntry
from archiver.safetext import one_line
from archiver.workspace import git_operation, git_state
from archiver.workspace.git_overlay import Overlay, check_name
from archiver.workspace.git_usable import usable

Content = Callable[[str], Path]


def needed(document: GitDocument) -> Iterator[str]:
    """Commits of which a clone at hand may have the history."""
    for one in (document.head, document.base, *document.prerequisites):
        if one is not None:
            yield one
    yield from git_state.needed(document.in_progress_files)


def copy(view: View, new: NewRepository, wanted: Iterable[str]) -> None:
    """Copy the history of those commits that the clone has."""
    found = objects.sizes(view, (f"{one}^{{commit}}" for one in sorted(wanted)))
    ids = sorted({one for one, _, _ in found.values()})
    if not ids:
        return
    asked = "".join(f"{one}\n" for one in ids).encode()
    packing = ("pack-objects", "--revs", "--stdout", "-q", "--delta-base-offset", "--threads=1")
    new.take_pack(view.pieces(*packing, stdin=asked))
    if view.shallow:
        cut = (view.private / "shallow").read_text("ascii").split()
        here = new.has(cut)
        (new.git_folder / "shallow").write_text("".join(f"{one}\n" for one in cut if one in here))


def restored(
    new: NewRepository, document: GitDocument, entries: Iterable[TreeEntry], content: Content
) -> Iterator[str]:
    """Make everything, the commits being there; gives notes for a person."""
    here = new.has(one for one in (document.head,) if one is not None)
    head = document.head if document.head in here else None
    stand = head or document.base
    trees = {one: usable(new, one) for one in dict.fromkeys((document.base, stand)) if one is not None}
    for found in trees.values():
        yield from found.said()
    if document.base is not None:
        new.check_out(trees[document.base].tree)
    for key, value in document.line_ends.items():
        new.ask("config", key, value)
    overlay = Overlay(new.folder, content)
    overlay.remove(document.absent)
    laid = list(entries)
    overlay.put(laid)
    yield from overlay.notes
    yield from _stand(new, document, stand)
    tree = None if stand is None else trees[stand].tree
    yield from _index(new, document, tree, content, {os.fsencode(one.path) for one in laid})
    yield from git_operation.restored(new, document)
    yield from _remotes(new, document)
    yield from _left_to_do(document)


def _stand(new: NewRepository, document: GitDocument, stand: str | None) -> Iterator[str]:
    """HEAD: on its branch, detached, or before the first commit."""
    if document.head is not None and stand != document.head:
        place = f"commit {stand}, the newest that a remote has" if stand else "no commit"
        yield (
            f"commit {document.head} did not travel: HEAD is at {place}, and what the commits since then "
            "changed lies in the work tree as uncommitted changes"
        )
    branch = document.branch
    if branch is not None and is_branch(new, branch):
        if stand is not None:
            new.ask("update-ref", f"refs/heads/{branch}", stand)
        new.ask("symbolic-ref", "HEAD", f"refs/heads/{branch}")
        return
    if branch is not None:
        yield "the branch has no name that git takes; HEAD stands at its commit without a branch"
    if stand is not None:
        new.ask("update-ref", "--no-deref", "HEAD", stand)


def is_branch(new: NewRepository, branch: str) -> bool:
    """Whether git takes the name."""
    if branch.startswith("-") or not branch.isprintable():
        return False
    status, _ = new.run("check-ref-format", f"refs/heads/{branch}")
    return status == 0


def _index(
    new: NewRepository, document: GitDocument, tree: str | None, content: Content, laid: set[bytes]
) -> Iterator[str]:
    """The index of HEAD, and what was staged over it."""
    new.ask("read-tree", *(("--empty",) if tree is None else ("--reset", tree)))
    _forget(new, laid)
    for one in document.staged:
        check_name(one.path)
    blobs = _stored(new, document.staged, content)
    lines = b"".join(_lines(document, blobs))
    if lines:
        new.ask("update-index", "-z", "--index-info", stdin=lines)
    if document.absent:
        given = b"".join(os.fsencode(path) + b"\0" for path in document.absent)
        status, _ = new.run("update-index", "--skip-worktree", "-z", "--stdin", stdin=given)
        if status != 0:
            yield "files that a sparse checkout left out are marked as deleted"
    yield from _intended(new, document)
    new.run("update-index", "-q", "--refresh")  # it fails where files differ, as they should


def _forget(new: NewRepository, laid: set[bytes]) -> None:
    """Have the index forget what the checkout noted of files that were laid over it.

    Of a file of another size git would not look whether converting it gives the same object.
    """
    found: list[bytes] = []

    def take(entry: bytes) -> None:
        about, _, name = entry.partition(b"\t")
        if name in laid:
            mode, one, stage = about.split(b" ")
            found.append(b"%s %s %s\t%s\0" % (mode, one, stage, name))

    new.ask("ls-files", "-s", "-z", sink=split(take))
    if found:
        new.ask("update-index", "-z", "--index-info", stdin=b"".join(found))


def _stored(new: NewRepository, staged: Iterable[StagedEntry], content: Content) -> dict[str, str]:
    """The contents of the index as objects: their ids by the digest of the member."""
    digests = sorted({one.sha256 for one in staged if one.sha256 is not None})
    if not digests:
        return {}
    paths = [str(content(digest).absolute()) for digest in digests]
    if any("\n" in path for path in paths):
        raise GitError("the folder of the staged contents has a line end in its name")
    given = "".join(f"{path}\n" for path in paths).encode("utf-8", "surrogateescape")
    out = bytearray()
    new.ask("hash-object", "-w", "--no-filters", "--stdin-paths", stdin=given, sink=out.extend)
    return dict(zip(digests, out.decode("ascii").split(), strict=True))


def _lines(document: GitDocument, blobs: dict[str, str]) -> Iterator[bytes]:
    """What `git update-index --index-info` reads."""
    zeros = "0" * (64 if document.object_format == "sha256" else 40)
    cleared: set[str] = set()
    for one in document.staged:
        path = os.fsencode(one.path)
        if (one.stage or one.is_removed) and one.path not in cleared:
            cleared.add(one.path)
            yield b"0 %s\t%s\0" % (zeros.encode("ascii"), path)
        found = one.commit or (blobs[one.sha256] if one.sha256 else None)
        if found is not None:
            yield b"%s %s %d\t%s\0" % (one.mode.encode("ascii"), found.encode("ascii"), one.stage, path)


def _intended(new: NewRepository, document: GitDocument) -> Iterator[str]:
    """What was only announced to the index, where it still lies in the work tree."""
    announced = [one for one in document.staged if one.intent_to_add]
    there = [one for one in announced if os.path.lexists(new.folder / one.path)]
    if there and not _announce(new, there):
        yield f"`git add --intent-to-add` of {len(there)} files is forgotten: git does not do it again"
    for path in sorted({one.path for one in announced} - {one.path for one in there}):
        yield f"`git add --intent-to-add` of {one_line(path)} is forgotten: the file was not carried"


def _announce(new: NewRepository, entries: Iterable[StagedEntry]) -> bool:
    """Git notes what a path is in the work tree, which may be another thing than when it was announced."""
    paths = bytearray()
    with tempfile.TemporaryDirectory(prefix="announced-", dir=new.git_folder) as folder:
        for one in entries:
            place = Path(folder) / one.path
            place.parent.mkdir(parents=True, exist_ok=True)
            if one.mode == "120000":
                place.symlink_to("nowhere")
            else:
                place.touch(0o755 if one.mode == "100755" else 0o644)
            paths += os.fsencode(one.path) + b"\0"
        words = ("--intent-to-add", "--force", "--pathspec-from-file=-", "--pathspec-file-nul")
        status, _ = new.run(f"--work-tree={folder}", "add", *words, stdin=bytes(paths))
    return status == 0


def _remotes(new: NewRepository, document: GitDocument) -> Iterator[str]:
    """Names and addresses of remotes, and the upstream of the branch: no credentials, nothing that starts."""
    taken: set[str] = set()
    for remote in document.remotes:
        name = remote.name
        if stripped(remote.url) != remote.url or not is_branch(new, name):
            yield "a remote was left out: its name or address is not one that git takes as it is"
            continue
        new.ask("config", f"remote.{name}.url", remote.url)
        new.ask("config", f"remote.{name}.fetch", f"+refs/heads/*:refs/remotes/{name}/*")
        taken.add(name)
    branch, upstream = document.branch, document.upstream
    if branch is None or upstream is None or not is_branch(new, branch):
        return
    for name in sorted(taken, key=len, reverse=True):
        merge = upstream.removeprefix(f"{name}/")
        if merge != upstream and is_branch(new, merge):
            new.ask("config", f"branch.{branch}.remote", name)
            new.ask("config", f"branch.{branch}.merge", f"refs/heads/{merge}")
            return


def _left_to_do(document: GitDocument) -> Iterator[str]:
    for module in document.submodules:
        changed = " (it had changes, which did not travel)" if module.dirty else ""
        path = shlex.quote(one_line(module.path))
        yield f"a submodule is empty{changed}: `git submodule update --init -- {path}`"
    if document.lfs:
        yield f"{len(document.lfs)} files are kept by LFS: `git lfs pull` gets those that are pointers here"
    if document.linked_worktree:
        yield "it was a linked work tree of a repository; here it is a repository of its own"
    if document.ahead is None and document.shallow:
        yield "its history was cut (a shallow clone)"
