"""A work tree saved and made again as the archiver does it, without redaction and bundles."""

from __future__ import annotations

import hashlib
import os
import stat
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from freshness.repos import Repo

from archiver.git.objects import Object
from archiver.model.git_document import GitDocument
from archiver.model.workspace import TreeEntry
from archiver.scratch import Scratch
from archiver.workspace.found import Skipped
from archiver.workspace.git_capture import GitCapture, capture_git
from archiver.workspace.git_writing import GitWritten, write_git
from archiver.workspace.options import CaptureOptions

STATUS = ("status", "--porcelain=v2", "-z", "--untracked-files=all", "--ignore-submodules=all")


@dataclass
class Saved:
    """What a bundle would hold."""

    document: GitDocument
    entries: list[TreeEntry]
    skipped: list[Skipped]
    folder: Path
    bundle: Path | None
    objects: list[Object]

    def content(self, digest: str) -> Path:
        return self.folder / digest

    def write(self, into: Path, repository: Path | None = None) -> GitWritten:
        parsed = GitDocument.model_validate(self.document.document())
        lines = [TreeEntry.parse(entry.line()) for entry in self.entries]
        return write_git(parsed, lines, self.content, self.bundle, into, repository)

    def named(self) -> dict[str, str]:
        """Paths and what they are."""
        return {entry.path: entry.type for entry in self.entries}

    def reasons(self) -> dict[str, str]:
        return {one.path: one.reason for one in self.skipped}


def save(
    folder: Path, place: Path, *, commits: bool = True, apart: tuple[Path, ...] = (), **options: Any
) -> Saved:
    """Capture `folder`; contents go below `place`."""
    objects = place / "objects"
    objects.mkdir(parents=True)
    with Scratch(place) as scratch:
        capture = capture_git(folder, CaptureOptions(**options), scratch, apart)
        if not commits:
            capture = capture.without_commits()
        entries = [_kept(one.entry, one.source, objects) for one in capture.found]
        assert [os.fsencode(e.path) for e in entries] == sorted(os.fsencode(e.path) for e in entries)
        digests = {one: _put(content, objects) for one, _, content in capture.staged_blobs()}
        bundle = _bundled(capture, place / "commits.bundle")
        return Saved(
            capture.finished(digests), entries, capture.skipped, objects, bundle, list(capture.objects())
        )


def _bundled(capture: GitCapture, file: Path) -> Path | None:
    if capture.commits is None:
        return None
    with file.open("wb") as out:
        capture.commits(lambda piece: out.write(piece) and None)
    return file


def _kept(entry: TreeEntry, source: str | bytes | None, objects: Path) -> TreeEntry:
    if entry.type != "file":
        return entry
    assert isinstance(source, str)
    return replace(entry, sha256=_put(Path(source).read_bytes(), objects))


def _put(content: bytes, objects: Path) -> str:
    digest = hashlib.sha256(content).hexdigest()
    (objects / digest).write_bytes(content)
    return digest


def git(folder: Path, *arguments: str, check: bool = True) -> bytes:
    """The real git, as a user has it without any configuration."""
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder.parent),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_EDITOR": "true",
        "GIT_OPTIONAL_LOCKS": "0",
    }
    return subprocess.run(
        ["git", *arguments], cwd=folder, env=environ, check=check, capture_output=True
    ).stdout


Lying = tuple[str, int, bytes]
"""Kind, mode, content or target."""


def tree_of(folder: Path, ignored: frozenset[str] = frozenset()) -> dict[str, Lying]:
    """Files and links. Not what is ignored, nor repositories inside."""
    found: dict[str, Lying] = {}
    waiting = [folder]
    while waiting:
        for path in waiting.pop().iterdir():
            name = str(path.relative_to(folder))
            if path.name == ".git" or name in ignored:
                continue
            if path.is_symlink():
                found[name] = "link", 0, os.fsencode(path.readlink())
            elif path.is_dir():
                waiting += [] if os.path.lexists(path / ".git") else [path]
            else:
                found[name] = "file", stat.S_IMODE(path.stat().st_mode), path.read_bytes()
    return found


def ignored_in(folder: Path) -> frozenset[str]:
    out = git(folder, "ls-files", "-z", "--others", "--ignored", "--exclude-standard")
    return frozenset(os.fsdecode(name) for name in out.split(b"\0") if name)


def state_of(folder: Path) -> dict[str, bytes]:
    """What git says of a work tree."""
    return {
        "status": git(folder, *STATUS),
        "index": git(folder, "ls-files", "-s", "-z"),
        "head": git(folder, "rev-parse", "--verify", "-q", "HEAD", check=False),
        "branch": git(folder, "symbolic-ref", "-q", "HEAD", check=False),
        "operation": operation_of(folder),
    }


def operation_of(folder: Path) -> bytes:
    """What the status of a work tree says is in progress, without branches and hints."""
    lines = git(folder, "-c", "advice.statusHints=false", "status", "--untracked-files=no").splitlines()
    return b"\n".join(
        line
        for line in lines
        if line.startswith((b"You are currently", b"You have unmerged", b"All conflicts"))
    )


def inside_of(folder: Path) -> dict[str, bytes]:
    """Every file of a git folder, of a bare one too."""
    inner = folder / ".git" if (folder / ".git").exists() else folder
    files = (path for path in sorted(inner.rglob("*")) if path.is_file())
    return {str(path.relative_to(inner)): path.read_bytes() for path in files}


def without_repositories(status: bytes, saved: Saved) -> bytes:
    """The status without repositories inside: they are not carried, and the receipt has a line for each."""
    said = {path for path, reason in saved.reasons().items() if reason == "a repository of its own"}
    own = {b"? " + os.fsencode(path) + b"/" for path in said}
    return b"\0".join(entry for entry in status.split(b"\0") if entry not in own)


def as_far_as_git_knows(tree: dict[str, Lying], saved: Saved) -> dict[str, Lying]:
    """The tree as it can come back: of a file that is as in its commit, git knows whether it is a program."""
    changed = saved.named()
    return {
        name: one
        if name in changed or one[0] != "file"
        else (one[0], 0o755 if one[1] & 0o100 else 0o644, one[2])
        for name, one in tree.items()
    }


def saved_and_made_again(
    repo: Repo, place: Path, *, repository: Path | None = None, **options: Any
) -> tuple[Saved, GitWritten, Path]:
    """Save, restore, and demand that both are the same, and that the repository was not touched."""
    before = inside_of(repo.folder)
    saved = save(repo.folder, place, **options)
    assert inside_of(repo.folder) == before
    into = place / "again"
    written = saved.write(into, repository)
    assert written.missing is None
    assert tree_of(into) == as_far_as_git_knows(tree_of(repo.folder, ignored_in(repo.folder)), saved)
    then, now = state_of(repo.folder), state_of(into)
    then["status"] = without_repositories(then["status"], saved)
    assert now == then
    return saved, written, into
