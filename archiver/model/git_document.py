"""What of a git work tree its files do not say: the part `git` of `workspace/workspace.json`."""

from __future__ import annotations

import re
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field, model_validator

from archiver.model.base import Frozen
from archiver.model.checkpoint import Count, Digest

COMMITS: Final = "workspace/git/commits.bundle"
"""The member that holds the commits that no remote has."""
MAX_NAME: Final = 4096
"""Characters of a path, a name or an address."""
MAX_STATE_TEXT: Final = 256 * 2**10
"""Characters of one state file of an operation in progress."""
MAX_STATE_FILES: Final = 256
MAX_REFS: Final = 4000
MAX_ENTRIES: Final = 100_000
"""Entries of one list."""

STATE_FILE: Final = re.compile(
    r"(?:(?:MERGE|CHERRY_PICK|REVERT|REBASE|ORIG)_HEAD|MERGE_MSG|MERGE_MODE|SQUASH_MSG"
    r"|BISECT_(?:LOG|START|TERMS)|sequencer/(?:todo|head|opts|abort-safety)"
    r"|rebase-merge/(?:head-name|onto|orig-head|msgnum|end|done|git-rebase-todo(?:\.backup)?|message"
    r"|author-script|stopped-sha|interactive|quiet|verbose|amend|rewritten-(?:list|pending)|squash-onto"
    r"|drop_redundant_commits|keep_redundant_commits|no-reschedule-failed-exec|reschedule-failed-exec"
    r"|update-refs|current-fixups|message-(?:squash|fixup))"
    r"|rebase-apply/(?:head-name|onto|orig-head|abort-safety|applying|rebasing|next|last|author-script"
    r"|final-commit|info|msg|msg-clean|keep|quiet|scissors|sign|threeway|utf8|messageid|no_inbody_from"
    r"|original-commit|dirtyindex|apply-opt|[0-9]{4,8}))",
    re.ASCII,
)
"""What git keeps in small text files while an operation is in progress, and what may travel of it."""


def check_relative(path: str) -> str:
    """The path itself if a file of a work tree can have it; else `ValueError`.

    Relative, `/` between components, none of them empty, `.` or `..`; any characters but NUL, also half a
    surrogate pair, which stands for a byte that is not UTF-8.
    """
    if len(path) > MAX_NAME or "\0" in path:
        raise ValueError(f"a path has at most {MAX_NAME} characters, none of them NUL")
    if any(part in ("", ".", "..") for part in path.split("/")):
        raise ValueError("a path is relative, and no component of it is empty, '.' or '..'")
    return path


def _bounded(text: str) -> str:
    if len(text) > MAX_NAME or "\0" in text:
        raise ValueError(f"a name has at most {MAX_NAME} characters, none of them NUL")
    return text


def _state_text(text: str) -> str:
    if len(text) > MAX_STATE_TEXT or "\0" in text:
        raise ValueError(f"a state file has at most {MAX_STATE_TEXT} characters, none of them NUL")
    return text


def _state_name(name: str) -> str:
    if not STATE_FILE.fullmatch(name):
        raise ValueError("not a state file of an operation of git")
    return name


ObjectId = Annotated[str, Field(pattern=r"^(?:[0-9a-f]{40}|[0-9a-f]{64})$")]
TreePath = Annotated[str, AfterValidator(check_relative)]
Name = Annotated[str, AfterValidator(_bounded)]
Operation = Literal["merge", "rebase", "cherry-pick", "revert", "bisect", "am"]
Several = Field(max_length=MAX_ENTRIES)


class Remote(Frozen):
    """A remote by its name, and its address without credentials."""

    name: Name
    url: Name


class StagedEntry(Frozen):
    """One entry of the index that differs from HEAD.

    `sha256` names the object member with its content; null where the path was taken out of the index, or is a
    submodule at `commit`. `stage`: 0, or 1 to 3 of a conflict (common, ours, theirs).
    """

    path: TreePath
    mode: Literal["100644", "100755", "120000", "160000"]
    sha256: Digest | None = None
    stage: Annotated[int, Field(ge=0, le=3)] = 0
    commit: ObjectId | None = None
    intent_to_add: bool = False
    """`git add --intent-to-add`: the index knows the path and no content."""

    @property
    def is_removed(self) -> bool:
        """Whether HEAD has the path and the index has not."""
        return self.sha256 is None and self.commit is None and not self.intent_to_add


class Submodule(Frozen):
    """A submodule: the commit that the index names, the one that is checked out, and where it comes from."""

    path: TreePath
    commit: ObjectId
    url: Name | None = None
    checked_out: ObjectId | None = None
    dirty: bool | None = None
    """Whether there are changes in it; null where that could not be found out."""


class StateFile(Frozen):
    """A small text file that git keeps while an operation is in progress; `name` within its git folder."""

    name: Annotated[str, AfterValidator(_state_name)]
    text: Annotated[str, AfterValidator(_state_text)]


class GitDocument(Frozen):
    """The state of a work tree beside its files.

    `base`: the commit that the tree lines are relative to; null, the empty tree. `commits`: the member with
    the commits that no remote has; `commit_refs` what they are called there, `prerequisites` what a
    repository must have beforehand. `absent`: paths that the index is told not to have in the work tree.
    """

    head: ObjectId | None = None
    branch: Name | None = None
    base: ObjectId | None = None
    commits: Literal["workspace/git/commits.bundle"] | None = None
    commit_refs: Annotated[dict[str, ObjectId], Field(max_length=MAX_REFS)] = Field(default_factory=dict)
    prerequisites: Annotated[tuple[ObjectId, ...], Several] = ()
    remotes: Annotated[tuple[Remote, ...], Several] = ()
    upstream: Name | None = None
    ahead: Count | None = None
    behind: Count | None = None
    staged: Annotated[tuple[StagedEntry, ...], Several] = ()
    submodules: Annotated[tuple[Submodule, ...], Several] = ()
    lfs: Annotated[tuple[TreePath, ...], Several] = ()
    absent: Annotated[tuple[TreePath, ...], Several] = ()
    line_ends: dict[
        Literal["core.autocrlf", "core.eol"], Literal["true", "false", "input", "lf", "crlf", "native"]
    ] = Field(default_factory=dict)
    linked_worktree: bool = False
    in_progress: Operation | None = None
    in_progress_files: Annotated[tuple[StateFile, ...], Field(max_length=MAX_STATE_FILES)] = ()
    shallow: bool = False
    object_format: Literal["sha1", "sha256"] = "sha1"

    @model_validator(mode="after")
    def _fits_together(self) -> GitDocument:
        length = 64 if self.object_format == "sha256" else 40
        ids = (self.head, self.base, *self.prerequisites, *self.commit_refs.values())
        if any(found is not None and len(found) != length for found in ids):
            raise ValueError(f"a commit id of a repository of {self.object_format} has {length} digits")
        if self.commits is None and (self.commit_refs or self.prerequisites):
            raise ValueError("refs and prerequisites belong to commits that travel")
        return self
