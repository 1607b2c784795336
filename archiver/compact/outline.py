"""What compaction has to know of every item before it edits the first one, in a few bytes an item."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, Final, TypeAlias

from archiver.compact.notes import LINE_LIMIT, read_stub
from archiver.compact.options import CompactOptions
from archiver.compact.target import Kind, Target, target_of
from archiver.compact.text import byte_length, encode, one_line
from archiver.model import Items
from archiver.transcripts.conversations import Conversations
from archiver.transcripts.dialect import Call, Dialect, Facts, ToolResult
from archiver.transcripts.tools import Task, TaskList

REASONING: Final = 1
"""The item holds reasoning that may go."""
ALONE: Final = 2
"""It holds nothing else."""
COPIES: Final = 4
"""It holds structured copies of what it says anyway."""
BLOB: Final = 8
"""It holds base64 text that becomes an artifact."""
OUTPUT: Final = 16
"""It holds a result over the output limit."""
RESULT: Final = 32
"""It holds a result that is not small and no stub yet."""

PENDING: Final = 0
ANSWERED: Final = 1
FAILED: Final = 2

_KINDS: Final[tuple[Kind, ...]] = ("read", "write", "command", "other")
_FILES_KEPT: Final = 200
_COMMANDS_KEPT: Final = 20
NO_CALL: Final = -1

Answered: TypeAlias = "array[int]"
"""For each call one more than the number of the bundle by which it was answered; 0 for none."""


def answers() -> Answered:
    """No calls."""
    return array("I")


class Outline:
    """Collects one part's outline from a pass over its items: `see` each of them in order.

    Compact arrays hold about 30 bytes an item and 100 a call: half a gigabyte of transcript needs some 30 MB.
    """

    def __init__(self, dialect: Dialect, options: CompactOptions) -> None:
        self._dialect = dialect
        self._options = options
        self.flags = bytearray()
        self.response = array("I")
        """For each item, the model response it belongs to (0: before the first one of its conversation)."""
        self.responses = Responses()
        self.calls = Calls()
        self.result_item = array("I")
        self.result_call = array("i")
        """For each result, in order: its item and its call (`NO_CALL`: none is known)."""
        self.own_link = array("Q")
        self.link_item = array("I")
        self.link_to = array("Q")
        """Hashes of ids: each item's own (0: none), and each link from an item to another."""
        self.opening = -1
        """The item that the main conversation begins with (-1: none)."""
        self.last_text = ""
        self.files: dict[str, int] = {}
        """Files written with success, each with its latest call, oldest first."""
        self.commands: dict[int, int] = {}
        """Latest call of each command, by its key, oldest first."""
        self._open: dict[str, int] = {}
        self._tasks = TaskList()
        self._asked = _Asked()
        self._conversations = Conversations()

    @classmethod
    def of(cls, items: Items, dialect: Dialect, options: CompactOptions) -> Outline:
        """The outline made by a pass of its own."""
        outline = cls(dialect, options)
        if not items.raw:
            for item in items:
                outline.see(item, dialect.facts(item))
        return outline

    def __len__(self) -> int:
        return len(self.flags)

    @property
    def tasks(self) -> tuple[Task, ...]:
        """The plan that the agent keeps for itself, as it stands at the end."""
        return self._tasks.tasks

    def see(self, item: Any, facts: Facts) -> None:
        """Take in the next item."""
        index = len(self.flags)
        own, parent = self._dialect.link(item)
        conversation = self._conversations.of(facts, own, parent)
        if facts.starts:
            self._open.clear()
            self.calls.begin()
        self.response.append(self.responses.respond(facts, conversation))
        flags = 0
        if facts.role != "meta":
            if self.opening < 0 and facts.branch is None:
                self.opening = index
            flags = self._content_flags(item, facts)
            for call in facts.calls:
                self._call(call)
            for result in facts.results:
                flags |= self._result(index, result)
            if facts.text and facts.role == "assistant" and facts.branch is None:
                self.last_text = facts.text
        if self._dialect.fold(item) is not item:
            flags |= COPIES
        self.flags.append(flags)
        if facts.role == "assistant" and not flags & ALONE:
            self.responses.says_more()
        self._links(index, item, own)

    def _content_flags(self, item: Any, facts: Facts) -> int:
        flags = 0
        if facts.has_reasoning and not facts.bound:
            flags |= REASONING
            if self._dialect.without_reasoning(item) is None:
                flags |= ALONE
        for blob in self._dialect.blobs(item):
            if len(blob.data) >= self._options.blob_limit:
                flags |= BLOB
        return flags

    def _call(self, call: Call) -> None:
        target = target_of(call)
        number = self.calls.add(call.name, target)
        if not call.answered_elsewhere:
            self._open[call.id] = number
        if target.kind == "command":
            _latest(self.commands, self.calls.key[number], number, _COMMANDS_KEPT)
        self._tasks.called(call)

    def _result(self, index: int, result: ToolResult) -> int:
        self._tasks.answered(result)
        number = self._open.pop(result.call_id, NO_CALL)
        self.result_item.append(index)
        self.result_call.append(number)
        if number == NO_CALL:
            return OUTPUT if byte_length(result.text) > self._options.output_limit else 0
        self.calls.state[number] = FAILED if result.is_error else ANSWERED
        if self.calls.writes(number) and not result.is_error:
            _latest(self.files, self.calls.label(number), number, _FILES_KEPT)
        size = byte_length(result.text)
        if size <= self._options.small_result or read_stub(result.text) is not None:
            return 0
        return RESULT | (OUTPUT if size > self._options.output_limit else 0)

    def _links(self, index: int, item: Any, own: str | None) -> None:
        self.own_link.append(0 if own is None else link_hash(own))
        self._asked.ids.clear()
        self._dialect.relinked(item, self._asked)
        for target in self._asked.ids:
            self.link_item.append(index)
            self.link_to.append(link_hash(target))


class Responses:
    """Model responses in order of their first item, over all conversations of a part."""

    def __init__(self) -> None:
        self.conversation = array("I", [0])
        self.ordinal = array("I", [0])
        self.more = bytearray(1)
        """1 where a response holds an item that is more than reasoning."""
        self._numbers: dict[str | None, int] = {}
        self._now: list[int] = []
        self._message: list[str | None] = []
        self._saying: list[bool] = []
        self._last = 0

    def respond(self, facts: Facts, conversation: str | None) -> int:
        """The response that the next item of a conversation belongs to, a new one where one begins."""
        number = self._numbers.get(conversation)
        if number is None:
            number = self._numbers[conversation] = len(self._now)
            self._now.append(0)
            self._message.append(None)
            self._saying.append(False)
        if facts.role == "assistant" and not self._goes_on(number, facts):
            before = self._now[number]
            self._now[number] = len(self.conversation)
            self._message[number] = facts.message
            self.conversation.append(number)
            self.ordinal.append(self.ordinal[before] + 1)
            self.more.append(0)
        if facts.role != "meta":
            self._saying[number] = facts.role == "assistant"
        self._last = self._now[number]
        return self._last

    def _goes_on(self, number: int, facts: Facts) -> bool:
        """True for a further piece of the response that its conversation is at."""
        if facts.piece:
            return self._saying[number]
        return facts.message is not None and facts.message == self._message[number]

    def says_more(self) -> None:
        """The item just seen is more than reasoning."""
        self.more[self._last] = 1

    def totals(self) -> tuple[int, ...]:
        """How many responses each conversation has."""
        return tuple(self.ordinal[last] for last in self._now)

    def recent(self, turns: int, before: Sequence[Sequence[int]] = ()) -> bytearray:
        """1 for each response that was among the last `turns` of its conversation when it came into a bundle.

        `before` are the totals of earlier bundles, in order; what none of them had comes now.
        """
        totals = [*before, self.totals()]
        bundles: list[tuple[list[int], list[int]]] = []
        for conversation in range(len(self._now)):
            each = [one[conversation] if conversation < len(one) else 0 for one in totals]
            bundles.append((each, list(accumulate(each, max))))
        recent = bytearray(len(self.conversation))
        for response in range(1, len(self.conversation)):
            each, most = bundles[self.conversation[response]]
            ordinal = self.ordinal[response]
            recent[response] = ordinal + turns > each[bisect_left(most, ordinal)]
        return recent


class Calls:
    """Tool calls in order."""

    def __init__(self) -> None:
        self.key = array("Q")
        self.whole = array("Q")
        self.state = bytearray()
        self._kind = bytearray()
        self._name = array("I")
        self._names: list[str] = []
        self._numbers: dict[str, int] = {}
        self._labels = bytearray()
        self._ends = array("Q", [0])
        self._begins = array("I")
        """Numbers at which calls of another conversation begin, which know nothing of those before."""

    def __len__(self) -> int:
        return len(self.state)

    def add(self, name: str, target: Target) -> int:
        """Take in a call and give its number."""
        self.key.append(int.from_bytes(target.key[:8]))
        self.whole.append(int.from_bytes(target.whole[:8]))
        self.state.append(PENDING)
        self._kind.append(_KINDS.index(target.kind))
        if name not in self._numbers:
            self._numbers[name] = len(self._names)
            self._names.append(name)
        self._name.append(self._numbers[name])
        self._labels += encode(one_line(target.label, LINE_LIMIT))
        self._ends.append(len(self._labels))
        return len(self.state) - 1

    def name(self, number: int) -> str:
        """The name of the tool that was called."""
        return self._names[self._name[number]]

    def writes(self, number: int) -> bool:
        """True for a call that writes a file."""
        return _KINDS[self._kind[number]] == "write"

    def label(self, number: int) -> str:
        """What the call acts on, on one bounded line."""
        return self._labels[self._ends[number] : self._ends[number + 1]].decode()

    def begin(self) -> None:
        """The next call belongs to a conversation that has nothing to do with those before it."""
        self._begins.append(len(self))

    def answered(self, before: Answered, bundle: int) -> Answered:
        """For each call one more than the number of the bundle by which it was answered; 0 for none.

        `before` says so of earlier bundles, and `bundle` is the number of this one.
        """
        found = array("I", bytes(4 * len(self)))
        found[: len(before)] = before[: len(found)]
        for number, state in enumerate(self.state):
            if state == ANSWERED and not found[number]:
                found[number] = bundle + 1
        return found

    def superseded(self, before: Sequence[int] = (), answered: Answered | None = None) -> bytearray:
        """1 for each call whose target a later call read, wrote or ran again with success, by its bundle.

        `before` are the numbers of calls of earlier bundles, in order, and `answered` says by which of them a
        call was answered; what none of them had comes now.
        """
        answers_by = self.answered(answered or answers(), len(before))
        most = [*accumulate(before, max), len(self)]
        seen: dict[int, int] = {}
        gone = bytearray(len(self))
        begins = set(self._begins)
        never = len(most) + 1
        for number in range(len(self) - 1, -1, -1):
            if number + 1 in begins:
                seen.clear()
            key, whole = self.key[number], self.whole[number]
            by = min(seen.get(key, never), seen.get(whole, never))
            gone[number] = key != 0 and by <= bisect_left(most, number + 1) + 1
            if answers_by[number]:
                seen[key] = min(seen.get(key, never), answers_by[number])
        return gone


class _Asked(Mapping[str, None]):
    """Holds nothing and remembers what it was asked for: so every dialect shows the links it would mend."""

    def __init__(self) -> None:
        self.ids: list[str] = []

    def __contains__(self, key: object) -> bool:
        if isinstance(key, str):
            self.ids.append(key)
        return False

    def __getitem__(self, key: str) -> None:
        self.ids.append(key)
        raise KeyError(key)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0

    def __bool__(self) -> bool:
        return True


def link_hash(value: str) -> int:
    """A number above 0 that stands for an id within this process."""
    return (hash(value) & 0xFFFF_FFFF_FFFF_FFFF) or 1


def _latest(held: dict[Any, int], key: Any, number: int, limit: int) -> None:
    held.pop(key, None)
    held[key] = number
    if len(held) > limit:
        del held[next(iter(held))]
