"""Files that hold a secret key: made once for their owner alone, and read only while nobody else can."""

from __future__ import annotations

import errno
import os
import secrets
import shlex
import stat
from pathlib import Path

from archiver.errors import AlreadyExistsError, InputNotFoundError, InvalidKeyError, KeyUnavailableError
from archiver.scratch import fsync_folder

MAX_SECRET_FILE = 1 << 20
"""Bytes a key file may have."""

_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}
_OTHERS = 0o077
_OTHERS_OF_ROOT = 0o037


def write_secret_file(path: Path, text: str) -> None:
    """Create `path` with mode 0600 and this text, durable when this returns; it appears whole or not at all.

    Raises `AlreadyExistsError` if anything bears the name already (a key is never overwritten), and
    `InputNotFoundError` if the file cannot be written; nothing is left behind then.
    """
    try:
        write_new_file(path, text, mode=0o600)
    except FileExistsError:
        raise AlreadyExistsError(
            f"{path} exists already and a key is never overwritten",
            remedy="choose another name, or move the old file away if nothing was sealed or signed with it",
        ) from None
    except OSError as error:
        raise _unwritable(path, error) from error


def write_new_file(path: Path, text: str, *, mode: int) -> None:
    """Create a file under a name that must be free, whole or not at all, durable when this returns.

    A process that is killed half-way leaves at most a private file beside it, `.NAME.….tmp`, which blocks
    nothing. Raises `FileExistsError` for a taken name, else `OSError`.
    """
    if os.path.lexists(path):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            os.fchmod(handle, mode)
            file.write(text)
            file.flush()
            os.fsync(handle)
        _give_name(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    fsync_folder(path.parent)


def _give_name(temporary: Path, path: Path) -> None:
    """A second name for the file, never over another file; `FileExistsError` if somebody was faster."""
    try:
        os.link(temporary, path, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        # A file system without hard links (FAT, some network mounts): the name is claimed, then replaced.
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        temporary.replace(path)


def read_secret_file(path: Path) -> str:
    """The text of a key file.

    Raises `KeyUnavailableError` if it cannot be read, and `InvalidKeyError` if others can read it, if it has
    more than `MAX_SECRET_FILE` bytes, or if it is not UTF-8. No error shows any of its content.
    """
    try:
        with path.open("rb") as file:
            _refuse_shared(path, os.fstat(file.fileno()))
            data = file.read(MAX_SECRET_FILE + 1)
    except OSError as error:
        raise KeyUnavailableError(
            f"the key file {path} cannot be read: {error.strerror}",
            remedy="check the path, or make a key with `archiver keygen`",
        ) from error
    if len(data) > MAX_SECRET_FILE:
        raise InvalidKeyError(f"{path} has more than {MAX_SECRET_FILE} bytes: it is no key file")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidKeyError(f"{path} is not a text file: it is no key file") from None


def _refuse_shared(path: Path, status: os.stat_result) -> None:
    """Pipes have no readers but their ends, so only a regular file is judged.

    A file of root's that another user reads through its group (a mounted Kubernetes secret with `fsGroup`)
    cannot be narrowed by its reader, so its group may read it, as PostgreSQL has it.
    """
    if not stat.S_ISREG(status.st_mode):
        return
    of_root = status.st_uid == 0 and os.geteuid() != 0
    mode = stat.S_IMODE(status.st_mode)
    if mode & (_OTHERS_OF_ROOT if of_root else _OTHERS):
        raise InvalidKeyError(
            f"the key file {path} can be reached by other users (mode {mode:04o})",
            remedy=f"run `chmod 600 {shlex.quote(str(path))}`, "
            "and make a new key if somebody else may have read it",
        )


def _unwritable(path: Path, error: OSError) -> InputNotFoundError:
    return InputNotFoundError(
        f"the key file {path} cannot be written: {error.strerror}",
        remedy="name a folder that exists and that you may write to",
    )
