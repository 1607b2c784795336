"""A merge, rebase or the like, put back where it was: state files, as far as they start nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from archiver.git.making import NewRepository
from archiver.model.git_document import GitDocument, StateFile
from archiver.safetext import one_line
from archiver.workspace.git_state import HEADS, LISTS

_IDS: Final = re.compile(r"(?:[0-9a-f]{40,64}\n?)*")
_QUOTED: Final = r"'[^'\n]*(?:'\\''[^'\n]*)*'"
_SAFE: Final = {
    "author-script": re.compile(rf"(?:GIT_AUTHOR_(?:NAME|EMAIL|DATE)={_QUOTED}\n){{1,3}}"),
    "opts": re.compile(r"\[options\]\n(?:\t(?!strategy|gpg)[a-z-]+ = (?:true|false|[0-9]+)\n)*"),
    "head-name": re.compile(r"(?:refs/heads/[^\s\x00-\x1f]+|detached HEAD)\n?"),
    "BISECT_LOG": re.compile(r"(?:#[^\n]*\n|git bisect [\w ./'~^@=-]*\n)*"),
    "BISECT_START": re.compile(r"[\w./-]+\n?"),
    "BISECT_TERMS": re.compile(r"[a-z-]+\n[a-z-]+\n"),
    "apply-opt": re.compile(r"\n?"),
}
"""What git, of this or an older version, reads as more than text."""
_COMMAND: Final = re.compile(r"[ \t]*(?:exec|x)(?![^ \t\r])")
"""A line of a list that runs a command: git takes white space before it."""
_ORIGINAL: Final = ("rebase-merge", "rebase-apply")


def restored(new: NewRepository, document: GitDocument) -> Iterator[str]:
    """Write the state files; gives notes of what could not be put back."""
    if document.in_progress is None:
        return
    files = {file.name: file for file in document.in_progress_files}
    if missing := _missing(new, files):
        yield (
            f"the {document.in_progress} is not in progress any more: it needs commit {missing}, which is "
            "not here"
        )
        return
    if document.in_progress == "bisect":
        yield "the marks of a bisect are in its log: `git bisect replay .git/BISECT_LOG` sets them again"
    for file in files.values():
        yield from _write(new, file)
    _original(new, files)


def _missing(new: NewRepository, files: dict[str, StateFile]) -> str | None:
    """A commit without which git cannot go on."""
    for file in files.values():
        if HEADS.fullmatch(file.name) and file.name != "ORIG_HEAD" and _IDS.fullmatch(file.text):
            wanted = file.text.split()
            if lacking := set(wanted) - new.has(wanted):
                return min(lacking)
    return None


def _write(new: NewRepository, file: StateFile) -> Iterator[str]:
    name = file.name.rpartition("/")[2]
    text = file.text
    safe = _IDS if HEADS.fullmatch(file.name) else _SAFE.get(name)
    if safe is not None and not safe.fullmatch(text):
        yield f"the state file {file.name} is not put back: git might read more than text in it"
        return
    if file.name in LISTS or name in ("done", "git-rebase-todo.backup"):
        lines = text.split("\n")  # as git does: a subject may have what Python takes for an end of line
        commands = [line for line in lines if _COMMAND.match(line)]
        text = "\n".join(line for line in lines if not _COMMAND.match(line))
        if commands and file.name in LISTS:
            shown = ", ".join(one_line(line) for line in commands[:5])
            yield f"{len(commands)} commands of the rebase are taken off its list, run them by hand: {shown}"
    place = new.git_folder / file.name
    place.parent.mkdir(exist_ok=True)
    place.write_bytes(text.encode("utf-8", "surrogateescape"))


def _original(new: NewRepository, files: dict[str, StateFile]) -> None:
    """The branch that is rebased: it stands where it stood before until the rebase has ended."""
    for folder in _ORIGINAL:
        name, commit = files.get(f"{folder}/head-name"), files.get(f"{folder}/orig-head")
        if name is None or commit is None:
            continue
        ref, one = name.text.strip(), commit.text.strip()
        status, _ = new.run("check-ref-format", ref)
        if ref.startswith("refs/heads/") and status == 0 and new.has([one]):
            new.ask("update-ref", ref, one)
