"""Runs of any harness: each folder with a manifest, `archiver-run.json`, is one.

The manifest names the files of the transcript. None of them may lead out of the folder: whoever writes the
manifest decides over their own run, and not over what the archiver may read.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Final

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from archiver import jsonio
from archiver.errors import ArchiverError
from archiver.model.run_manifest import MANIFEST_NAME, RUN_MANIFEST_FORMAT, RunManifest
from archiver.safetext import one_line, shorten
from archiver.sources.beneath import led_astray
from archiver.sources.found import FileStamp, Found, Unusable
from archiver.sources.listing import LET_IN, Entry, Walk
from archiver.sources.place import Place, given
from archiver.sources.session import files_of
from archiver.transcripts.source import FileSource

_FORMS: Final = {
    "string_type": "a text",
    "tuple_type": "a list of texts",
    "model_type": "an object",
    "string_unicode": "text",
}
_REMEDY: Final = f"correct its {MANIFEST_NAME}, or leave the folder out with `match` of the source"
_LARGEST: Final = 1 << 20
_SHOWN: Final = 200


class _RefusedError(Exception):
    """Why a manifest does not make a run."""


class Folder(Place):
    """A folder with such runs, at any depth; links to folders are not followed."""

    def find(self) -> Iterator[Found | Unusable]:
        """Each folder with a manifest."""
        if (missing := self.missing()) is not None:
            yield missing
            return
        pattern, problems = self.pattern(), list[Unusable]()
        for listed in Walk(self.path, self.kind):
            if isinstance(listed, Unusable):
                yield listed
                continue
            folder, found = listed
            manifest = next((entry for entry in found if entry.name == MANIFEST_NAME), None)
            if manifest is not None and pattern.fits(folder):
                yield from self._run(folder, manifest, problems)
                yield from given(problems)

    def _run(self, folder: Path, entry: Entry, problems: list[Unusable]) -> Iterator[Found | Unusable]:
        try:
            file = self.stamp(entry, problems, follow=False)
            if file is None:
                if not problems:
                    yield Unusable(self.kind, str(folder), f"its {MANIFEST_NAME} is no regular file")
                return
            manifest = _read(file.path)
            paths = tuple(_inside(folder, name) for name in manifest.transcript)
            files = self._files(folder, (*files_of(paths), file))
            yield self._found(folder, manifest, files, paths)
        except (_RefusedError, ArchiverError) as error:
            yield Unusable(self.kind, str(folder), one_line(str(error)), remedy=_REMEDY)
        except OSError as error:
            why = one_line(f"cannot be read: {error.strerror}")
            yield Unusable(self.kind, str(folder), why, remedy=LET_IN)

    def _files(self, folder: Path, files: tuple[FileStamp, ...]) -> tuple[FileStamp, ...]:
        astray = led_astray(self.path, files)
        if astray is not None:
            raise _RefusedError(f"{_shown(os.path.relpath(astray, folder))} is reached through a link")
        return files

    def _found(
        self, folder: Path, manifest: RunManifest, files: tuple[FileStamp, ...], paths: tuple[Path, ...]
    ) -> Found:
        return self.found(
            folder,
            files,
            paths=paths,
            run_id=manifest.run,
            task=manifest.task,
            user=manifest.user,
            phase=manifest.phase,
            note=manifest.note,
            outcome=manifest.outcome,
        )


def _read(path: Path) -> RunManifest:
    source = FileSource.of(path, follow=False)
    if source.size > _LARGEST:
        raise _RefusedError(f"its {MANIFEST_NAME} has {source.size} bytes, more than {_LARGEST}")
    try:
        value = jsonio.loads(source.head(_LARGEST))
    except ValueError as error:
        raise _RefusedError(f"its {MANIFEST_NAME} is no JSON{_at(error)}") from error
    number = value.get("format") if isinstance(value, dict) else None
    if isinstance(number, int) and number > RUN_MANIFEST_FORMAT:
        raise _RefusedError(
            f"its {MANIFEST_NAME} has format {number}, and this release reads {RUN_MANIFEST_FORMAT}: "
            "update checkpoint-archiver"
        )
    try:
        return RunManifest.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"])) or "the document"
        raise _RefusedError(f"its {MANIFEST_NAME} is not valid: {_meaning(first, where)}") from error


def _at(error: ValueError) -> str:
    line, column = getattr(error, "lineno", None), getattr(error, "colno", None)
    return "" if line is None else f": line {line}, column {column}: {getattr(error, 'msg', '')}"


def _meaning(error: ErrorDetails, where: str) -> str:
    """What is wrong, in the words of JSON."""
    named, kind = f"'{shorten(one_line(where), 80)}'" if error["loc"] else where, error["type"]
    if kind == "extra_forbidden":
        return f"there is no key {named}"
    if kind == "missing":
        return f"the key {named} is missing"
    context = error.get("ctx", {})
    if kind in ("string_too_short", "too_short"):
        return f"{named} is empty"
    if kind == "string_too_long":
        return f"{named} has more than {context.get('max_length')} characters"
    if kind == "literal_error":
        return f"{named} is none of {context.get('expected')}"
    return f"{named} is not {_FORMS.get(kind, 'what the guide says')}"


def _shown(name: str) -> str:
    return shorten(one_line(name), _SHOWN)


def _inside(folder: Path, name: str) -> Path:
    """The file of that name in the folder; `_RefusedError` for what leads out of it, or is no file."""
    shown = _shown(name)
    steps = PurePosixPath(name)
    if steps.is_absolute() or ".." in steps.parts or not steps.parts or "\0" in name:
        raise _RefusedError(f"{MANIFEST_NAME} names {shown}, which is not a path within the folder")
    path = folder
    for step in steps.parts:
        path = path / step
        try:
            seen = os.lstat(path)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise _RefusedError(f"{MANIFEST_NAME} names {shown}, which is not there") from error
        if stat.S_ISLNK(seen.st_mode):
            raise _RefusedError(f"{MANIFEST_NAME} names {shown}, which leads through a link")
    if not stat.S_ISREG(seen.st_mode):
        raise _RefusedError(f"{MANIFEST_NAME} names {shown}, which is no regular file")
    return path
