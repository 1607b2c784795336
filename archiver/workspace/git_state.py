"""An operation of git in progress (a merge, a rebase …): its name, its state files, the commits it needs."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from archiver.git import objects
from archiver.git.view import View
from archiver.model.git_document import MAX_STATE_FILES, MAX_STATE_TEXT, STATE_FILE, Operation, StateFile
from archiver.workspace.found import Skipped

_SIGNS: Final[tuple[tuple[str, Operation], ...]] = (
    ("rebase-apply/applying", "am"),
    ("rebase-apply", "rebase"),
    ("rebase-merge", "rebase"),
    ("MERGE_HEAD", "merge"),
    ("CHERRY_PICK_HEAD", "cherry-pick"),
    ("REVERT_HEAD", "revert"),
    ("sequencer", "cherry-pick"),
    ("BISECT_LOG", "bisect"),
)
_FOLDERS: Final[dict[Operation, tuple[str, ...]]] = {
    "am": ("rebase-apply",),
    "rebase": ("rebase-apply", "rebase-merge"),
    "cherry-pick": ("sequencer",),
    "revert": ("sequencer",),
}
HEADS: Final = re.compile(
    r"[A-Z_]+_HEAD|(?:rebase-merge|rebase-apply)/(?:onto|orig-head|stopped-sha|squash-onto|original-commit)"
    r"|sequencer/(?:head|abort-safety)"
)
LISTS: Final = frozenset({"rebase-merge/git-rebase-todo", "sequencer/todo"})
_STEP: Final = re.compile(r"^[a-z]+ (?:-[cC] )?([0-9a-f]{7,64})\b", re.MULTILINE)
_ID: Final = re.compile(r"^([0-9a-f]{40}|[0-9a-f]{64})$", re.MULTILINE)
_MAX_STEPS: Final = 1000


def operation(git_folder: Path) -> Operation | None:
    """What is in progress; by the same files that git tells it by."""
    for name, found in _SIGNS:
        if os.path.lexists(git_folder / name):
            return found
    return None


def state_files(git_folder: Path, found: Operation | None, skipped: list[Skipped]) -> Iterator[StateFile]:
    """The small text files of the operation; one that is no such file is not carried."""
    count = 0
    for name in _names(git_folder, found):
        text = _text(git_folder / name)
        if text is None:
            skipped.append(
                Skipped(f".git/{name}", "no small text file; the operation may not go on without it")
            )
        elif count < MAX_STATE_FILES:
            count += 1
            yield StateFile(name=name, text=text)


def _names(git_folder: Path, found: Operation | None) -> Iterator[str]:
    if found is None:
        return
    for folder in ("", *_FOLDERS.get(found, ())):
        try:
            listed = sorted(os.listdir(git_folder / folder))  # noqa: PTH208 - names alone
        except OSError:
            continue
        for entry in listed:
            name = f"{folder}/{entry}" if folder else entry
            if STATE_FILE.fullmatch(name):
                yield name


def _text(file: Path) -> str | None:
    """The text of a small regular file, read without following a link or waiting."""
    try:
        handle = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        about = os.fstat(handle)
        if not stat.S_ISREG(about.st_mode) or about.st_size > MAX_STATE_TEXT:
            return None
        text = os.read(handle, MAX_STATE_TEXT + 1).decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    finally:
        os.close(handle)
    return None if "\0" in text or len(text) > MAX_STATE_TEXT else text


def tips(view: View, files: Iterable[StateFile]) -> dict[str, str]:
    """Commits that the operation needs to go on, by the name of a ref for each; only those that are here."""
    wanted = needed(files)
    known = objects.sizes(view, wanted)
    return {wanted[one]: known[one][0] for one in wanted if one in known and known[one][1] == "commit"}


def needed(files: Iterable[StateFile]) -> dict[str, str]:
    """Ids of commits that the state files name, short ones too, and the name of a ref for each."""
    wanted: dict[str, str] = {}
    for file in files:
        if HEADS.fullmatch(file.name):
            found = _ID.findall(file.text)
        elif file.name in LISTS:
            found = _STEP.findall(file.text)
        else:
            continue
        for place, one in enumerate(found[:_MAX_STEPS]):
            wanted.setdefault(one, f"refs/checkpoint/{file.name}/{place}")
    return wanted
