"""What is wrong with a Claude Code session: pairing, texts, reasoning, pictures, and the tree of links.

Side conversations are judged for themselves. What lies before a compaction marker is history: nothing in it
is ever sent again. Nor is a call open that stands on a branch of the tree which was given up when a person
went back to an earlier message.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from archiver.transcripts.checks import text_problems
from archiver.transcripts.conversations import INLINE, Conversations
from archiver.transcripts.dialect import Blob, Facts, Problem
from archiver.transcripts.pairing import Pairing
from archiver.transcripts.pictures import Pictures
from archiver.transcripts.session_tree import Tree
from archiver.transcripts.thoughts import Thoughts

_FORKED: Final = re.compile(r"a[a-z_]+-[0-9a-f]+")
"""Ids of agents that go on from the session, as one that sums it up: their parents stand in its own file."""


class SessionJudge:
    """Takes in the lines of one file in order; memory grows by some 400 bytes a line."""

    def __init__(self) -> None:
        self._talks: dict[str | None, _Talk] = {}
        self._found: list[Problem] = []
        self._tree = Tree()
        self._conversations = Conversations()
        self._unseen: list[tuple[int, str, str]] = []
        self._started = False

    def see(
        self, item: Any, facts: Facts, link: tuple[str | None, str | None], blobs: Iterator[Blob]
    ) -> None:
        """Take in the next line with its own id and its parent's, and what it shows the model."""
        index = len(self._tree)
        own, parent = link
        main = facts.branch is None
        if self._tree.add(own, parent, facts):
            self._found.append(Problem("duplicate_id", index, "another line has this id", ref=own))
        if _is_linked(facts.branch):
            self._links(index, item, parent)
        talk = self._talks.setdefault(self._conversations.of(facts, own, parent), _Talk())
        if facts.boundary:
            talk.boundary()
        if facts.role not in ("user", "assistant"):
            return
        if item["message"].get("role") != facts.role:
            self._found.append(Problem("bad_role", index, "the role is not what the line's type says"))
        if facts.role == "assistant" and main and not self._started and "parentUuid" in item:
            self._found.append(Problem("bad_order", index, "the conversation starts with the assistant"))
        self._started = self._started or main
        talk.see(index, item["message"].get("content"), facts, own)
        for blob in blobs:
            talk.pictures.see(index, blob)

    def _links(self, index: int, item: Any, parent: str | None) -> None:
        logical = item.get("logicalParentUuid") if isinstance(item, dict) else None
        for target, what in ((parent, "the parent"), (logical, "the logical parent")):
            if isinstance(target, str) and target and not self._tree.has(target):
                self._unseen.append((index, target, what))

    def problems(self) -> list[Problem]:
        """Everything that is wrong, by line."""
        found = list(self._found)
        for branch, talk in self._talks.items():
            found += talk.problems()
            unanswered = talk.pairing.unanswered()
            if branch is None and unanswered:
                given_up = self._tree.given_up()
                unanswered = [problem for problem in unanswered if not given_up(problem.item)]
            found += unanswered
        found += [
            Problem("dangling_parent", index, f"{what} is not in the file", ref=target)
            for index, target, what in self._unseen
            if not self._tree.has(target)
        ]
        found += self._cycles()
        return sorted(found, key=lambda problem: problem.item)

    def _cycles(self) -> Iterator[Problem]:
        for index, parent in self._tree.cycles():
            detail = "the line is above itself in the tree of links"
            yield Problem("parent_cycle", index, detail, ref=parent)


def _is_linked(branch: str | None) -> bool:
    """True where a line's parent has to stand in the file, and it is known which line could be it instead."""
    return branch is None or (branch != INLINE and _FORKED.fullmatch(branch) is None)


class _Talk:
    """One conversation of a session, since its last compaction."""

    def __init__(self) -> None:
        self.pairing = Pairing()
        self.pictures = Pictures()
        self._thoughts = Thoughts()
        self._texts: list[Problem] = []

    def see(self, index: int, content: Any, facts: Facts, own: str | None) -> None:
        self._texts.extend(text_problems(index, content, facts))
        if facts.role == "user":
            self.pairing.answered(index, facts.results, own)
            if not facts.results:
                self._thoughts.asked()
        else:
            self.pairing.called(index, facts.calls, facts.message, own)
            self.pairing.strayed(index, facts.results)
            self._thoughts.said(index, content, facts.message)

    def boundary(self) -> None:
        for part in (self.pairing, self._thoughts, self.pictures):
            part.boundary()
        self._texts.clear()

    def problems(self) -> list[Problem]:
        """What is wrong but calls without a result."""
        paired = (*self.pairing.problems(), *self.pairing.doubled())
        return [*self._texts, *paired, *self._thoughts.problems(), *self.pictures.problems()]
