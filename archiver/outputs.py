"""The artifacts of an opened checkpoint: which there are, which one an id means, what is carried of it."""

from __future__ import annotations

import errno
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Final

from archiver import target
from archiver.errors import (
    AlreadyExistsError,
    ArchiverError,
    InputNotFoundError,
    NoSuchArtifactError,
    StoreFullError,
    UsageError,
)
from archiver.model import Artifact, Checkpoint, Cut, Receipt
from archiver.safetext import shorten
from archiver.scratch import fsync_folder

SHORTEST: Final = 6
"""Digits of an id that are enough, if no other begins with them."""
FOLDER: Final = "artifacts"
_BLOCK: Final = 1 << 20
_NEAR: Final = 5
_FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
_ID = re.compile(r"[0-9a-f]{1,64}")
_MEMBER = re.compile(rf"{FOLDER}/[0-9a-f]{{64}}")
"""What an output may lie in: whoever signed the receipt may name any other file in it."""


@dataclass(frozen=True, slots=True)
class Output:
    """An artifact, and where what is carried of it lies."""

    artifact: Artifact
    source: Path | None
    """A private file, of the whole content unless it was `cut`; None where nothing of it is carried."""
    cut: Cut | None = None
    why: str = ""
    """Why nothing of it is carried."""

    @property
    def state(self) -> str:
        """`whole`, `head-and-tail` or `reference`."""
        if self.source is None:
            return "reference"
        return "whole" if self.cut is None else "head-and-tail"

    def blocks(self) -> Iterator[bytes]:
        """What is carried of it, as it is."""
        if self.source is None:
            raise NoSuchArtifactError(
                f"artifact {self.artifact.sha256} is not carried: {self.why}",
                remedy="the list of artifacts has summary, head and tail; an earlier checkpoint may hold it",
            )
        with self.source.open("rb") as file:
            while block := file.read(_BLOCK):
                yield block


def outputs(checkpoint: Checkpoint, receipt: Receipt, folder: Path) -> tuple[Output, ...]:
    """All artifacts of a checkpoint whose members lie in `folder`, in the order of its list."""
    cuts = {cut.member: cut for cut in receipt.cut}
    parts = {cut.kept_as for cut in receipt.cut}
    left = {one.member: one.reason for one in receipt.left_out}
    found = []
    for artifact in checkpoint.artifacts:
        path = f"{FOLDER}/{artifact.sha256}"
        if path in parts:
            continue  # it is told of with the artifact that it is head and tail of
        cut = cuts.get(path)
        held = cut.kept_as if cut and cut.kept_as else path
        place = folder / held
        there = _MEMBER.fullmatch(held) is not None and place.is_file() and not place.is_symlink()
        why = cut.said if cut and not cut.kept_as else left.get(held, "the bundle does not hold it")
        found.append(Output(artifact, place if there else None, cut, "" if there else why))
    return tuple(found)


def chosen(found: Sequence[Output], name: str, where: str) -> Output:
    """The artifact whose digest is `name` or begins with it; `where` says in messages whose it is.

    `UsageError` for a name that is too short or means several, `NoSuchArtifactError` for one that means none.
    """
    wanted = name.removeprefix(f"{FOLDER}/").lower()
    if _ID.fullmatch(wanted) is None or len(wanted) < SHORTEST:
        raise UsageError(
            f"{shorten(name, 80)!r} is no id of an artifact",
            remedy=f"give at least {SHORTEST} of the 64 digits that the list shows",
        )
    meant = [one for one in found if any(digest.startswith(wanted) for digest in _digests(one))]
    if len(meant) > 1:
        raise UsageError(
            f"{wanted} means {len(meant)} artifacts of {where}", remedy=f"give more digits: {_shown(meant)}"
        )
    if not meant:
        raise NoSuchArtifactError(
            f"{where} has no artifact {wanted}",
            remedy=f"{_near(found, wanted)}; another checkpoint may hold it: --at",
        )
    return meant[0]


def _digests(output: Output) -> tuple[str, ...]:
    """Its own, and that of its head and tail."""
    cut = output.cut
    other = (cut.kept_as.removeprefix(f"{FOLDER}/"),) if cut and cut.kept_as else ()
    return (output.artifact.sha256, *other)


def _near(found: Sequence[Output], wanted: str) -> str:
    digests = {one.artifact.sha256[: max(len(wanted), 12)]: one for one in found}
    near = get_close_matches(wanted, digests, n=_NEAR, cutoff=0.5)
    if near:
        return f"near it are {', '.join(near)}"
    return f"there are {_shown(found)}" if found else "it has none at all"


def _shown(found: Sequence[Output]) -> str:
    shown = ", ".join(one.artifact.sha256[:16] for one in found[:_NEAR])
    return shown if len(found) <= _NEAR else f"{shown} and {len(found) - _NEAR} more"


def check_new(path: Path) -> None:
    """Refuse a file that is there already, or a folder that is not, before anything is opened for it."""
    try:
        if os.path.lexists(path):
            raise _exists(path)
        if not path.absolute().parent.is_dir():
            raise InputNotFoundError(
                f"there is no folder {path.absolute().parent}", remedy="make it, or name another --output"
            )
    except (OSError, ValueError) as error:
        raise InputNotFoundError(
            f"{str(path)!r:.300} cannot be a file: {error}", remedy="name another --output"
        ) from error


def write_new(blocks: Iterable[bytes], path: Path) -> int:
    """Write a new private file that appears whole or not at all, and over nothing; gives its bytes."""
    written = 0
    temporary: Path | None = None
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name[:100]}.", dir=path.absolute().parent)
        temporary = Path(name)
        with os.fdopen(handle, "wb") as file:
            for block in blocks:
                written += file.write(block)
            file.flush()
            os.fsync(file.fileno())
        _appear(temporary, path)
        fsync_folder(path.absolute().parent)
    except FileExistsError as error:
        raise _exists(path) from error
    except OSError as error:
        raise _failed(path, error) from error
    finally:
        if temporary is not None:
            with suppress(OSError):
                temporary.unlink()
    return written


def _appear(temporary: Path, path: Path) -> None:
    """Give the file its name, which nobody else may have; where it can have only one name, it is moved."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise
    except OSError:
        target.new_file(path).close()
        temporary.replace(path)


def _failed(path: Path, error: OSError) -> ArchiverError:
    kind = StoreFullError if error.errno in _FULL else InputNotFoundError
    return kind(
        f"{path} cannot be written: {error.strerror}",
        remedy="free some space there, or name another --output",
    )


def _exists(path: Path) -> AlreadyExistsError:
    return AlreadyExistsError(
        f"{path} exists already; nothing is written over", remedy="name another file with --output"
    )
