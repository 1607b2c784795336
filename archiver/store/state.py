"""What a file of a folder store says of the object that it holds, and which of its states is meant."""

from __future__ import annotations

import os
import stat
from datetime import UTC, datetime

from archiver.errors import AlreadyExistsError, ObjectNotFoundError, StoreError
from archiver.model.record import RetentionClass
from archiver.store.base import ObjectInfo
from archiver.store.folder import wrong_kind


def status_of(folder: int, leaf: str, name: str) -> os.stat_result:
    """The status of the object's file; `ObjectNotFoundError`, or `StoreError` for anything but a file."""
    try:
        status = os.stat(leaf, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        raise not_found(name) from None
    if not stat.S_ISREG(status.st_mode):
        raise wrong_kind(name)
    return status


def info_of(name: str, status: os.stat_result, retention: RetentionClass | None = None) -> ObjectInfo:
    """The object as its file has it.

    `etag` names the state of the file. Every replacement is another file that was written later; the number
    of a file that is gone may come again, but not with the very nanosecond of its last write.
    """
    try:
        modified = datetime.fromtimestamp(status.st_mtime, UTC)
    except (OverflowError, ValueError, OSError) as error:
        raise StoreError(
            f"{name} carries an impossible time", remedy="set its time with `touch` and look who changed it"
        ) from error
    etag = f"{status.st_ino:x}-{status.st_mtime_ns:x}-{status.st_size:x}"
    return ObjectInfo(name, status.st_size, modified, retention, etag)


def refuse_other(found: ObjectInfo, was: ObjectInfo) -> None:
    """`AlreadyExistsError` unless the object is in the state that `was` describes, whatever its tag."""
    if (found.size, found.modified, found.etag) != (was.size, was.modified, was.etag):
        raise AlreadyExistsError(
            f"object {found.name} was changed by somebody else meanwhile",
            remedy="run it again: it then works on what is there now",
        )


def taken(name: str) -> AlreadyExistsError:
    return AlreadyExistsError(
        f"object {name} exists already", remedy="objects never change: read it, or use another name"
    )


def not_found(name: str) -> ObjectNotFoundError:
    return ObjectNotFoundError(f"object {name} is not in the store", remedy="look with `archiver list`")
