"""What the tests of audit, export and drill share: commands, what was written down, keys of others."""

from __future__ import annotations

import io
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from archiver import age, jsonio, layout
from archiver.archive import Given, Options, Source, archive
from archiver.audit import entries, reading
from archiver.cli import program
from archiver.model import Record
from archiver.model.audit import AuditEntry, AuditLine
from archiver.setup import Setup

RUN = "r"


@dataclass(frozen=True)
class Done:
    """What a command gave back."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return jsonio.loads(self.out)

    @property
    def rows(self) -> list[list[str]]:
        return [line.split("\t") for line in self.out.splitlines()]


def command(*words: str | Path) -> Done:
    """Run `archiver` with these words in this process."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = program.run("archiver", [str(word) for word in words])
    return Done(code, out.getvalue(), err.getvalue())


def save(setup: Setup, path: Path, run: str = RUN) -> Record:
    return archive(Source(paths=(path,)), setup, options=Options(given=Given(run_id=run))).record


def file(home: Path) -> Path:
    """The local file of this home."""
    return home / ".local" / "state" / "checkpoint-archiver" / "audit.jsonl"


def lines(home: Path) -> list[AuditLine]:
    """The lines of the local file, which holds."""
    found = list(reading.read(file(home)))
    assert {one.state for one in found} <= {"ok"}, found
    return [one.line for one in found if one.line is not None]


def actions(home: Path) -> list[str]:
    return [line.action for line in lines(home)]


def objects(setup: Setup, run: str = RUN) -> list[AuditEntry]:
    """The audit objects of a run, the oldest first; each is whole and signed by a trusted key."""
    found = list(entries.of(setup, run))
    assert all(one.entry is not None and one.signer for one in found), found
    return [one.entry for one in reversed(found) if one.entry is not None]


def path_of(setup: Setup, name: str) -> Path:
    return Path(setup.store.url.removeprefix("file://")) / name


def names(setup: Setup, prefix: str = layout.AUDIT) -> list[str]:
    return [info.name for info in setup.store.list(prefix)]


def keep(path: Path, identity: age.X25519Identity) -> Path:
    """The identity as a key file."""
    path.write_text(identity.secret_text() + "\n", encoding="utf-8")
    path.chmod(0o600)
    return path
