"""What tells that the files of a run are the same as when they were saved, without a look into the store.

    content = first 32 hex digits of SHA-256(signature over [store, kind, SHA-256 of names, sizes and bytes])

Section 8 of FORMAT.md says it byte by byte.
The signature is deterministic, so a writer always comes to the same; who has not its key cannot tell whether
files at hand are those of a record.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from archiver import jsonio, sign
from archiver.model import SourceRef
from archiver.sources import FileStamp
from archiver.transcripts.source import FileSource

if TYPE_CHECKING:
    from archiver.setup import Setup
    from archiver.sources import Found

CONTENT_TYPE: Final = "application/vnd.checkpoint-archiver.source.v1"


def reference(found: Found, setup: Setup) -> SourceRef:
    """Reads all files of the run, as far as they reach now; `InputNotFoundError` if one cannot be read."""
    parts = [setup.require_store_id(), found.kind, _digest(found)]
    signature = setup.require_signing_key().sign(sign.pae(CONTENT_TYPE, jsonio.canonical(parts)))
    return SourceRef(kind=found.kind, content=hashlib.sha256(signature).hexdigest()[:32])


def look(files: Iterable[FileStamp]) -> tuple[FileStamp, ...]:
    """The same files as they are now; `InputNotFoundError` if one is gone."""
    return tuple(_stamp(one) for one in files)


def stamp(files: Iterable[FileStamp], also: str = "") -> str:
    """All that is seen of files without reading them, as one digest: another one if any of them changed.

    `also` is what else has to stay as it is.
    """
    digest = hashlib.sha256(also.encode())
    for one in files:
        digest.update(_framed(os.fsencode(one.path)))
        digest.update(b"%d %d %d %d\n" % (one.size, one.mtime_ns, one.inode, one.device))
    return digest.hexdigest()[:32]


def _stamp(one: FileStamp) -> FileStamp:
    seen = FileSource.of(one.path)
    return FileStamp(one.path, seen.size, seen.mtime_ns, seen.inode, seen.device)


def _digest(found: Found) -> str:
    """Names count from the folder of the main file: the same files on another host are the same content."""
    main = found.files[0].path
    named = {os.fsencode(os.path.relpath(one.path, main.parent)): one.path for one in found.files}
    digest = hashlib.sha256()
    for name in sorted(named, key=lambda name: (named[name] != main, name)):
        source = FileSource.of(named[name])
        digest.update(_framed(name))
        digest.update(b"%d\n" % source.size)
        for block in source.blocks():
            digest.update(block)
    return digest.hexdigest()


def _framed(data: bytes) -> bytes:
    return b"%d %b" % (len(data), data)
