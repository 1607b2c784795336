"""Single files of a checkpoint: verified and written into a new folder; the run is left as it is.

transcript/0007.jsonl      a member of the bundle, as it lies there
workspace/src/app.py       a file of the workspace that was saved, by its path in the tree
bundle:workspace/tree      members below `workspace/`, where a file of the workspace has that name too
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Final

from archiver import audit, bundles, choosing, members, saved, target
from archiver.errors import InputNotFoundError, UsageError
from archiver.model.record import Record
from archiver.model.workspace import TreeEntry, WorkspaceDocument
from archiver.progress import Progress, Silent
from archiver.workspace_out import document_in, tree_of
from archiver.workspace_part import FOLDER, MAX_NEAR, PickedFiles, absent, fits, of_tree, pick, tree_members

if TYPE_CHECKING:
    from archiver.model.manifest import Manifest, ManifestMember
    from archiver.setup import Setup

MEMBER: Final = "bundle:"
"""Before the path of a member that could also be a file of the workspace."""


@dataclass(frozen=True, slots=True)
class Extracted:
    """What was written, and of which checkpoint: members, and entries of its workspace."""

    record: Record
    folder: Path
    files: tuple[ManifestMember, ...]
    opened_by: str
    break_glass: bool
    warnings: tuple[str, ...]
    workspace: tuple[TreeEntry, ...] = ()

    @property
    def count(self) -> int:
        """How many files and links were written."""
        return len(self.files) + sum(one.type != "folder" for one in self.workspace)

    @property
    def size(self) -> int:
        """Their bytes."""
        return sum(one.size for one in self.files) + sum(one.size for one in self.workspace)

    def document(self) -> dict[str, object]:
        """The same as JSON."""
        files = [{"path": one.path, "size": one.size, "sha256": one.sha256} for one in self.files]
        return {
            "run": self.record.run,
            "seq": self.record.seq,
            "folder": str(self.folder),
            "files": [*files, *map(_described, self.workspace)],
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
    """Write what `only` names into the new folder `into`, which appears whole or not at all.

    Each of `only` is the path of a member or, behind `workspace/`, of a file of the workspace; a folder, or a
    pattern. Only what they need is fetched. Whether the world still matches is not asked: nothing goes on
    from a part. Raises `InputNotFoundError` for what the checkpoint does not have, `UsageError` for members
    below `workspace/` together with files of it, what `choosing.find` and `write_tree` raise, and what is
    wrong with a bundle.
    """
    target.check(into, store=setup.store.url)
    now, progress = now or datetime.now(UTC), progress or Silent()
    found = choosing.find(run, setup, at=at, previous=previous, accept=accept, now=now)
    record, known = found.record, found.chain.records
    saved.demand_supported(record)
    with choosing.advising(record, setup), target.beside(into) as scratch:
        bundles.check_present(record, setup, known)
        out = scratch.path / "only"
        wanted = _Wanted(only, record, scratch.path / "bundle", setup.settings.workspace.entries)
        then = (wanted.rest, wanted.explained) if wanted.has_tree else ()
        fetched = bundles.unpack(
            record, setup, wanted.unpacked, progress, known, choose=wanted.first, then=then
        )
        wanted.write(out)
        loud = fetched.break_glass
        said = audit.note(
            setup,
            "restore",
            run=run,
            seq=record.seq,
            opened_by=fetched.opened_by,
            break_glass=loud,
            detail={"into": str(into), "only": len(wanted.files) + len(wanted.entries)},
        )
        target.appear(out, into, scratch)
    warnings = (*found.chain.warnings, *wanted.notes, *said)
    return Extracted(
        record, into, tuple(wanted.files), fetched.opened_by, loud, warnings, tuple(wanted.entries)
    )


class _Wanted:
    """What is wanted of one bundle: known of members from its table, of the workspace from the tree."""

    def __init__(self, only: Sequence[str], record: Record, unpacked: Path, entries: int) -> None:
        self.unpacked = unpacked
        self.files: list[ManifestMember] = []
        self.notes: list[str] = []
        self._record, self._limit = record, entries
        self._members = [one.removeprefix(MEMBER) for one in only if not of_tree(one)]
        self._of_tree = [one for one in only if of_tree(one)]
        self._picked: PickedFiles | None = None
        self._missing: list[str] = []

    @property
    def has_tree(self) -> bool:
        """Whether anything may be meant of the workspace."""
        return bool(self._of_tree)

    @property
    def entries(self) -> Sequence[TreeEntry]:
        """What is wanted of the workspace."""
        return self._picked.entries if self._picked is not None else ()

    def first(self, manifest: Manifest) -> Collection[str]:
        """The members that are wanted, and those that the tree is read from."""
        self.files = picked(manifest, self._members, self._record)
        needed = tree_members(manifest, self._record) if self._of_tree else ()
        return {member.path for member in self.files}.union(needed)

    def rest(self, manifest: Manifest) -> Collection[str]:
        """What was named of the workspace: contents, and members that have such a name.

        Where a name means neither, the receipt is all that is wanted: it may say why.
        """
        document = document_in(self.unpacked)
        assert document is not None  # noqa: S101 - it was among the first
        found = pick(document, self._tree(document), self._of_tree)
        others = [
            wanted for wanted in found.of_members if any(fits(one.path, wanted) for one in manifest.members)
        ]
        self._missing = [wanted for wanted in found.missing if wanted not in others]
        if self._missing:
            return {members.RECEIPT}
        self._say_both(manifest, found.missing)
        known = {member.path for member in self.files}
        more = [one for one in picked(manifest, others, self._record) if one.path not in known]
        self.files += more
        self._picked = found if found.entries else None
        self._demand_apart()
        return found.objects.union(member.path for member in more)

    def explained(self, _manifest: Manifest) -> Collection[str]:
        """Nothing more; `InputNotFoundError` for a name that nothing has."""
        if self._missing:
            document, receipt = document_in(self.unpacked), members.receipt_in(self.unpacked)
            assert document is not None  # noqa: S101 - it was among the first
            raise absent(self._missing[0], document, self._tree(document), receipt)
        return ()

    def _tree(self, document: WorkspaceDocument) -> Callable[[], Iterator[TreeEntry]]:
        return lambda: tree_of(document, self.unpacked, self._limit)

    def write(self, out: Path) -> None:
        """Lay it all into the new folder `out`: members under their own paths, files under `workspace/`."""
        out.mkdir(mode=0o700)
        if self._picked is not None:
            self._picked.write(self.unpacked, out / FOLDER)
            self.notes += self._picked.notes
        for member in self.files:
            place = out / member.path
            place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            (self.unpacked / member.path).rename(place)

    def _say_both(self, manifest: Manifest, others: Collection[str]) -> None:
        for wanted in self._of_tree:
            both = wanted.strip("/*") != FOLDER and wanted not in others
            if both and any(fits(member.path, wanted) for member in manifest.members):
                self.notes.append(
                    f"{wanted!r:.200} is taken as a file of the workspace; "
                    f"`--only '{MEMBER}…'` takes the members of that name"
                )

    def _demand_apart(self) -> None:
        if self._picked is not None and any(member.path.startswith(f"{FOLDER}/") for member in self.files):
            raise UsageError(
                "members below workspace/ and files of the workspace do not go into one folder",
                remedy="ask for them in two calls, each with its own --into",
            )


def _described(entry: TreeEntry) -> dict[str, object]:
    about: dict[str, object] = {"path": f"{FOLDER}/{entry.path}", "size": entry.size, "sha256": entry.sha256}
    about |= {"type": entry.type, "mode": entry.mode}
    if entry.target is not None:
        about["target"] = entry.target
    if entry.redacted:
        about["redacted"] = True
    return about


def picked(manifest: Manifest, only: Sequence[str], record: Record) -> list[ManifestMember]:
    """The members that any of `only` names, in the order of the table; each must name at least one."""
    found: dict[str, ManifestMember] = {}
    for wanted in only:
        fitting = [member for member in manifest.members if fits(member.path, wanted)]
        if not fitting:
            raise InputNotFoundError(
                f"checkpoint {record.seq} of run {record.run} holds no {wanted!r:.200}",
                remedy=_near(manifest, wanted),
            )
        found |= {member.path: member for member in fitting}
    return [member for member in manifest.members if member.path in found]


def _near(manifest: Manifest, wanted: str) -> str:
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
