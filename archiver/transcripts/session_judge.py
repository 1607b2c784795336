"""What is wrong with a Claude Code session: pairing, texts, and the tree of parent links.

Side conversations are judged for themselves. What lies before a compaction marker is history: a call that
stayed open there is no problem. Nor is an open call on a branch of the tree that was given up when a person
went back to an earlier message: the model never sees it.
"""

from __future__ import annotations

from array import array
from collections import Counter
from typing import Any

from archiver.transcripts.checks import text_problems
from archiver.transcripts.conversations import Conversations
from archiver.transcripts.dialect import Facts, Problem
from archiver.transcripts.pairing import Pairing


class SessionJudge:
    """Takes in the lines of one file in order; memory grows by some 150 bytes a line."""

    def __init__(self) -> None:
        self._pairings: dict[str | None, Pairing] = {}
        self._found: list[Problem] = []
        self._tree = _Tree()
        self._conversations = Conversations()
        self._unseen: list[tuple[int, str, str]] = []
        self._started = False

    def see(self, item: Any, facts: Facts, own: str | None, parent: str | None) -> None:
        """Take in the next line with its own id and its parent's."""
        index = len(self._tree)
        main = facts.branch is None
        self._tree.add(own, parent, facts)
        if main:
            self._links(index, item, parent)
        pairing = self._pairings.setdefault(self._conversations.of(facts, own, parent), Pairing())
        if facts.boundary:
            pairing.boundary()
        if facts.role not in ("user", "assistant"):
            return
        self._found.extend(text_problems(index, item["message"].get("content"), facts))
        if facts.role == "user":
            pairing.answered(index, facts.results, own)
        else:
            if main and not self._started and "parentUuid" in item:
                self._found.append(Problem("bad_order", index, "the conversation starts with the assistant"))
            pairing.called(index, facts.calls, facts.message, own)
        self._started = self._started or main

    def _links(self, index: int, item: Any, parent: str | None) -> None:
        logical = item.get("logicalParentUuid") if isinstance(item, dict) else None
        for target, what in ((parent, "the parent"), (logical, "the logical parent")):
            if isinstance(target, str) and target and not self._tree.has(target):
                self._unseen.append((index, target, what))

    def problems(self) -> list[Problem]:
        """Everything that is wrong, by line."""
        found = list(self._found)
        for branch, pairing in self._pairings.items():
            found += pairing.problems
            unanswered = pairing.unanswered()
            if branch is None and unanswered:
                given_up = self._tree.given_up()
                unanswered = [problem for problem in unanswered if not given_up(problem.item)]
            found += unanswered
        found += [
            Problem("dangling_parent", index, f"{what} is not in the file", ref=target)
            for index, target, what in self._unseen
            if not self._tree.has(target)
        ]
        return sorted(found, key=lambda problem: problem.item)


class _Tree:
    """The lines' ids, parents and messages as hashes; 0 stands for none."""

    def __init__(self) -> None:
        self._own = array("q")
        self._parent = array("q")
        self._message = array("q")
        self._known: set[int] = set()
        self._leaf = -1

    def __len__(self) -> int:
        return len(self._own)

    def add(self, own: str | None, parent: str | None, facts: Facts) -> None:
        if facts.branch is None and facts.role in ("user", "assistant"):
            self._leaf = len(self._own)
        self._own.append(hash(own) if own else 0)
        self._parent.append(hash(parent) if parent else 0)
        self._message.append(hash(facts.message) if facts.message else 0)
        if own:
            self._known.add(hash(own))

    def has(self, own: str) -> bool:
        return hash(own) in self._known

    def given_up(self) -> _GivenUp:
        return _GivenUp(self._own, self._parent, self._message, self._leaf)


class _GivenUp:
    """Tells lines on branches that were given up: they hang off the chain of the last message."""

    def __init__(self, own: array[int], parent: array[int], message: array[int], leaf: int) -> None:
        self._parent = parent
        self._message = message
        times = Counter(own)
        self._places = {name: index for index, name in enumerate(own) if name and times[name] == 1}
        """An id that two lines have says nothing."""
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
