"""Whose signatures are believed, for which runs and from when to when; the list lives outside the store.

    [[writer]]
    name = "build machines"
    key = "ed25519:…"
    runs = "ci-*"                              # shell pattern, "*" when absent
    valid_from = 2026-01-01T00:00:00Z          # optional
    distrusted_after = 2026-06-01T00:00:00Z    # optional, for a key that was stolen or retired

Times are compared with the moment at which the *store* says the record was written: a stolen key can sign any
time it likes.
"""

from __future__ import annotations

import glob
import tomllib
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field, ValidationError

from archiver import sign
from archiver.errors import ConfigError, InvalidKeyError, UntrustedWriterError
from archiver.model import Frozen, Utc, utc_text

OWN = "own signing key"
"""The name of the key of this configuration where there is no list."""

_MAX_FILE = 1 << 20


def _checked_key(text: str) -> str:
    try:
        sign.parse_public(text)
    except InvalidKeyError as error:
        raise ValueError(str(error)) from error
    return text


class Writer(Frozen):
    """One line of the list."""

    name: Annotated[str, Field(min_length=1, max_length=200)]
    key: Annotated[str, AfterValidator(_checked_key)]
    runs: Annotated[str, Field(min_length=1)] = "*"
    valid_from: Utc | None = None
    distrusted_after: Utc | None = None


class _List(Frozen):
    writer: tuple[Writer, ...] = ()


@dataclass(frozen=True, slots=True)
class Writers:
    """The trusted writers; `source` is the file they were read from, None for the own key alone."""

    trusted: tuple[Writer, ...] = ()
    source: Path | None = None

    @classmethod
    def load(cls, path: Path | None, *, own: str | None = None) -> Writers:
        """The writers of the file; without one, `own` (the public signing key in use) alone is trusted.

        Raises `ConfigError` naming file and key.
        """
        if path is None:
            return cls((Writer(name=OWN, key=own),) if own else ())
        return cls(_read(path), path)

    def judge(self, public: str, run: str, at: datetime) -> str:
        """The name of the writer that may have written `run` with this key at that moment.

        Raises `UntrustedWriterError`. Of several entries for one key, one that distrusts it decides.
        """
        known = [writer for writer in self.trusted if writer.key == public]
        if not known:
            raise self._refused(
                f"run {run} is signed by {public}, which is not a trusted writer", public, run
            )
        fitting = [writer for writer in known if fnmatchcase(run, writer.runs)]
        if not fitting:
            patterns = ", ".join(repr(writer.runs) for writer in known)
            raise self._refused(
                f"run {run} is signed by {known[0].name} ({public}), trusted for runs {patterns} only",
                public,
                run,
            )
        for writer in fitting:
            if writer.distrusted_after is not None and at > writer.distrusted_after:
                raise UntrustedWriterError(
                    f"run {run} was written at {utc_text(at)} by {writer.name} ({public}), "
                    f"distrusted after {utc_text(writer.distrusted_after)}",
                    remedy="restore a checkpoint from before with --at; somebody else may hold this key",
                )
        early = [writer for writer in fitting if writer.valid_from is not None and at < writer.valid_from]
        if len(early) == len(fitting):
            raise UntrustedWriterError(
                f"run {run} was written at {utc_text(at)} by {early[0].name} ({public}), "
                f"trusted only from {utc_text(early[0].valid_from or at)}",
                remedy=f"correct valid_from in {self.source} if that is wrong",
            )
        return next(writer.name for writer in fitting if writer not in early)

    def _refused(self, message: str, public: str, run: str) -> UntrustedWriterError:
        where = (
            f"add to {self.source}"
            if self.source
            else "write to a file and name it with --writers, or as keys.writers in archiver.toml "
            "(your own key then belongs there too)"
        )
        return UntrustedWriterError(
            message, remedy=f"if you know whose key this is, {where}:\n\n{entry('…', public, run)}"
        )


def entry(name: str, public: str, run: str | None) -> str:
    """The lines of `writers.toml` that trust a key for exactly one run, or (None) for all."""
    values = {"name": name, "key": public, "runs": "*" if run is None else glob.escape(run)}
    return "[[writer]]\n" + "".join(f"{key} = {toml_text(value)}\n" for key, value in values.items())


def toml_text(text: str) -> str:
    """A TOML basic string; control characters are written as escapes."""
    escaped = (
        f"\\{character}"
        if character in '"\\'
        else character
        if character.isprintable()
        else _escape(character)
        for character in text
    )
    return f'"{"".join(escaped)}"'


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _read(path: Path) -> tuple[Writer, ...]:
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_FILE + 1)
        if len(data) > _MAX_FILE:
            raise ConfigError(f"{path} has more than {_MAX_FILE} bytes: it is no list of writers")
        return _List.model_validate(tomllib.loads(data.decode("utf-8"))).writer
    except OSError as error:
        raise ConfigError(
            f"the list of trusted writers {path} cannot be read: {error.strerror}",
            remedy="correct keys.writers, or remove it to trust the own signing key alone",
        ) from error
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part + 1) if isinstance(part, int) else part for part in first["loc"])
        raise ConfigError(
            f"{path}: {place}: {first['msg'].removeprefix('Value error, ')}",
            remedy="an entry has name, key, runs, valid_from and distrusted_after; times carry a zone",
        ) from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is not TOML: {error}", remedy="correct the file") from error
