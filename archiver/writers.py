"""Whose signatures are believed, on what and from when to when; the list lives outside the store.

    [[writer]]
    name = "build machines"
    key = "ed25519:…"
    runs = "ci-*"                              # shell pattern, "*" when absent
    valid_from = 2026-01-01T00:00:00Z          # optional
    distrusted_after = 2026-06-01T00:00:00Z    # optional, for a key that was stolen or retired

    [[administrator]]                          # whose notes are believed, on any run: rekey, hold, release,
                                               # merged runs, rm and erase
    name = "operations"
    key = "ed25519:…"                          # valid_from and distrusted_after as above

Times are compared with the moment at which the *store* says the record was written: a stolen key can sign any
time it likes. A key may have several entries, say for several patterns of runs; where one of them distrusts
it, it is distrusted for all runs, for whoever holds it can write any of them.

In a pattern `*` is any text, `?` one character, `[abc]` one of these; a bracket itself is written `[[]`.
"""

from __future__ import annotations

import glob
import os
import shlex
import stat
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Self, TypeVar

from pydantic import AfterValidator, Field, ValidationError, model_validator

from archiver import sign
from archiver.errors import ConfigError, InvalidKeyError, UntrustedWriterError, UsageError
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


class TrustedKey(Frozen):
    """What every line of the list has."""

    name: Annotated[str, Field(min_length=1, max_length=200)]
    key: Annotated[str, AfterValidator(_checked_key)]
    valid_from: Utc | None = None
    distrusted_after: Utc | None = None

    @model_validator(mode="after")
    def _times_fit(self) -> Self:
        begin, end = self.valid_from, self.distrusted_after
        if begin is not None and end is not None and end < begin:
            raise ValueError(
                f"distrusted_after {utc_text(end)} is before valid_from {utc_text(begin)}, so nothing that "
                "the key signs would ever be believed"
            )
        return self


class Writer(TrustedKey):
    """A key whose records are believed."""

    runs: Annotated[str, Field(min_length=1)] = "*"


class Administrator(TrustedKey):
    """A key whose notes are believed, about any run."""


Entry = TypeVar("Entry", bound=TrustedKey)


class _List(Frozen):
    writer: tuple[Writer, ...] = ()
    administrator: tuple[Administrator, ...] = ()


@dataclass(frozen=True, slots=True)
class Writers:
    """The trusted keys; `source` is the file they were read from, None for the own key alone."""

    trusted: tuple[Writer, ...] = ()
    source: Path | None = None
    administrators: tuple[Administrator, ...] = ()
    warnings: tuple[str, ...] = ()
    """What is to be said of the file."""

    @classmethod
    def load(cls, path: Path | None, *, own: str | None = None) -> Writers:
        """The keys of the file; without one, `own` (the public signing key in use) alone is trusted.

        Raises `ConfigError` naming file and key.
        """
        if path is None and own is None:
            return cls()
        if path is None:
            return cls((Writer(name=OWN, key=own),), None, (Administrator(name=OWN, key=own),))
        found, warnings = _read(path)
        return cls(found.writer, path, found.administrator, warnings)

    def judge(self, public: str, run: str, at: datetime) -> str:
        """The name of the writer that may have written `run` with this key at that moment.

        Raises `UntrustedWriterError`. Of several entries for one key, one that distrusts it decides, also if
        it is for other runs.
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
        _refuse_distrusted(
            known,
            f"run {run} was written",
            at,
            remedy="somebody else may hold this key: look at what it wrote since then, and who could use it",
        )
        return self._begun(fitting, f"run {run} was written", at)

    def distrusts(self, public: str) -> bool:
        """Whether signatures of this key count only up to some time."""
        return any(writer.key == public and writer.distrusted_after is not None for writer in self.trusted)

    def key_of(self, name: str) -> str:
        """The key that is given itself or by the name of a writer; `UsageError` if it is not listed."""
        keys = {one.key for one in (*self.trusted, *self.administrators) if name == one.key}
        keys = keys or {writer.key for writer in self.trusted if writer.name == name}
        if len(keys) == 1:
            return keys.pop()
        if keys:
            raise UsageError(
                f"several keys have the name {name!r}", remedy=f"name one of them: {', '.join(sorted(keys))}"
            )
        known = sorted({f"{writer.name!r} ({writer.key})" for writer in self.trusted})
        raise UsageError(
            f"{name!r} is neither the key nor the name of a trusted writer",
            remedy=f"the trusted writers are {', '.join(known) or '(none)'}",
        )

    def distrusting(self, public: str, after: datetime) -> Writers:
        """The same list after this key was distrusted from then on, where it was not from before."""
        return replace(
            self,
            trusted=tuple(_distrusted(one, public, after) for one in self.trusted),
            administrators=tuple(_distrusted(one, public, after) for one in self.administrators),
        )

    def believing(self, public: str) -> Writers:
        """The same list before this key was distrusted."""
        return replace(
            self,
            trusted=tuple(
                one.model_copy(update={"distrusted_after": None}) if one.key == public else one
                for one in self.trusted
            ),
        )

    def entries(self, public: str) -> str:
        """The lines of `writers.toml` about this key."""
        kinds = (("writer", self.trusted), ("administrator", self.administrators))
        return "\n".join(_lines(kind, one) for kind, listed in kinds for one in listed if one.key == public)

    def judge_administrator(self, public: str, where: str, at: datetime) -> str:
        """The name of the administrator whose note `where` is, when the store got it at that moment.

        Raises `UntrustedWriterError`. Who is distrusted as a writer is no longer believed in notes either: a
        stolen key must not vouch for the time of what it forged.
        """
        known = [administrator for administrator in self.administrators if administrator.key == public]
        if not known:
            raise UntrustedWriterError(
                f"{where} is signed by {public}, which is not a trusted administrator",
                remedy=f"if you know whose key this is, {self._where()}:\n\n"
                + administrator_entry("…", public),
            )
        writers = [writer for writer in self.trusted if writer.key == public]
        _refuse_distrusted(
            [*known, *writers],
            f"{where} was signed",
            at,
            remedy="rekey again with a trusted key, or remove the note if nobody knows where it is from",
        )
        return self._begun(known, f"{where} was signed", at)

    def is_timed(self, public: str) -> bool:
        """Whether it matters when this key wrote something."""
        dates = [(entry.valid_from, entry.distrusted_after) for entry in self.trusted if entry.key == public]
        return any(date is not None for pair in dates for date in pair)

    def _begun(self, entries: Sequence[TrustedKey], what: str, at: datetime) -> str:
        """The name of the first of the entries that is valid by that moment."""
        early = [entry for entry in entries if entry.valid_from is not None and at < entry.valid_from]
        if len(early) == len(entries):
            raise UntrustedWriterError(
                f"{what} at {utc_text(at)} by {early[0].name} ({early[0].key}), "
                f"trusted only from {utc_text(early[0].valid_from or at)}",
                remedy=f"correct valid_from in {self.source} if that is wrong",
            )
        return next(entry.name for entry in entries if entry not in early)

    def _refused(self, message: str, public: str, run: str) -> UntrustedWriterError:
        return UntrustedWriterError(
            message, remedy=f"if you know whose key this is, {self._where()}:\n\n{entry('…', public, run)}"
        )

    def _where(self) -> str:
        return (
            f"add to {self.source}"
            if self.source
            else "write to a file and name it with --writers, or as keys.writers in archiver.toml "
            "(your own key then belongs there too)"
        )


def _refuse_distrusted(entries: Iterable[TrustedKey], what: str, at: datetime, *, remedy: str) -> None:
    for one in entries:
        if one.distrusted_after is not None and at > one.distrusted_after:
            raise UntrustedWriterError(
                f"{what} at {utc_text(at)} by {one.name} ({one.key}), "
                f"distrusted after {utc_text(one.distrusted_after)}",
                remedy=remedy,
            )


def entry(name: str, public: str, run: str | None) -> str:
    """The lines of `writers.toml` that trust a key for exactly one run, or (None) for all."""
    return _table("writer", name=name, key=public, runs="*" if run is None else glob.escape(run))


def administrator_entry(name: str, public: str) -> str:
    """The lines of `writers.toml` that have the notes of a key believed."""
    return _table("administrator", name=name, key=public)


def _lines(kind: str, one: TrustedKey) -> str:
    runs = {"runs": one.runs} if isinstance(one, Writer) else {}
    times = {"valid_from": one.valid_from, "distrusted_after": one.distrusted_after}
    return _table(kind, name=one.name, key=one.key, **runs) + "".join(
        f"{key} = {utc_text(moment)}\n" for key, moment in times.items() if moment is not None
    )


def _distrusted(one: Entry, public: str, after: datetime) -> Entry:
    if one.key != public:
        return one
    moments = [moment for moment in (after, one.distrusted_after) if moment is not None]
    end = max(min(moments), one.valid_from) if one.valid_from is not None else min(moments)
    return one.model_copy(update={"distrusted_after": end})


def _table(kind: str, **values: str) -> str:
    return f"[[{kind}]]\n" + "".join(f"{key} = {toml_text(value)}\n" for key, value in values.items())


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


def _read(path: Path) -> tuple[_List, tuple[str, ...]]:
    try:
        with path.open("rb") as file:
            warnings = _others_may_write(path, os.fstat(file.fileno()))
            data = file.read(_MAX_FILE + 1)
        if len(data) > _MAX_FILE:
            raise ConfigError(f"{path} has more than {_MAX_FILE} bytes: it is no list of writers")
        return _List.model_validate(tomllib.loads(data.decode("utf-8"))), warnings
    except OSError as error:
        raise ConfigError(
            f"the list of trusted writers {path} cannot be read: {error.strerror}",
            remedy="correct --writers or keys.writers, whichever names it; without both the own signing key "
            "alone is trusted",
        ) from error
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part + 1) if isinstance(part, int) else part for part in first["loc"])
        raise ConfigError(
            f"{path}: {place}: {first['msg'].removeprefix('Value error, ')}",
            remedy="an entry has name, key, valid_from, distrusted_after and, for a writer, runs; times have "
            "a zone",
        ) from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is not TOML: {error}", remedy="correct the file") from error


def _others_may_write(path: Path, status: os.stat_result) -> tuple[str, ...]:
    """`ConfigError` for a file that everybody may write to; a warning for one that some others may."""
    if not stat.S_ISREG(status.st_mode):
        return ()
    if status.st_mode & stat.S_IWOTH:
        raise ConfigError(
            f"everybody on this machine may write to {path}, which says whose signatures are believed",
            remedy=f"look who changed it, then: chmod o-w {shlex.quote(str(path))}",
        )
    others = []
    if status.st_mode & stat.S_IWGRP:
        others.append(f"the group {status.st_gid}")
    if status.st_uid not in (0, os.getuid()):
        others.append(f"its owner, user {status.st_uid},")
    if not others:
        return ()
    return (f"{' and '.join(others)} may change {path}, which says whose signatures are believed",)
