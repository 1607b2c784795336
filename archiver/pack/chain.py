"""The whole table of an incremental bundle, put together from the manifests of its chain; pure.

table(full bundle)  = its members
table(bundle)       = table(its base), without what it dropped, and with its own members in their places
dictionary(bundle)  = the end of the texts in table(its base)
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from archiver.errors import ArchiveFormatError, DigestMismatchError, LimitExceededError
from archiver.model.limits import MAX_CHAIN, Limits
from archiver.model.manifest import MOST_DICTIONARY, Manifest, ManifestMember
from archiver.pack.dictionary import is_text, lent
from archiver.pack.reader import check_table

_REMEDY = "restore an older checkpoint, or the bundles from a copy of the store"


Place = tuple[int, str]
"""A member by the place of its bundle in the chain, and its path."""


@dataclass(frozen=True, slots=True)
class Whole:
    """A bundle with all of its members, wherever they lie."""

    manifest: Manifest
    """The table as that of one full bundle."""
    taken: tuple[frozenset[str], ...]
    """For each bundle of the chain the paths of the members that are taken from it."""
    lent: tuple[tuple[Place, ...], ...]
    """For each bundle where its dictionary lies, in order; empty for one that has none."""

    def needs(self, read: Collection[int]) -> tuple[frozenset[str], ...]:
        """For each bundle the texts in it without which those that are `read`, by number, cannot be."""
        found: list[set[str]] = [set() for _ in self.lent]
        for number in range(len(self.lent) - 1, -1, -1):
            if found[number] or number in read:
                for place, path in self.lent[number]:
                    found[place].add(path)
        return tuple(map(frozenset, found))


def whole(chain: Sequence[tuple[str, Manifest]], limits: Limits) -> Whole:
    """Put the tables of a chain together, each given with the name of its bundle, the full one first.

    Raises `ArchiveFormatError` or `DigestMismatchError` where they do not belong together, and
    `LimitExceededError`, before more is held than the limits allow.
    """
    table, places = _folded(chain, limits, range(len(chain)))
    name, last = chain[-1]
    try:
        fields = last.model_dump(exclude={"members", "dropped", "dictionary"})
        fields |= {"format": 1, "base": None, "members": tuple(member for member, _ in table.values())}
        merged = Manifest.model_validate(fields)
    except ValidationError as error:
        said = error.errors(include_url=False, include_input=False)[0]["msg"]
        raise _other(f"the members of {name} and of its bases are no table: {said}") from error
    check_table(merged, limits)
    return Whole(merged, _taken(table, len(chain)), places)


def _folded(
    chain: Sequence[tuple[str, Manifest]], limits: Limits, asked: range
) -> tuple[dict[str, tuple[ManifestMember, int]], tuple[tuple[Place, ...], ...]]:
    """Each member by its path, with the place of the bundle that it lies in.

    And where the dictionaries lie of those bundles that are `asked` about.
    """
    if len(chain) > MAX_CHAIN:
        raise LimitExceededError(
            f"{chain[-1][0]} ends a chain of {len(chain)} bundles, the limit is {MAX_CHAIN}", remedy=_REMEDY
        )
    table: dict[str, tuple[ManifestMember, int]] = {}
    texts: dict[str, tuple[int, Place]] = {}
    places: list[tuple[Place, ...]] = []
    before: tuple[str, Manifest] | None = None
    for number, (name, manifest) in enumerate(chain):
        _demand_base(name, manifest, before)
        if number in asked:
            places.append(_lent(name, manifest, texts))
        for path in manifest.dropped:
            if table.pop(path, None) is None:
                raise _other(f"{name} drops {path!r:.200}, which its base does not have")
            texts.pop(path, None)
        for member in manifest.members:
            table[member.path] = (member, number)
            if is_text(member.path):
                texts[member.path] = (member.size, (number, member.path))
        limits.check_members(len(table))
        before = (name, manifest)
    return table, tuple(places)


def _lent(name: str, manifest: Manifest, texts: dict[str, tuple[int, Place]]) -> tuple[Place, ...]:
    if manifest.dictionary is None:
        return ()
    if manifest.dictionary != (size := min(MOST_DICTIONARY, sum(size for size, _ in texts.values()))):
        raise _other(f"{name} has a dictionary of {manifest.dictionary} bytes, and its base a text of {size}")
    return tuple(lent(texts, manifest.dictionary))


def _taken(table: dict[str, tuple[ManifestMember, int]], count: int) -> tuple[frozenset[str], ...]:
    found: list[set[str]] = [set() for _ in range(count)]
    for path, (_, number) in table.items():
        found[number].add(path)
    return tuple(map(frozenset, found))


def _demand_base(name: str, manifest: Manifest, before: tuple[str, Manifest] | None) -> None:
    base = manifest.base
    if before is None:
        if base is not None:
            raise _other(f"{name} begins a chain, and is based on {base.bundle}")
        return
    if base is None or base.bundle != before[0]:
        raise _other(f"{name} is not based on {before[0]}, as its record says")
    if base.sha256 != before[1].sha256:
        raise DigestMismatchError(f"{name} is based on another table than {before[0]} holds", remedy=_REMEDY)
    if manifest.run != before[1].run or manifest.seq <= before[1].seq:
        raise _other(f"{name} is based on {before[0]}, which is no earlier bundle of its run")


def _other(what: str) -> ArchiveFormatError:
    return ArchiveFormatError(what, remedy=_REMEDY)


def demand_chain(chain: Sequence[tuple[str, Manifest]], limits: Limits) -> tuple[Place, ...]:
    """Raise what `whole` raises for tables that do not belong together; the whole one is not made.

    All but the last were demanded before. Gives where the dictionary of the last lies.
    """
    return _folded(chain, limits, range(len(chain) - 1, len(chain)))[1][-1]
