"""Where mended files go: a new folder, or the places of the originals, which are kept beside them."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from archiver.errors import AlreadyExistsError, InputNotFoundError, RefusedError, StoreFullError
from archiver.model import TranscriptPart
from archiver.transcripts.names import shown
from archiver.transcripts.native import write_native
from archiver.transcripts.source import FileSource

BACKUP: Final = ".orig"
_FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@dataclass(frozen=True, slots=True)
class File:
    """One file of a transcript: where it lies, what it should hold, and whether that is something else."""

    source: FileSource
    part: TranscriptPart
    changed: bool


def into(files: Sequence[File], folder: Path) -> tuple[Path, ...]:
    """Write all files into a new folder that appears when it is whole; an empty one there makes room."""
    if os.path.lexists(folder) and (folder.is_symlink() or not folder.is_dir() or any(folder.iterdir())):
        raise _exists(folder)
    with _failing(folder):
        made = Path(tempfile.mkdtemp(prefix=f".{folder.name[:100]}.", dir=folder.parent))
        try:
            for file in files:
                path = made / file.part.name
                path.parent.mkdir(parents=True, exist_ok=True)
                with path.open("xb") as out:
                    _write(file, out)
            _unchanged(files)
            _appear(made, folder)
        except BaseException:
            shutil.rmtree(made, ignore_errors=True)
            raise
    return tuple(folder / file.part.name for file in files)


def in_place(files: Sequence[File]) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """Put the files that changed where they are; the originals get `.orig` behind their names.

    All are written before the first is put in its place, which happens in one step for each.
    """
    changed = [file for file in files if file.changed]
    places = [Path(os.path.realpath(file.source.path)) for file in changed]
    backups = [place.with_name(place.name + BACKUP) for place in places]
    for place, backup in zip(places, backups, strict=True):
        # A run that was killed may have left the second name of the very file, which is no backup of another.
        if os.path.lexists(backup) and (backup.is_symlink() or not place.samefile(backup)):
            raise _exists(backup)
    written: list[Path] = []
    try:
        for file, place in zip(changed, places, strict=True):
            with _failing(place):
                written.append(_beside(file, place))
        _unchanged(files)
        for place, backup, new in zip(places, backups, written, strict=True):
            with _failing(place):
                _keep(place, backup)
                new.replace(place)
        _still_unchanged(changed, places, backups)
    finally:
        for path in written:
            path.unlink(missing_ok=True)
    return tuple(places), tuple(backups)


def _beside(file: File, place: Path) -> Path:
    """The mended file in the folder of the original, with its mode, under a name that is no transcript's."""
    handle, name = tempfile.mkstemp(prefix=f".{place.name[:100]}.", suffix=".mended", dir=place.parent)
    try:
        with os.fdopen(handle, "wb") as out:
            os.fchmod(handle, stat.S_IMODE(place.stat().st_mode))
            _write(file, out)
            out.flush()
            os.fsync(handle)
    except BaseException:
        with suppress(OSError):
            Path(name).unlink()
        raise
    return Path(name)


def _keep(place: Path, backup: Path) -> None:
    """Give the original its second name; where a file can have only one, it is copied."""
    try:
        os.link(place, backup)
    except FileExistsError:
        if not place.samefile(backup):
            raise _exists(backup) from None
    except OSError:
        with backup.open("xb") as out, place.open("rb") as original:
            shutil.copyfileobj(original, out)
        shutil.copystat(place, backup)


def _write(file: File, out: BinaryIO) -> None:
    if file.changed:
        write_native(file.part, out.write)
        return
    for block in file.source.blocks():
        out.write(block)


def _unchanged(files: Sequence[File]) -> None:
    """`RefusedError` where a file was written since it was read."""
    for file in files:
        with file.source.opened(unchanged=True):
            pass


def _still_unchanged(files: Sequence[File], places: Sequence[Path], backups: Sequence[Path]) -> None:
    """Put the originals back, and `RefusedError`, where one was written until the moment it was replaced.

    Who has it open writes on into the file that is the backup now, where nobody would look for it.
    """
    now = [backup.stat() for backup in backups]
    if all(
        seen.st_ino != file.source.inode  # a copy says nothing
        or (seen.st_size, seen.st_mtime_ns) == (file.source.size, file.source.mtime_ns)
        for file, seen in zip(files, now, strict=True)
    ):
        return
    for place, backup in zip(places, backups, strict=True):
        with _failing(place):
            backup.replace(place)
    raise RefusedError(
        f"{shown(places[0])} was written to while it was mended; the originals are back in their places",
        remedy="repair it again when nothing writes to it",
    )


def _appear(made: Path, folder: Path) -> None:
    made.chmod(0o777 & ~_umask())
    try:
        made.rename(folder)
    except OSError as error:
        if error.errno in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR):
            raise _exists(folder) from error
        raise


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _exists(path: Path) -> AlreadyExistsError:
    return AlreadyExistsError(
        f"{shown(path)} is there already",
        remedy="move it away, or name another folder with --into; nothing was changed",
    )


@contextmanager
def _failing(path: Path) -> Iterator[None]:
    """Say of a file that cannot be written which one it is."""
    try:
        yield
    except OSError as error:
        kind = StoreFullError if error.errno in _FULL else InputNotFoundError
        raise kind(
            f"{shown(path)} cannot be written: {error.strerror}",
            remedy="name a folder that can be written and has room with --into; the original is as it was",
        ) from error
