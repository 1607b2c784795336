"""The workspace that a checkpoint carries, beside a folder on disk: what differs, and nothing is written.

Only the tree is fetched, no content: files are compared by their digests.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from archiver import audit, bundles, choosing, describe, members, saved
from archiver.catalog import Chain
from archiver.errors import InputNotFoundError
from archiver.model import Receipt, Record
from archiver.model.difference import MAX_PATHS, FolderChange, FolderDifference
from archiver.model.workspace import TreeEntry, WorkspaceDocument
from archiver.progress import Progress
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
        return _added_up(record, document, folder, _judged(found, members.receipt_in(unpacked)))


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


def _judged(found: Iterable[Differing], receipt: Receipt) -> Iterator[Differing]:
    """What the save left out is not extra here: it was there, and nobody knows how."""
    left = {one.member: one.reason for one in receipt.left_out}
    for one in found:
        reason = _reason(one.path, left) if one.kind in _PRESENT and one.path is not None else None
        if reason is None:
            yield one
        else:
            yield Differing("unknown", one.path, f"cannot be compared: it was left out of the save: {reason}")


def _reason(path: str, left: dict[str, str]) -> str | None:
    """Why it, or a folder that it lies in, was left out."""
    while path:
        if path in left:
            return one_line(left[path])
        path = path.rpartition("/")[0]
    return None


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
