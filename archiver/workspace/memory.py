"""What one process keeps of the saves of a workspace: files as they were read, and the lines of its tree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from archiver.workspace.cache import StatCache
from archiver.workspace.versions import TreeVersions


@dataclass(slots=True)
class WorkspaceMemory:
    """Used by one thread; holds no content and no secret.

    All of it was scanned by what `fingerprint` stands for, and searched for the values that `mark` names.
    What a save found out stays true whatever becomes of its bundle: what a base holds its table says.
    """

    files: StatCache = field(default_factory=StatCache)
    tree: TreeVersions = field(default_factory=TreeVersions)
    fingerprint: str = ""
    mark: frozenset[bytes] = frozenset()
    secret: set[str] = field(default_factory=set)
    """Paths of the tree whose names say that they hold credentials."""

    def begin(self, fingerprint: str) -> None:
        """A save that scans by this begins: what was scanned by anything else is forgotten."""
        if fingerprint != self.fingerprint:
            self.files.clear()
            self.tree.clear()
            self.secret.clear()
            self.fingerprint, self.mark = fingerprint, frozenset()

    def is_secret(self, path: str, judge: Callable[[str], bool]) -> bool:
        """What `judge` says of the name of a file; of the names of the tree it was asked before."""
        return path in self.secret if path in self.tree else judge(path)
