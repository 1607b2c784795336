"""Objects of git: commits, tags, trees and files, each scanned as it is before it is packed.

A bundle of git cannot be looked into once it is made, and cannot be changed without other object ids. So it
is carried only with a proof that all it holds was scanned and is clean.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from archiver.redact import credential_files
from archiver.redact.contents import Contents, Seen
from archiver.safetext import one_line

GitObject = tuple[str, str, int, bytes]
"""Id (hex), type, size and content of an object, as `git cat-file --batch` gives it."""

MOST_FINDINGS: Final = 20
MOST_OBJECTS: Final = 500_000
MOST_BYTES: Final = 4 << 30
_MOST_NAMES: Final = 200_000
"""Names of objects that are kept, to say where one lies."""
_DEEPEST: Final = 64
_TREE: Final = b"40000"
_MODULE: Final = b"160000"
"""Mode of a commit of another repository, which is no object of this one."""
_TYPES: Final = frozenset({"commit", "tag", "tree", "blob"})
_START: Final = 16 << 10


@dataclass(frozen=True, slots=True)
class ObjectFinding:
    """An object that must not leave: its id, its type, its path where that is known, and why."""

    oid: str
    type: str
    path: str | None
    reason: str
    rules: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a bundle of these objects is not carried; the first findings of all."""

    findings: tuple[ObjectFinding, ...]
    reason: str

    @property
    def rules(self) -> tuple[str, ...]:
        """The rules that found something."""
        return tuple(sorted({rule for finding in self.findings for rule in finding.rules}))


@dataclass(frozen=True, slots=True)
class ScannedObjects:
    """The proof that objects were scanned and are clean: `Redactor.git_objects` alone makes it."""

    objects: int
    known: int
    """Number of values that they were searched for."""


class ObjectScan:
    """Scans the objects of one bundle."""

    def __init__(self, contents: Contents, *, leave_out: bool) -> None:
        """`leave_out`: files of credentials are not carried, whatever is found in them."""
        self._contents = contents
        self._leave_out = leave_out
        self._above: dict[bytes, tuple[bytes, bytes]] = {}
        """Of an object: the tree that holds it and its name there."""
        self._blobs: set[bytes] = set()
        self._secret: dict[bytes, str] = {}
        self._findings: list[ObjectFinding] = []
        self._size = 0

    def all_of(self, objects: Iterable[GitObject], known: int) -> ScannedObjects | Refusal:
        """Scan them in any order; it ends after `MOST_FINDINGS` objects with a finding."""
        count = 0
        for count, (oid, kind, size, content) in enumerate(objects, 1):
            self._size += len(content)
            if count > MOST_OBJECTS or self._size > MOST_BYTES:
                return Refusal(tuple(self._findings), "there are more commits than are looked into")
            self._findings += self._one(oid, kind, size, content)
            if len(self._findings) >= MOST_FINDINGS:
                break
        if self._findings:
            found = self._findings[:MOST_FINDINGS]
            return Refusal(tuple(found), _said(found))
        return ScannedObjects(count, known)

    def _one(self, oid: str, kind: str, size: int, content: bytes) -> Iterator[ObjectFinding]:
        try:
            name = bytes.fromhex(oid)
        except ValueError:
            name = b""
        if kind not in _TYPES or size != len(content) or len(name) not in (20, 32):
            yield ObjectFinding(one_line(oid[:64]), one_line(kind[:20]), None, "it is damaged")
        elif kind == "tree":
            yield from self._tree(name, content)
        elif kind == "blob":
            yield from self._blob(name, content)
        else:
            yield from self._seen(name, kind, self._contents.see(content, f"git {kind} {oid[:12]}"))

    def _tree(self, name: bytes, content: bytes) -> Iterator[ObjectFinding]:
        try:
            entries = list(_entries(content, len(name)))
        except ValueError:
            yield ObjectFinding(name.hex(), "tree", None, "it is damaged")
            return
        for mode, called, oid in entries:
            if mode == _MODULE:
                continue
            if len(self._above) < _MOST_NAMES:
                self._above.setdefault(oid, (name, called))
            what = credential_files.by_name(called.decode("utf-8", "replace")) if mode != _TREE else None
            if self._leave_out and what is not None and what[0] == "always":
                if oid in self._blobs:
                    yield self._credentials(oid, what[1])
                self._secret[oid] = what[1]
        names = b"\n".join(called for _, called, _ in entries)
        yield from self._seen(name, "tree", self._contents.see(names, f"names in git tree {name.hex()[:12]}"))

    def _blob(self, name: bytes, content: bytes) -> Iterator[ObjectFinding]:
        self._blobs.add(name)
        what = self._secret.get(name)
        if what is None and self._leave_out:
            what = credential_files.by_content(content[:_START])
        if what is not None:
            yield self._credentials(name, what)
            return
        place = self._path(name) or f"git blob {name.hex()[:12]}"
        yield from self._seen(name, "blob", self._contents.see(content, place))

    def _credentials(self, name: bytes, what: str) -> ObjectFinding:
        return ObjectFinding(name.hex(), "blob", self._path(name), credential_files.reason(what))

    def _seen(self, name: bytes, kind: str, seen: Seen) -> Iterator[ObjectFinding]:
        if seen.data is None or seen.rules:
            reason = seen.reason or "it holds credentials"
            yield ObjectFinding(name.hex(), kind, self._path(name), reason, seen.rules)

    def _path(self, name: bytes) -> str | None:
        """The path of an object in a tree that was seen before it; of many, one."""
        parts: list[bytes] = []
        while name in self._above and len(parts) < _DEEPEST:
            name, called = self._above[name]
            parts.append(called)
        return one_line(b"/".join(reversed(parts)).decode("utf-8", "replace")) if parts else None


def _entries(tree: bytes, size: int) -> Iterator[tuple[bytes, bytes, bytes]]:
    """Mode, name and id of each entry; `ValueError` for what is no tree."""
    at = 0
    while at < len(tree):
        space = tree.index(b" ", at)
        end = tree.index(b"\0", space)
        oid = tree[end + 1 : end + 1 + size]
        if len(oid) != size:
            raise ValueError("a tree ends inside an entry")
        yield tree[at:space], tree[space + 1 : end], oid
        at = end + 1 + size


def _said(findings: list[ObjectFinding]) -> str:
    first = findings[0]
    where = first.path or f"{first.type} {first.oid[:12]}"
    more = f", and {len(findings) - 1} more objects" if len(findings) > 1 else ""
    return f"commits that no remote has hold what must not leave: {where}{more}"
