"""What one transcript format means: the words that compaction, repair and redaction share."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal, NamedTuple, Protocol

Role = Literal["system", "user", "assistant", "tool", "meta"]
Results = Literal["together", "apart", "next"]
"""How a format holds results: all of a response `together` in the next user message; `apart`, each an item of
its own anywhere behind its call; or each an item of its own, `next` to the item with the calls."""
SYNTHETIC: Final = "[synthetic result: "
"""How a result begins that nobody recorded: in formats without a flag for errors, the text has to tell."""
Path = tuple[str | int, ...]
"""Where a leaf sits inside one item: object keys and array indexes, outermost first."""


class Call(NamedTuple):
    """One tool call of the model."""

    id: str
    name: str
    arguments: Any
    answered_elsewhere: bool = False
    """True when no result item is due: a server tool, a terminal call, an approval that waits."""
    kind: str = ""
    """What kind of call it is, in formats where that decides what a result looks like."""


class ToolResult(NamedTuple):
    """The answer to one call; `text` is its text content joined by line ends."""

    call_id: str
    text: str
    is_error: bool


class Usage(NamedTuple):
    """Tokens of one model response."""

    tokens_in: int = 0
    tokens_out: int = 0
    tokens_cached: int = 0
    cost: float = 0.0
    """US dollars of this response alone, where it states them."""


class Facts(NamedTuple):
    """What one item says; an item is a line of a JSONL transcript or one element of a messages array."""

    role: Role
    calls: tuple[Call, ...] = ()
    results: tuple[ToolResult, ...] = ()
    instruction: str = ""
    """Text that a person wrote (never tool output, reminders of the harness, or a summary)."""
    text: str = ""
    """Text that the model said."""
    has_reasoning: bool = False
    message: str | None = None
    """Id of the model response this item is a piece of; adjacent items with one id are one response."""
    branch: str | None = None
    """Id of the side conversation it belongs to; None in the main one."""
    boundary: bool = False
    """True for a compaction marker: what the model sees starts after it."""
    usage: Usage | None = None
    cost: float | None = None
    """What the run has cost so far in US dollars, where the item states it."""
    at: datetime | None = None
    session: str | None = None
    cwd: str | None = None
    git_branch: str | None = None
    model: str | None = None
    harness: str | None = None
    piece: bool = False
    """True for a piece of a response that names no id of it: adjacent pieces are one response."""
    bound: bool = False
    """True for reasoning that cannot go without what it belongs to, nor that without the reasoning."""
    starts: bool = False
    """True where a conversation begins that has nothing to do with one before it in the same file."""


@dataclass(frozen=True, slots=True)
class Blob:
    """A base64 payload inside an item: where it sits, its media type and the base64 text."""

    path: Path
    media_type: str
    data: str


@dataclass(frozen=True, slots=True)
class Problem:
    """One way in which a transcript is invalid; `item` is 0-based, `code` a word of a fixed list."""

    code: Literal[
        "unanswered_call",
        "orphan_result",
        "duplicate_result",
        "duplicate_call",
        "misplaced_result",
        "empty_text",
        "bad_text",
        "dangling_parent",
        "bad_order",
        "lone_reasoning",
        "foreign_reasoning",
        "broken_seal",
        "unanswerable_call",
        "broken_line",
        "bad_role",
        "bad_name",
        "too_large",
        "changed_reasoning",
        "duplicate_id",
        "bound_id",
        "parent_cycle",
        "unsupported_version",
    ]
    item: int
    detail: str
    call_id: str | None = None
    ref: str | None = None
    """Of a `dangling_parent`: the id that leads nowhere, of a `parent_cycle`: the one that leads back to the
    item; `relinked(item, {ref: None})` mends it. Of a `duplicate_id` or `bound_id`: the id.
    """
    home: int | None = None
    """The item of its call, of a `misplaced_result`."""
    beyond: str | None = None
    """Why this one cannot be mended, although others of its code can."""
    occurrence: int = 0
    """Of a `duplicate_call`, and of a result that goes or moves: which it is, 0-based, of the item's calls or
    results with that id.
    """
    answers: tuple[tuple[int, int], ...] = ()
    """Of a `duplicate_call`: the results that are its own, each by its item and which of that item's results
    with that id it is (0-based). They get the new id with the call; without any that is unanswered then. Set
    `beyond` where nothing says whose a result is.
    """
    again: bool = False
    """Of a `duplicate_call` or `duplicate_id`: it is the same call or item, written twice, and goes."""
    loose: bool = False
    """Of a `broken_seal`: the reasoning can go alone, so `without_reasoning` mends it."""
    path: Path | None = None
    """Of a `too_large`: where in the item the payload sits; `replace_blob` mends it."""
    name: str | None = None
    """Of a `bad_name`: the name as `Call.name` gives it; `renamed_tool` mends it."""


class DialectDefaults:
    """The edits of a repair, for a dialect that cannot have what they mend: nothing is changed."""

    def renamed_call(self, item: Any, call_id: str, new_id: str | None, occurrence: int = 0) -> Any | None:
        """The item with another id for the `occurrence`-th (0-based) of its calls with that id.

        With None the call goes; None when nothing is left of the item then.
        """
        return item

    def renamed_result(self, item: Any, call_id: str, new_id: str, occurrence: int = 0) -> Any:
        """The item with another id for the `occurrence`-th (0-based) of its results of that call."""
        return item

    def renamed_tool(self, item: Any, names: Mapping[str, str]) -> Any:
        """The item with other names for tools, wherever they stand; `names` maps names as in `Call.name`."""
        return item

    def with_sound_role(self, item: Any) -> Any | None:
        """The item in a role its provider knows, mending a `bad_role`; None where it goes altogether."""
        return item

    def numbered(self, item: Any, before: Any) -> Any:
        """The item with a number beyond that of the item before it, in a format that numbers its items."""
        return item

    def without_ids(self, item: Any, ids: Collection[str]) -> Any:
        """The item without ids of its own, where they are these."""
        return item

    def without_broken_seals(self, item: Any) -> Any | None:
        """The item without reasoning whose seal is destroyed, where it holds other reasoning as well."""
        return item

    def renamed(self, item: Any, new_id: str | None) -> Any | None:
        """The item with another id of its own (the first that `link` gives); with None it goes."""
        return item


class Dialect(Protocol):
    """One transcript format. All methods are pure; an edit returns a new item, its argument stays."""

    name: str
    results: Results

    def facts(self, item: Any) -> Facts:
        """What the item says; never raises on an item of unexpected shape (role `meta`).

        Asked for an array of one object: what that, which stands around the messages of a conversation, says.
        """

    def opaque(self, path: Path, item: Any = None) -> bool:
        """True for a leaf that must survive byte for byte: signatures, encrypted reasoning, ids, images.

        Give the `item`: then the type of the container and the shape of the value count too. Without it only
        places that mean one thing are opaque, so images and documents are not.
        """

    def problems(self, items: Iterator[Any]) -> list[Problem]:
        """Every way in which the items, in order, are not valid for their provider or harness."""

    def stub_result(self, item: Any, call_id: str, text: str) -> Any:
        """The item with the content of that call's result replaced by `text`."""

    def fold(self, item: Any) -> Any:
        """The item without structured copies of what it says anyway; the same object when there are none."""

    def without_reasoning(self, item: Any) -> Any | None:
        """The item without its reasoning; None when nothing would be left and it can be dropped."""

    def relinked(self, item: Any, removed: Mapping[str, str | None]) -> Any:
        """The item with parent links past dropped items mended; `removed` maps a dropped id to its parent."""

    def link(self, item: Any) -> tuple[str | None, str | None]:
        """The item's own id and its parent's, where the format has such links."""

    def blobs(self, item: Any) -> Iterator[Blob]:
        """Base64 payloads in the item, such as images."""

    def replace_blob(self, item: Any, path: Path, text: str) -> Any:
        """The item with the block that holds the payload at `path` replaced by a text block."""

    def error_results(self, calls: Sequence[Call], after: Any, text: Any, *, is_error: bool = True) -> Any:
        """A new, marked synthetic item that answers `calls` with an error; `after` is the item before it.

        Where `text` is the content of a result, also blocks, it takes over one that stood at a wrong place.
        Unless results stand `together`, `calls` holds one call.
        """

    def with_results(self, item: Any, calls: Sequence[Call], text: Any, *, is_error: bool = True) -> Any:
        """The (user) item with synthetic error results for `calls` added where the format wants them."""

    def result_content(self, item: Any, call_id: str, occurrence: int = 0) -> Any:
        """What the result of that call holds, text or blocks as they stand, to be moved elsewhere."""

    def without_result(self, item: Any, call_id: str, occurrence: int = 0) -> Any | None:
        """The item without that result; None when nothing is left of it."""

    def with_sound_text(self, item: Any) -> Any | None:
        """The item without empty texts, with U+FFFD for lone surrogates; None when nothing is left of it."""

    def user_note(self, text: str, before: Any) -> Any:
        """A new user item that says `text`, to stand before the item `before`."""

    def renamed_call(self, item: Any, call_id: str, new_id: str | None, occurrence: int = 0) -> Any | None:
        """See `DialectDefaults`, which has this and the edits below for a dialect without them."""

    def renamed_result(self, item: Any, call_id: str, new_id: str, occurrence: int = 0) -> Any:
        """The item with another id for one of its results."""

    def renamed_tool(self, item: Any, names: Mapping[str, str]) -> Any:
        """The item with other names for tools."""

    def with_sound_role(self, item: Any) -> Any | None:
        """The item in a role its provider knows, or None."""

    def numbered(self, item: Any, before: Any) -> Any:
        """The item with a number beyond that of the item before it."""

    def without_ids(self, item: Any, ids: Collection[str]) -> Any:
        """The item without these ids."""

    def without_broken_seals(self, item: Any) -> Any | None:
        """The item without reasoning whose seal is destroyed; the same object where all of it has to go."""

    def renamed(self, item: Any, new_id: str | None) -> Any | None:
        """The item with another id of its own."""
