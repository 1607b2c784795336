"""How a run ended, told by the last things that its transcript says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from archiver.model import Outcome, TranscriptPart
from archiver.transcripts import get_dialect
from archiver.transcripts.codex_lines import event_of, payload_of
from archiver.transcripts.detect import CLAUDE_CODE, CODEX
from archiver.transcripts.dialect import Facts
from archiver.transcripts.places import at

_INTERRUPTED: Final = ("[Request interrupted by user", "<turn_aborted>")
_SYNTHETIC: Final = "<synthetic>"
"""The model of what Claude Code itself writes in the model's place."""
_LAST_CALLS: Final = frozenset({"finish", "submit", "attempt_completion"})
"""Tools by which agents without a harness of their own say that they are done; their results say nothing."""
_CUT: Final = frozenset({"max_tokens", "model_context_window_exceeded", "refusal"})
TURN_ENDS: Final = frozenset({"task_complete", "turn_complete", "turn.completed"})
TURN_ABORTED: Final = "turn_aborted"

_PICTURES: Final = frozenset({"image", "document", "image_url", "input_image", "input_file", "file"})
_PAUSES: Final = frozenset({"tool_use", "pause_turn"})

State = Literal["asked", "answered", "done", "interrupted", "error", "cut"]
_OUTCOMES: Final[Mapping[State, tuple[Outcome, str]]] = {
    "asked": ("crashed", "nothing answers what it was told last"),
    "answered": ("succeeded", "its last answer ended the turn"),
    "done": ("succeeded", "its last call says that it is done"),
    "interrupted": ("cancelled", "a person interrupted it"),
    "error": ("failed", "an error is its last word"),
    "cut": ("failed", "its last answer was cut off"),
}


@dataclass(frozen=True, slots=True)
class Told:
    """How it ended, and by what that is told."""

    outcome: Outcome
    why: str


@dataclass(slots=True)
class Verdict:
    """Takes in the items of a transcript, or its last ones, in order; `side` for a sub-agent's own file."""

    dialect: str
    side: bool = False
    state: State | None = None
    open: set[str] = field(default_factory=set)

    def see_all(self, items: Iterable[Any]) -> Verdict:
        """Take in these items."""
        facts_of = get_dialect(self.dialect).facts
        for item in items:
            facts = facts_of(item)
            if (facts.branch is None or self.side) and not self._marked(item):
                self._see(item, facts)
        return self

    def told(self) -> Told | None:
        """How it ended; None where the items say nothing of it."""
        if self.state is None:
            return None
        if self.open and self.state in ("asked", "answered"):
            calls = "a call has" if len(self.open) == 1 else f"{len(self.open)} calls have"
            return Told("crashed", f"{calls} no result")
        return Told(*_OUTCOMES[self.state])

    def _marked(self, item: Any) -> bool:
        """Whether the harness itself says with this item how it stands; it is no word of the model then."""
        if not isinstance(item, dict):
            return False
        if self.dialect == CLAUDE_CODE:
            state = _of_claude(item)
        elif self.dialect == CODEX:
            state = self._of_codex(item)
        else:
            return False
        if state in ("interrupted", "error"):
            self.open.clear()
        self.state = state or self.state
        return state is not None

    def _of_codex(self, item: dict[str, Any]) -> State | None:
        kind = (event_of(item) or {}).get("type")
        if kind in TURN_ENDS:
            self.open.clear()
            return self.state if self.state == "error" else "answered"
        said = payload_of(item) or item
        if kind == TURN_ABORTED or (said.get("role") == "user" and _says(said, _INTERRUPTED)):
            return "interrupted"
        return "error" if kind == "error" else None

    def _see(self, item: Any, facts: Facts) -> None:
        if facts.starts or facts.boundary or facts.instruction:
            self.open.clear()  # what was open before was given up
        if facts.starts:
            self.state = None
        self.open |= {call.id for call in facts.calls if not call.answered_elsewhere}
        self.open -= {result.call_id for result in facts.results}
        if facts.role == "assistant":
            self._said(item, facts)
        elif facts.instruction or (facts.results and self.state != "done") or _asks(item, facts):
            self.state = "asked"

    def _said(self, item: Any, facts: Facts) -> None:
        message = item.get("message") if self.dialect == CLAUDE_CODE else item
        if message.get("model") == _SYNTHETIC:
            return  # a line in the place of an answer that never came
        stopped = message.get("stop_reason")
        if self.dialect not in (CLAUDE_CODE, CODEX) and any(call.name in _LAST_CALLS for call in facts.calls):
            self.state = "done"
        elif stopped in _CUT:
            self.state = "cut"
        elif stopped in _PAUSES or not facts.text.strip():
            self.state = "asked"
        else:
            self.state = "answered"


def _of_claude(item: dict[str, Any]) -> State | None:
    message = item.get("message")
    if not isinstance(message, dict):
        return None
    if item.get("type") == "user":
        return "interrupted" if _says(message, _INTERRUPTED) else None
    failed = item.get("isApiErrorMessage") is True or (
        message.get("model") == _SYNTHETIC and _says(message, ("API Error",))
    )
    return "error" if failed else None


def _says(message: Mapping[str, Any], beginnings: tuple[str, ...]) -> bool:
    """Whether a text of the message begins with one of these."""
    content = message.get("content")
    texts = (
        [content]
        if isinstance(content, str)
        else [part.get("text") for part in content if isinstance(part, dict)]
        if isinstance(content, list)
        else []
    )
    return any(isinstance(text, str) and text.lstrip().startswith(beginnings) for text in texts)


def response_beside(part: TranscriptPart) -> list[Any]:
    """The items of a response that a log keeps beside the request whose messages are the transcript."""
    for depth in (1, 2):
        around = at(part.header, part.items_at[:-depth]) if len(part.items_at) >= depth else None
        response = around.get("response") if isinstance(around, dict) else None
        if isinstance(response, dict):
            return _items_of(response)
    return []


def _items_of(response: dict[str, Any]) -> list[Any]:
    output = response.get("output")
    if isinstance(output, list):
        return output
    message = at(response, ("choices", 0, "message"))
    if isinstance(message, dict):
        return [message]
    return [response] if response.get("role") == "assistant" else []


def _asks(item: Any, facts: Facts) -> bool:
    """Whether it asks without words: by a picture, or as a compaction in the middle of work that goes on."""
    if facts.role != "user" or item.get("isMeta") is True:
        return bool(at(item, ("compactMetadata", "trigger")) == "auto")
    inner = item.get("message") or payload_of(item) or item
    content = inner.get("content") if isinstance(inner, dict) else None
    parts = content if isinstance(content, list) else ()
    return any(isinstance(part, dict) and part.get("type") in _PICTURES for part in parts)
