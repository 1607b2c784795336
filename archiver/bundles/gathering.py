"""One bundle of which not everything lies in one place, or is wanted."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

from archiver import audit, pack
from archiver.bundles import presence
from archiver.bundles.alone import Chained, Fetched, alone, note
from archiver.bundles.part import Part
from archiver.bundles.texts import Texts
from archiver.errors import DamagedError, ObjectNotFoundError
from archiver.model.manifest import Manifest
from archiver.model.record import Record
from archiver.parallel import in_order
from archiver.progress import Progress
from archiver.store import Remote

if TYPE_CHECKING:
    from archiver.setup import Setup

FOLDER_WORKERS = 2
"""Bases that are read at the same time from a folder."""
MOST_WORKERS = 8
"""The same from any store: each has a frame in memory, and its copy on disk."""

T = TypeVar("T")
Choose = Callable[["Manifest"], Collection[str]]
"""Which members of a table are wanted, by path."""
_Wanted = tuple[frozenset[str], ...]
"""For each bundle of a chain the paths that are taken from it."""


@dataclass(frozen=True, slots=True)
class _Work:
    """What is taken of one bundle: members that are wanted, and texts that others cannot be read without."""

    number: int
    part: Part
    wanted: frozenset[str]
    needed: frozenset[str]

    @property
    def is_any(self) -> bool:
        """Whether it has to be read."""
        return bool(self.wanted or self.needed)


class Gathering:
    """The bundle with its bases: what is wanted of each of them, and what is needed to read that."""

    def __init__(
        self, record: Record, bases: tuple[Record, ...], setup: Setup, into: Path, progress: Progress
    ) -> None:
        self._record, self._bases = record, bases
        self._setup, self._into, self._progress = setup, into, progress
        store = setup.store
        self._workers = min(store.parallel, MOST_WORKERS) if isinstance(store, Remote) else FOLDER_WORKERS
        self._parts: list[Part] = []
        self._whole: pack.Whole | None = None
        self._texts = Texts(into.parent)

    def __enter__(self) -> Gathering:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for part in self._parts:
            part.close()
        self._texts.__exit__(kind, error, trace)

    def all(self) -> Fetched:
        """Everything: the bundle itself is compared as a whole, of its bases what its table takes."""
        own = alone(self._record, self._setup, self._into, self._progress, Chained(self._lend))
        whole = self._whole
        if whole is None:  # it has no dictionary, so nobody has asked for its bases
            whole = self._read_bases(own.manifest, own.opened_by)
        return Fetched(whole.manifest, own.opened_by, own.break_glass)

    def chosen(self, choose: Choose, then: Sequence[Choose]) -> Fetched:
        """What `choose` picks, and then what each of `then` picks."""
        self._open((*self._bases, self._record))
        named = [(part.bundle.name, part.manifest) for part in self._parts]
        whole = pack.whole(named, self._setup.settings.limits)
        self._note(set())
        had: frozenset[str] = frozenset()
        for one in (choose, *then):
            picked = frozenset(one(whole.manifest)) - had
            wanted = tuple(paths & picked for paths in whole.taken)
            self._unpack(whole, wanted, {number for number, paths in enumerate(wanted) if paths})
            had |= picked
        by = self._parts[-1].opened_by
        return Fetched(whole.manifest, by, audit.is_break_glass(self._setup, by))

    def _lend(self, manifest: Manifest, opened_by: str) -> bytes:
        """The dictionary of the bundle itself, for which all that it takes of its bases is unpacked first."""
        whole = self._read_bases(manifest, opened_by)
        return self._dictionary(whole, len(self._bases), manifest)

    def _read_bases(self, manifest: Manifest, opened_by: str) -> pack.Whole:
        self._open(self._bases)
        named = [(part.bundle.name, part.manifest) for part in self._parts]
        named.append((presence.bundle_of(self._record).name, manifest))
        whole = self._whole = pack.whole(named, self._setup.settings.limits)
        self._note({opened_by})
        # the bundle itself is read whatever it holds
        read = {number for number, paths in enumerate(whole.taken) if paths} | {len(self._bases)}
        self._unpack(whole, whole.taken, read)
        return whole

    def _open(self, records: Sequence[Record]) -> None:
        with closing(in_order(self._part, records, workers=self._workers)) as found:
            self._parts.extend(found)

    def _part(self, record: Record) -> Part:
        return self._translated(record, lambda: Part(record, self._setup, self._into))

    def _note(self, told: set[str]) -> None:
        """Write down which identities open it, but for those that are `told` already."""
        for part in reversed(self._parts):
            if part.opened_by not in told:
                told.add(part.opened_by)
                note(self._setup, part.record, part.opened_by)

    def _unpack(self, whole: pack.Whole, wanted: _Wanted, read: Collection[int]) -> None:
        """Take what is wanted out of each, and what those that are `read` need; behind a text in order."""
        work = [
            _Work(number, part, paths, frozenset(path for path in texts if (number, path) not in self._texts))
            for number, (part, paths, texts) in enumerate(
                zip(self._parts, wanted, whole.needs(read), strict=False)
            )
        ]
        self._progress.stage("fetch", sum(one.part.size(one.wanted) for one in work))
        plain = [one for one in work if one.is_any and one.part.manifest.dictionary is None]
        with closing(in_order(self._take, plain, workers=self._workers)) as taken:
            for size in taken:
                self._progress.advance(size)
        for one in work:
            if one.is_any and one.part.manifest.dictionary is not None:
                before = self._dictionary(whole, one.number, one.part.manifest)
                self._progress.advance(self._take(one, before))

    def _take(self, work: _Work, before: bytes = b"") -> int:
        """`before`: its dictionary. Gives the bytes of what is wanted."""
        part, ends = work.part, self._texts.of(work.number, work.needed.__contains__)
        self._translated(part.record, lambda: part.unpack(work.wanted, self._into, lambda _: before, ends))
        return part.size(work.wanted)

    def _dictionary(self, whole: pack.Whole, number: int, manifest: Manifest) -> bytes:
        return self._texts.dictionary(whole.lent[number], manifest.dictionary or 0)

    def _translated(self, record: Record, work: Callable[[], T]) -> T:
        """What goes wrong with a base is said to be of the checkpoint that needs it."""
        try:
            return work()
        except ObjectNotFoundError as error:
            raise presence.needed(presence.gone(record, self._setup), record, self._record) from error
        except DamagedError as error:
            raise presence.needed(error, record, self._record) from error.__cause__
