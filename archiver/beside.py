"""The workspace that a checkpoint carries, beside a folder on disk: what differs, and nothing is written.

Only the tree is fetched, no content: files are compared by their digests.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from archiver import audit, bundles, choosing, describe, members, saved
from archiver.catalog import Chain
from archiver.errors import InputNotFoundError
from archiver.model import Receipt, Record
from archiver.model.difference import MAX_PATHS, FolderChange, FolderDifference
from archiver.model.workspace import TreeEntry, WorkspaceDocument, path_bytes
from archiver.progress import Progress
from archiver.redact import Redactor, new_key
from archiver.safetext import one_line
from archiver.scratch import Scratch
from archiver.workspace.differing import Differing
from archiver.workspace.folder_difference import folder_difference
from archiver.workspace.git_changes import Taken
from archiver.workspace.git_difference import git_difference
from archiver.workspace_out import document_in, tree_of
from archiver.workspace_part import tree_members

if TYPE_CHECKING:
    from archiver.model.manifest import Manifest
    from archiver.setup import Setup

_PRESENT: Final = ("extra", "content")
"""Kinds that may be of a file that was there, and was left out of the save."""
_ALL: Final = "."
"""The folder itself, where it was left out."""
_OF_DISK: Final = ("state", "index", "unknown", *_PRESENT)
"""Kinds that may have a name which no capture has seen."""
_FINGERPRINT: Final = re.compile(r"(?<=[a-z0-9]):[0-9a-f]{12}(?=\])")


def beside(
    record: Record, chain: Chain, setup: Setup, folder: Path, progress: Progress, within: str
) -> FolderDifference:
    """What is otherwise in `folder` than in the workspace of that checkpoint; `within`: as in `looking.look`.

    Raises `InputNotFoundError` for a checkpoint without a workspace, and for what is no folder, and what
    `bundles.unpack` and `read_tree` raise.
    """
    if not os.path.isdir(folder):  # noqa: PTH112 - a name that no system takes is no folder either
        raise InputNotFoundError(
            f"{one_line(str(folder))} is no folder", remedy="name the folder to compare the workspace with"
        )
    saved.demand_supported(record)

    def choose(manifest: Manifest) -> Collection[str]:
        return {*tree_members(manifest, record), members.RECEIPT}

    with Scratch() as scratch, audit.within(setup, within):
        unpacked = scratch.path / "bundle"
        with choosing.advising(record, setup):
            bundles.unpack(record, setup, unpacked, progress, chain.records, choose=choose)
        document = document_in(unpacked)
        assert document is not None  # noqa: S101 - `tree_members` has found it
        entries = tree_of(document, unpacked, setup.settings.workspace.entries)
        found = _differing(document, entries, folder, setup, scratch)
        return _added_up(record, document, folder, _Told(members.receipt_in(unpacked), setup).all(found))


def _differing(
    document: WorkspaceDocument, entries: Iterator[TreeEntry], folder: Path, setup: Setup, scratch: Scratch
) -> Iterable[Differing]:
    options, apart = setup.settings.workspace.options(), describe.apart(setup)
    if document.git is not None:
        taken = Taken(options.ignore, options.include)
        return git_difference(
            document.git, entries, folder, taken=taken, apart=apart, timeout=options.timeout
        )
    return folder_difference(entries, folder, options, scratch, apart)


class _Told:
    """What is told of names on disk: without their credentials; what the save left out is not extra."""

    def __init__(self, receipt: Receipt, setup: Setup) -> None:
        self._left = {_key(one.member): one.reason for one in receipt.left_out}
        self._text = _redacting(setup)

    def all(self, found: Iterable[Differing]) -> Iterator[Differing]:
        """The differences, as they are told; a capture that is compared has been redacted."""
        for one in found:
            yield self._told(one) if one.kind in _OF_DISK else one

    def _told(self, one: Differing) -> Differing:
        if one.path is None:
            return replace(one, what=self._text(one.what))
        path = self._text(one.path)
        reason = self._reason(_key(path)) if one.kind in _PRESENT else None
        if reason is None:
            return replace(one, path=path)
        # it was there, and nobody knows how
        return Differing("unknown", path, f"cannot be compared: it was left out of the save: {reason}")

    def _reason(self, path: str) -> str | None:
        """Why it, or a folder that it lies in, was left out."""
        while path:
            if path in self._left:
                return one_line(self._left[path])
            path = path.rpartition("/")[0]
        return one_line(self._left[_ALL]) if _ALL in self._left else None


def _key(name: str) -> str:
    """A name as a receipt has it, without what tells the placeholders of one save from those of another."""
    try:
        raw = path_bytes(name)
    except UnicodeEncodeError:  # no name of a file
        raw = name.encode("utf-8", "replace")
    return _FINGERPRINT.sub("", raw.decode("utf-8", "replace"))


def _redacting(setup: Setup) -> Callable[[str], str]:
    """Redaction whose rules are loaded when the first text comes."""

    @cache
    def redactor() -> Redactor:
        return setup.redactor(new_key())

    return lambda text: redactor().text(text)


def _added_up(
    record: Record, document: WorkspaceDocument, folder: Path, found: Iterable[Differing]
) -> FolderDifference:
    changes: list[FolderChange] = []
    unknown: list[FolderChange] = []
    counts = [0, 0]
    for one in found:
        is_unknown = one.kind == "unknown"
        counts[is_unknown] += 1
        if counts[is_unknown] <= MAX_PATHS:
            listed = unknown if is_unknown else changes
            listed.append(FolderChange(kind=one.kind, path=one.path, what=one.what))
    return FolderDifference(
        run=record.run,
        seq=record.seq,
        checkpoint_at=record.checkpoint_at,
        folder=os.path.abspath(folder),  # noqa: PTH100 - no link is looked at
        workspace=document.kind,
        differing=counts[0],
        changes=tuple(changes),
        not_compared=counts[1],
        unknown=tuple(unknown),
    )
