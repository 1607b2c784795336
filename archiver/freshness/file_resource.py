"""A file on this machine, by a salted digest of its content: `file:path`, relative to the workspace."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path
from time import monotonic
from typing import Final
from urllib.parse import unquote, urlsplit

from archiver.freshness import digests
from archiver.freshness.resources import LOOK, GoneError, Token, World
from archiver.freshness.unasked import Unasked
from archiver.freshness.verdict import Finding

MAX_FILE: Final = 256 << 20
_CHUNK: Final = 1 << 20


class NotRegularError(Unasked):
    """There is something, and it is no regular file."""


class FileResource:
    """Only regular files are opened, and no link is followed in place of one."""

    def see(self, address: str, world: World) -> Token:
        return {"content": digests.guarded(_sha256(address, world)), "folder": _folder(world)}

    def compare(self, address: str, then: Token, world: World) -> Finding:
        try:
            now = _sha256(address, world)
        except GoneError:
            if then.get("folder") == _folder(world):
                raise
            raise _elsewhere(then, world) from None
        except NotRegularError as error:  # it was a file, so that is a change
            return Finding("STALE", f"{address}: {error}", error.remedy)
        if digests.matches(now, then.get("content")):
            return Finding("FRESH", f"{address}: its content is the same")
        return Finding("STALE", f"{address}: its content has changed", LOOK)


def _folder(world: World) -> str:
    """The folder of the work: where it is another than at the save, files may lie on another machine."""
    return str(world.context.workspace or "")


def _elsewhere(then: Token, world: World) -> Unasked:
    return Unasked(
        f"there is no such file seen from {_folder(world) or 'nowhere'}, and the run worked in "
        f"{then.get('folder') or 'a folder that is not known'}",
        "run it in a work tree of the run, on the machine that has the file",
    )


def path_of(address: str, world: World) -> Path:
    """The file that the address names on this machine."""
    text = address.removeprefix("file:")
    if text.startswith("//"):
        parts = urlsplit(address)
        if parts.netloc not in ("", "localhost"):
            raise Unasked("it lies on another machine", "write file:path, or file:///path")
        text = unquote(parts.path)
    if not text or "\0" in text:
        raise Unasked("its address names no file")
    home = world.context.environ.get("HOME")
    if text.startswith("~/") and home:
        return Path(home, text[2:])
    try:
        return Path(world.context.workspace or Path.cwd(), text)
    except OSError as error:
        raise Unasked("there is no current folder", "write its whole path") from error


def _sha256(address: str, world: World) -> bytes:
    handle = open_regular(path_of(address, world))
    try:
        total = hashlib.sha256()
        size = 0
        while chunk := os.read(handle, _CHUNK):
            total.update(chunk)
            size += len(chunk)
            if size > MAX_FILE:
                raise Unasked(f"it is larger than {MAX_FILE} bytes")
            if monotonic() > world.network.deadline:
                raise Unasked("it could not be read within the time of a probe")
        return total.digest()
    except OSError as error:
        raise Unasked(f"it cannot be read: {error.strerror}") from error
    finally:
        os.close(handle)


def open_regular(path: Path) -> int:
    """A handle on a regular file, never a device or a pipe; `GoneError` where nothing is."""
    try:
        about = path.lstat()
        if not stat.S_ISREG(about.st_mode):
            raise NotRegularError(
                "it is a link, a folder or a device, which probes do not open", "watch the file itself"
            )
        # A name may become a pipe between the two calls; opening one must not wait for its other end.
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise GoneError(f"there is no such file in {path.parent}") from error
    except (OSError, ValueError) as error:
        said = error.strerror if isinstance(error, OSError) else "its name is not possible"
        raise Unasked(f"it cannot be opened: {said}") from error
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise NotRegularError("it is no regular file any more")
    return handle
