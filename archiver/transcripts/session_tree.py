"""The tree of a session's lines: links that lead nowhere or in a circle, and branches that were given up."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator

from archiver.transcripts.dialect import Facts


class Tree:
    """The lines' ids, parents and messages as hashes; 0 stands for none."""

    def __init__(self) -> None:
        self._own = array("q")
        self._parent = array("q")
        self._message = array("q")
        self._known: dict[int, int] = {}
        """Ids, each with what its line says where that is one of the conversation."""
        self._forward: list[tuple[int, str]] = []
        """Lines whose parent does not stand before them: only through such a link can a circle close."""
        self._leaf = -1

    def __len__(self) -> int:
        return len(self._own)

    def add(self, own: str | None, parent: str | None, facts: Facts) -> bool:
        """Take in the next line; true when another one of the conversation has its id and says otherwise."""
        if parent and hash(parent) not in self._known:
            self._forward.append((len(self._own), parent))
        if facts.branch is None and facts.role in ("user", "assistant"):
            self._leaf = len(self._own)
        self._own.append(hash(own) if own else 0)
        self._parent.append(hash(parent) if parent else 0)
        self._message.append(hash(facts.message) if facts.message else 0)
        if not own:
            return False
        said = 0
        if facts.role in ("user", "assistant"):
            said = hash((facts.role, _ids(facts), facts.text, facts.instruction))
        before = self._known.get(hash(own), 0)
        self._known[hash(own)] = before or said
        return before != 0 and said not in (before, 0)

    def has(self, own: str) -> bool:
        return hash(own) in self._known

    def cycles(self) -> Iterator[tuple[int, str]]:
        """One line of each circle of links, the first in the file, and the parent it names."""
        if not any(self.has(parent) for _, parent in self._forward):
            return
        places = _places(self._own)
        seen = bytearray(len(self._own))
        parents = dict(self._forward)
        for start, _ in self._forward:
            path: list[int] = []
            index: int | None = start
            while index is not None and not seen[index]:
                seen[index] = 1
                path.append(index)
                index = places.get(self._parent[index])
            if index in path:
                first = min(path[path.index(index) :])
                yield first, parents[first]

    def given_up(self) -> _GivenUp:
        return _GivenUp(self._own, self._parent, self._message, self._leaf)


class _GivenUp:
    """Tells lines on branches that were given up: they hang off the chain of the last message."""

    def __init__(self, own: array[int], parent: array[int], message: array[int], leaf: int) -> None:
        self._parent = parent
        self._message = message
        self._places = _places(own)
        self._chain = set(self._up(leaf))
        self._messages = {message[index] for index in self._chain} - {0}

    def __call__(self, index: int) -> bool:
        if index in self._chain or self._message[index] in self._messages:
            return False
        return any(above in self._chain for above in self._up(index))

    def _up(self, index: int | None) -> list[int]:
        """A line and those above it, up to a root or a link that leads nowhere."""
        above: list[int] = []
        seen: set[int] = set()
        while index is not None and index >= 0 and index not in seen:
            seen.add(index)
            above.append(index)
            index = self._places.get(self._parent[index])
        return above


def _places(own: array[int]) -> dict[int, int]:
    """The line of each id; an id that two lines have says nothing."""
    times = Counter(own)
    return {name: index for index, name in enumerate(own) if name and times[name] == 1}


def _ids(facts: Facts) -> tuple[str, ...]:
    """Calls and results: what a result holds may have become a stub in one of two equal lines."""
    return (*(call.id for call in facts.calls), *(result.call_id for result in facts.results))
