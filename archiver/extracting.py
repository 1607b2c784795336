"""Single files of a checkpoint: verified and written into a new folder; the run is left as it is."""

from __future__ import annotations

import fnmatch
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from archiver import audit, bundles, choosing, saved, target
from archiver.errors import InputNotFoundError
from archiver.model.record import Record
from archiver.model.workspace import WORKSPACE
from archiver.progress import Progress, Silent

if TYPE_CHECKING:
    from archiver.model.manifest import Manifest, ManifestMember
    from archiver.setup import Setup

MAX_NEAR = 3
"""Names like the one that is not there, in an error."""
_GLOB = frozenset("*?[")


@dataclass(frozen=True, slots=True)
class Extracted:
    """What was written, and of which checkpoint."""

    record: Record
    folder: Path
    files: tuple[ManifestMember, ...]
    opened_by: str
    break_glass: bool
    warnings: tuple[str, ...]

    def document(self) -> dict[str, object]:
        """The same as JSON."""
        return {
            "run": self.record.run,
            "seq": self.record.seq,
            "folder": str(self.folder),
            "files": [{"path": one.path, "size": one.size, "sha256": one.sha256} for one in self.files],
            "opened_by": self.opened_by,
            "break_glass": self.break_glass,
            "warnings": list(self.warnings),
        }


def extract(
    run: str,
    setup: Setup,
    only: Sequence[str],
    *,
    into: Path,
    at: int | None = None,
    previous: bool = False,
    accept: Collection[str] = (),
    progress: Progress | None = None,
    now: datetime | None = None,
) -> Extracted:
    """Write the members that `only` names into the new folder `into`, which appears whole or not at all.

    Each of `only` is the path of a member, of a folder, or a pattern. Only what they need is fetched. Whether
    the world still matches is not asked: nothing goes on from a part. Raises `InputNotFoundError` for what
    the checkpoint does not have, what `choosing.find` raises, and what is wrong with a bundle.
    """
    target.check(into, store=setup.store.url)
    now, progress = now or datetime.now(UTC), progress or Silent()
    found = choosing.find(run, setup, at=at, previous=previous, accept=accept, now=now)
    record, known = found.record, found.chain.records
    saved.demand_supported(record)
    files: list[ManifestMember] = []

    def choose(manifest: Manifest) -> Collection[str]:
        files.extend(picked(manifest, only, record))
        return {member.path for member in files}

    with choosing.advising(record, setup), target.beside(into) as scratch:
        bundles.check_present(record, setup, known)
        out = scratch.path / "only"
        fetched = bundles.unpack(record, setup, out, progress, known, choose=choose)
        loud = fetched.break_glass
        said = audit.note(
            setup,
            "restore",
            run=run,
            seq=record.seq,
            opened_by=fetched.opened_by,
            break_glass=loud,
            detail={"into": str(into), "only": len(files)},
        )
        target.appear(out, into, scratch)
    warnings = (*found.chain.warnings, *said)
    return Extracted(record, into, tuple(files), fetched.opened_by, loud, warnings)


def picked(manifest: Manifest, only: Sequence[str], record: Record) -> list[ManifestMember]:
    """The members that any of `only` names, in the order of the table; each must name at least one."""
    found: dict[str, ManifestMember] = {}
    for wanted in only:
        fitting = [member for member in manifest.members if _fits(member.path, wanted)]
        if not fitting:
            raise InputNotFoundError(
                f"checkpoint {record.seq} of run {record.run} holds no {wanted!r:.200}",
                remedy=_near(manifest, wanted),
            )
        found |= {member.path: member for member in fitting}
    return [member for member in manifest.members if member.path in found]


def _fits(path: str, wanted: str) -> bool:
    folder = wanted.rstrip("/")
    if path == wanted or (folder and path.startswith(f"{folder}/")):
        return True
    return not _GLOB.isdisjoint(wanted) and fnmatch.fnmatchcase(path, wanted)


def _near(manifest: Manifest, wanted: str) -> str:
    if wanted.startswith(f"{target.WORKSPACE}/") and any(one.path == WORKSPACE for one in manifest.members):
        return (
            "files of a workspace lie in a bundle by their digests, not by their names: restore the run "
            f"without --only, and take them out of its folder {target.WORKSPACE}"
        )
    names = dict.fromkeys(
        name for member in manifest.members for name in (member.path, *_folders(member.path))
    )
    near = get_close_matches(wanted.rstrip("/"), names, n=MAX_NEAR)
    if not near:
        near = list(dict.fromkeys(member.path.partition("/")[0] for member in manifest.members))[:MAX_NEAR]
        return f"it begins with {', '.join(near)}; --only takes a path, a folder, or a pattern in quotes"
    return f"near it: {', '.join(near)}"


def _folders(path: str) -> list[str]:
    parts = path.split("/")[:-1]
    return ["/".join(parts[: count + 1]) for count in range(len(parts))]
