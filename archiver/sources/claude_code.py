"""Sessions of Claude Code, each with the files of its sub-agents.

<path>/<slug>/<session>.jsonl                        a session; its name is the run's id where it is one
<path>/<slug>/<session>/subagents/agent-<id>.jsonl   its sub-agents
<path>/<slug>/agent-<id>.jsonl                       its sub-agents before version 2.1.33; the id is inside

A sub-agent is no run of its own, unless its session is gone: then it is, so that nothing is lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from archiver.sources import places
from archiver.sources.agents import alone, ids_in, session_of
from archiver.sources.found import FileStamp, Found, Unusable
from archiver.sources.listing import Entry, Pattern, is_folder
from archiver.sources.place import Once, Place, given
from archiver.sources.session import named_id

_SUBAGENTS: Final = "subagents"
_LINES: Final = ".jsonl"


class ClaudeCode(Place):
    """A configuration folder of Claude Code, or its `projects`."""

    def find(self) -> Iterator[Found | Unusable]:
        """Each session once, with its sub-agents; a link to one counts where the session itself is not."""
        if (missing := self.missing()) is not None:
            yield missing
            return
        projects = self.path / places.PROJECTS
        root = projects if projects.is_dir() else self.path
        problems: list[Unusable] = []
        pattern, once = Pattern(root, self.match), Once()
        linked: list[tuple[Found, FileStamp]] = []
        slugs = [entry for entry in self.entries(root, problems) if is_folder(entry, follow=True)]
        for slug in sorted(slugs, key=lambda entry: entry.is_symlink()):
            for run, is_link in self._project(Path(slug.path), pattern, problems):
                if is_link or slug.is_symlink():
                    linked.append((run, run.files[0]))
                elif once.first(run.files[0]):
                    yield run
            yield from given(problems)
        yield from (run for run, main in linked if once.first(main))
        yield from given(problems)

    def _project(
        self, folder: Path, pattern: Pattern, problems: list[Unusable]
    ) -> Iterator[tuple[Found, bool]]:
        """The runs of one folder, and whether a link leads to each."""
        project = _Project(self, folder, problems)
        for own, (entry, main) in project.sessions.items():
            if pattern.fits(entry.path):
                files = (main, *project.agents.get(own, ()))
                yield self.found(main.path, files, run_id=named_id(main.path)), entry.is_symlink()
        for session, agent in project.orphans:
            if agent.size > 0 and pattern.fits(agent.path):
                yield self.found(agent.path, (agent,), **alone(session, agent.path)), False


@dataclass(slots=True)
class _Project:
    """What lies in the folder of a project: sessions by name, and whose the sub-agents are."""

    place: Place
    folder: Path
    problems: list[Unusable]
    sessions: dict[str, tuple[Entry, FileStamp]] = field(default_factory=dict)
    """By name without its ending; one that is empty is none."""
    agents: dict[str, list[FileStamp]] = field(default_factory=dict)
    """By the name of the session."""
    orphans: list[tuple[str | None, FileStamp]] = field(default_factory=list)
    _named: dict[str, list[str]] | None = None

    def __post_init__(self) -> None:
        found = self.place.entries(self.folder, self.problems)
        for entry in found:
            main = (
                self.place.stamp(entry, self.problems, follow=True) if places.is_session(entry.name) else None
            )
            if main is not None and main.size > 0:
                self.sessions[entry.name.removesuffix(_LINES)] = entry, main
        for entry in found:
            if places.is_agent(entry.name):
                self._old(entry)
            elif not entry.name.endswith(_LINES) and is_folder(entry, follow=False):
                self._new(entry)

    def _new(self, folder: Entry) -> None:
        """Sub-agents in the folder of their session."""
        below = Path(folder.path, _SUBAGENTS)
        listed = [] if below.is_symlink() else self.place.entries(below, self.problems)
        for entry in listed:
            if places.is_agent(entry.name):
                self._add(folder.name, self.place.stamp(entry, self.problems, follow=False))

    def _old(self, entry: Entry) -> None:
        """A sub-agent beside its session."""
        file = self.place.stamp(entry, self.problems, follow=False)
        if file is not None:
            self._add(session_of(file.path), file)

    def _add(self, session: str | None, file: FileStamp | None) -> None:
        if file is None:
            return
        owners = [session] if session in self.sessions else self._owners(session)
        for owner in owners:
            self.agents.setdefault(owner, []).append(file)
        if not owners:
            self.orphans.append((session, file))

    def _owners(self, session: str | None) -> list[str]:
        """Sessions that bear another name than the id inside: looked into only where somebody asks."""
        if self._named is None:
            self._named = {}
            for name, (entry, _) in self.sessions.items():
                for one in ids_in(Path(entry.path)):
                    self._named.setdefault(one, []).append(name)
        return self._named.get(session or "", [])
