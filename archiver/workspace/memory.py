"""What one process keeps of the saves of a workspace: files as they were read, and the lines of its tree."""

from __future__ import annotations

from collections.abc import Callable, Iterable
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
    judged: dict[str, bool] = field(default_factory=dict)
    """For each file of the last capture whether its name says that it holds credentials."""

    def begin(self, fingerprint: str) -> None:
        """A save that scans by this begins: what was scanned by anything else is forgotten."""
        self.files.begin()
        if fingerprint != self.fingerprint:
            self.files.clear()
            self.tree.clear()
            self.fingerprint, self.mark = fingerprint, frozenset()

    def secret(self, paths: Iterable[str], judge: Callable[[str], bool]) -> set[str]:
        """Those of all files of a capture of which `judge` says yes; it is asked for each name once."""
        before = self.judged
        self.judged = {path: judge(path) if (known := before.get(path)) is None else known for path in paths}
        return {path for path, is_secret in self.judged.items() if is_secret}
