"""Sessions of Codex, also those that were put away; a sub-agent's is a run of its own, of the same task.

<path>/sessions/<year>/<month>/<day>/rollout-<time>-<session>.jsonl
<path>/archived_sessions/rollout-<time>-<session>.jsonl
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from archiver.sources import places, rollouts
from archiver.sources.found import FileStamp, Found, Unusable
from archiver.sources.listing import Entry, is_folder
from archiver.sources.place import Once, Place, given

_DEPTH: Final = 3
_PACKED: Final = (".jsonl.zst", ".jsonl.gz")


class Codex(Place):
    """A home folder of Codex, or its `sessions`."""

    def find(self) -> Iterator[Found | Unusable]:
        """Each session once."""
        if (missing := self.missing()) is not None:
            yield missing
            return
        problems: list[Unusable] = []
        once = Once()
        files = [(file, rollouts.head(file.path)) for file in self._files(problems) if once.first(file)]
        yield from given(problems)
        parents = {
            own: parent
            for _, head in files
            if (own := rollouts.own_id(head)) and (parent := rollouts.parent_id(head))
        }
        for file, head in files:
            own = rollouts.own_id(head)
            yield self.found(file.path, (file,), run_id=own, task=_root(own, parents))

    def _files(self, problems: list[Unusable]) -> Iterator[FileStamp]:
        """The rollouts, those first that are no links."""
        linked = []
        for entry in self._entries(problems):
            if not places.is_rollout(entry.name):
                continue
            file = self.stamp(entry, problems, follow=True)
            if file is None or not file.size:
                continue
            if entry.is_symlink():
                linked.append(file)
            else:
                yield file
        yield from linked

    def _entries(self, problems: list[Unusable]) -> Iterator[Entry]:
        pattern = self.pattern()
        for folder in self._folders(problems):
            for entry in self.entries(folder, problems):
                if not pattern.fits(entry.path):
                    continue
                if entry.name.endswith(_PACKED) and entry.name.startswith("rollout-"):
                    why = "it is compressed; unpack it to have it archived"
                    problems.append(Unusable(self.kind, entry.path, why, broken=False))
                yield entry

    def _folders(self, problems: list[Unusable]) -> Iterator[Path]:
        roots = [self.path / places.SESSIONS, self.path / places.ARCHIVED]
        waiting = [(root, 0) for root in roots if root.is_dir()] or [(self.path, 0)]
        while waiting:
            folder, depth = waiting.pop(0)
            yield folder
            if depth < _DEPTH:
                below = [entry for entry in self.entries(folder, problems) if entry.name.isdigit()]
                waiting += [(Path(one.path), depth + 1) for one in below if is_folder(one, follow=True)]


def _root(own: str | None, parents: Mapping[str, str]) -> str | None:
    """The session that all of it is for; None for one that is no sub-agent's."""
    seen = {own}
    root = own
    while root is not None and (above := parents.get(root)) is not None and above not in seen:
        seen.add(above)
        root = above
    return root if root != own else None
