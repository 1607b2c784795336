"""The folder in which a restore hands over: it appears whole or not at all, and in nobody's place."""

from __future__ import annotations

import errno
import os
import re
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO
from urllib.parse import unquote, urlsplit

from archiver import jsonio, layout
from archiver.errors import AlreadyExistsError, ArchiverError, InputNotFoundError, StoreFullError, UsageError
from archiver.replica import replicate
from archiver.scratch import Scratch, fsync_folder, remove_folder
from archiver.shellwords import word

REPORT = "report.json"
WORKSPACE = "workspace"
"""Where a restore puts the workspace that was saved."""
_LAST = (REPORT, layout.EXPORT)
"""What describes the rest of a folder."""
_ELSEWHERE = "choose another folder with --into"
_MAX_REPORT = 64 << 20
"""Bytes of a report that are read."""
_WRITTEN = re.compile(
    r"transcript|original|full|artifacts|(effects|evidence)\.jsonl|(receipt|report|checkpoint)\.json"
    r"|REPORT\.md"
)
"""What a restore leaves in its folder, but for the workspace: that may be replaced."""
_MOUNTED = (errno.EBUSY, errno.EXDEV, errno.EACCES, errno.EPERM, errno.EROFS)
"""What renaming onto an empty folder says of a mount point, and of one in a folder that cannot be changed."""


def check(into: Path, replaced: str | None = None, *, store: str = "") -> None:
    """Refuse a target that is not a new name or an empty folder, or lies in the store at the address `store`.

    One in which an earlier restore of the run `replaced` was handed over may be replaced.
    """
    try:
        _demand_outside(into, store)
        _demand_free(into, replaced)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise InputNotFoundError(
            f"{str(into)!r:.300} cannot be a folder: {why}", remedy=_ELSEWHERE
        ) from error


def _demand_free(into: Path, replaced: str | None) -> None:
    if into.is_symlink() or (into.exists() and not into.is_dir()):
        raise AlreadyExistsError(f"{into} exists and is not a folder", remedy=_ELSEWHERE)
    if not into.is_dir() or not _entries(into):
        return
    if replaced is None:
        raise AlreadyExistsError(
            f"{into} is not empty; nothing is written over",
            remedy="choose another folder with --into; --force replaces what an earlier restore of the same "
            "run left",
        )
    _demand_restored(into, replaced)
    if _is_current(into):
        raise AlreadyExistsError(
            f"{into} is the current folder, which would be gone below your feet",
            remedy="go to another folder first, or choose another one with --into",
        )


def _demand_outside(into: Path, store: str) -> None:
    """What is sealed in the store would lie beside it in the open, and be taken for a part of it."""
    address = urlsplit(store)
    if address.scheme != "file":
        return
    root = os.path.realpath(unquote(address.path))
    if Path(os.path.realpath(into)).is_relative_to(root):
        raise UsageError(
            f"{into} lies in the store {root}, and nothing is handed over there",
            remedy=_ELSEWHERE,
        )


def _entries(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError as error:
        raise InputNotFoundError(f"{folder} cannot be read: {error.strerror}", remedy=_ELSEWHERE) from error


def _demand_restored(folder: Path, run: str) -> None:
    """Refuse to replace what no restore of the run left: work that somebody put beside it would be lost."""
    names = [path.name for path in _entries(folder)]
    strange = [name for name in names if name != WORKSPACE and not _WRITTEN.fullmatch(name)]
    if not strange and _run_restored_in(folder) == run:
        if WORKSPACE in names:
            raise AlreadyExistsError(
                f"{folder} holds the {WORKSPACE} that an earlier restore made, in which somebody may have "
                "worked since, so it is not replaced",
                remedy=f"{_ELSEWHERE}, or take {word(str(folder / WORKSPACE))} out of it first",
            )
        return
    why = f"it holds {strange[0]!r}" if strange else f"its {REPORT} is not that of a restore of this run"
    raise AlreadyExistsError(
        f"{folder} is not what an earlier restore of this run left, so it is not replaced: {why}",
        remedy=_ELSEWHERE,
    )


def _run_restored_in(folder: Path) -> str | None:
    """The run in the report that lies there; a link, a pipe or anything else is none."""
    try:
        handle = os.open(folder / REPORT, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return None
        try:
            document = jsonio.loads(file.read(_MAX_REPORT + 1)[:_MAX_REPORT])
        except (OSError, ValueError):
            return None
    if not isinstance(document, dict) or "next_steps" not in document:
        return None
    run = document.get("run")
    return run if isinstance(run, str) else None


@contextmanager
def beside(into: Path) -> Iterator[Scratch]:
    """A scratch folder beside the target, so that the last step is one rename.

    Parents that are missing are made, and removed again when the work fails. Beside an existing folder whose
    parent cannot be written, the scratch folder lies with other temporary files.
    """
    parent = into.absolute().parent
    made: list[Path] = []
    try:
        _make(parent, made)
        elsewhere = into.is_dir() and not os.access(parent, os.W_OK | os.X_OK)
        with Scratch(None if elsewhere else parent) as scratch:
            yield scratch
    except BaseException:
        for folder in reversed(made):
            with suppress(OSError):  # somebody else has put something there
                folder.rmdir()
        raise


def _make(folder: Path, made: list[Path]) -> None:
    """Make the folder and the parents that are missing; `made` is told of each."""
    try:
        for place in reversed((folder, *folder.parents)):
            if not place.is_dir():
                place.mkdir()
                made.append(place)
    except OSError as error:
        raise InputNotFoundError(f"{folder} cannot be made: {error.strerror}", remedy=_ELSEWHERE) from error


def appear(out: Path, into: Path, scratch: Scratch, replaced: str | None = None) -> None:
    """Rename the finished folder `out` to `into`, which is new, empty, or holds what may be replaced.

    What an earlier restore left is first moved into the scratch folder, looked at where nobody else can
    change it, and put back if it is anything else or the rename fails.
    """
    try:
        if replaced is None or into.is_symlink() or not into.is_dir() or not _entries(into):
            rename(out, into)
        else:
            _replace(out, into, scratch.path / "replaced", replaced)
    except OSError as error:
        raise failed(into, error) from error


def _replace(out: Path, into: Path, old: Path, run: str) -> None:
    into.rename(old)
    try:
        _demand_restored(old, run)
        rename(out, into)
    except BaseException as error:
        kept = _put_back(old, into)
        if kept != into and isinstance(error, ArchiverError):
            error.args = (f"{error}; what was there before is in {kept}",)
        raise


def _put_back(old: Path, into: Path) -> Path:
    """Where it was, or beside it if somebody has put something there meanwhile: nothing of it is lost."""
    try:
        old.rename(into)
    except OSError:
        beside = Path(tempfile.mkdtemp(prefix=f"{into.name}.", dir=into.parent))
        old.rename(beside)
        return beside
    return into


def failed(into: Path, error: OSError) -> ArchiverError:
    said = f"the checkpoint could not be written to {into}: {error.strerror}"
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO):
        place = into if into.is_dir() else into.absolute().parent
        return StoreFullError(
            said, remedy=f"free some space on the disk of {place}, or choose another --into"
        )
    return InputNotFoundError(said, remedy=_ELSEWHERE)


def rename(out: Path, into: Path) -> None:
    try:
        if _is_current(into):
            _fill(out, into)  # a shell that stands in it would stand in the one that was replaced
        else:
            out.rename(into)  # onto an empty folder this is atomic too; onto anything else it fails
    except OSError as error:
        if error.errno in _MOUNTED and into.is_dir():
            _fill(out, into)
        elif error.errno in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR):
            raise _in_the_way(into) from error
        else:
            raise
    fsync_folder(into.absolute().parent)


def _is_current(folder: Path) -> bool:
    try:
        return folder.samefile(".")
    except OSError:
        return False


def _in_the_way(into: Path) -> AlreadyExistsError:
    return AlreadyExistsError(
        f"{into} came into being meanwhile; nothing is written over", remedy="choose another --into"
    )


def _check_empty(into: Path, but: Path | None = None) -> None:
    if any(path != but for path in into.iterdir()):
        raise _in_the_way(into)


def _fill(out: Path, into: Path) -> None:
    """Put what is finished into the empty folder `into`, what describes it last: it says that all is there.

    For a folder that no rename replaces. All is copied to its disk before the first of it appears.
    """
    _check_empty(into)
    moved: list[Path] = []
    try:
        with Scratch(into) as near:
            copy = near.path / "out"
            replicate(out, copy)
            _check_empty(into, but=near.path)
            for entry in sorted(copy.iterdir(), key=lambda path: (path.name in _LAST, path.name)):
                if entry.name in _LAST:
                    fsync_folder(into)
                moved.append(entry.rename(into / entry.name))
    except BaseException:
        for path in reversed(moved):
            _remove(path)
        raise
    fsync_folder(into)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        remove_folder(path)
    else:
        path.unlink(missing_ok=True)


def new_file(path: Path) -> BinaryIO:
    """A new private file."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "wb")
