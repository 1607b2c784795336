"""Dialect "anthropic-messages": items are message objects `{role, content}` of the Messages API."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from archiver.transcripts import blocks, sealed
from archiver.transcripts.checks import text_problems, with_sound_text
from archiver.transcripts.dialect import Blob, Call, DialectDefaults, Facts, Path, Problem, Results, Role
from archiver.transcripts.pairing import Pairing, paired
from archiver.transcripts.pictures import Pictures
from archiver.transcripts.places import at
from archiver.transcripts.thoughts import Thoughts
from archiver.transcripts.typed import typed

_CONTENT: Path = ("content",)
_ROLES: dict[Any, Role] = {
    "user": "user",
    "assistant": "assistant",
    **dict.fromkeys(("system", "developer"), "system"),
}
_SPEAK: Final = ("user", "assistant")
_OTHER_ROLES: Final = {"human": "user", **dict.fromkeys(("ai", "bot", "model"), "assistant")}
_PROMPT: Final = "what it says belongs into the `system` field of the request, where no message can put it"


class AnthropicMessages(DialectDefaults):
    """Anthropic Messages; results stand in the next user message, server tools answer themselves."""

    name = "anthropic-messages"
    results: Results = "together"

    def facts(self, item: Any) -> Facts:
        if not isinstance(item, dict):
            return Facts("meta")
        role = _ROLES.get(item.get("role"), "meta") if isinstance(item.get("role"), str) else "meta"
        said = blocks.said(item.get("content"))
        message, model = item.get("id"), item.get("model")
        return Facts(
            role,
            calls=said.calls,
            results=said.results,
            instruction=typed(said.texts) if role == "user" else "",
            text="\n".join(said.texts) if role == "assistant" else "",
            has_reasoning=said.has_reasoning,
            message=message if isinstance(message, str) and message.startswith("msg_") else None,
            boundary=said.compacted,
            usage=blocks.usage_of(item.get("usage")),
            model=model if isinstance(model, str) else None,
        )

    def opaque(self, path: Path, item: Any = None) -> bool:
        if path == ("id",):
            return item is None or sealed.is_id(at(item, path))
        content = sealed.UNKNOWN if item is None else at(item, ("content",))
        return path[:1] == ("content",) and sealed.in_content(path[1:], content)

    def problems(self, items: Iterator[Any]) -> list[Problem]:
        judge = _Judge()
        for index, item in enumerate(items):
            judge.see(index, item, self.facts(item), self.blobs(item))
        return judge.problems()

    def stub_result(self, item: Any, call_id: str, text: str) -> Any:
        return _with_content(item, blocks.stub_result(item.get("content"), call_id, text))

    def fold(self, item: Any) -> Any:
        return item

    def without_reasoning(self, item: Any) -> Any | None:
        content = blocks.without_reasoning(item.get("content"))
        return None if content == [] else _with_content(item, content)

    def relinked(self, item: Any, removed: Mapping[str, str | None]) -> Any:
        return item

    def link(self, item: Any) -> tuple[str | None, str | None]:
        return None, None

    def blobs(self, item: Any) -> Iterator[Blob]:
        return blocks.blobs(at(item, ("content",)), ("content",))

    def replace_blob(self, item: Any, path: Path, text: str) -> Any:
        return blocks.replace_blob(item, path, text)

    def error_results(self, calls: Sequence[Call], after: Any, text: Any, *, is_error: bool = True) -> Any:
        return {"role": "user", "content": blocks.error_blocks(calls, text, is_error)}

    def with_results(self, item: Any, calls: Sequence[Call], text: Any, *, is_error: bool = True) -> Any:
        return _with_content(item, blocks.with_results(item.get("content"), calls, text, is_error))

    def result_content(self, item: Any, call_id: str, occurrence: int = 0) -> Any:
        return blocks.result_content(item.get("content"), call_id, occurrence)

    def without_result(self, item: Any, call_id: str, occurrence: int = 0) -> Any | None:
        content = blocks.without_result(item.get("content"), call_id, occurrence)
        return None if content == [] else _with_content(item, content)

    def with_sound_text(self, item: Any) -> Any | None:
        content = with_sound_text(item.get("content"))
        return None if content == [] else _with_content(item, content)

    def user_note(self, text: str, before: Any) -> Any:
        return {"role": "user", "content": text}

    def renamed_call(self, item: Any, call_id: str, new_id: str | None, occurrence: int = 0) -> Any | None:
        content = blocks.renamed_call(at(item, _CONTENT), call_id, new_id, occurrence)
        return None if content == [] else _with_content(item, content)

    def renamed_result(self, item: Any, call_id: str, new_id: str, occurrence: int = 0) -> Any:
        return _with_content(item, blocks.renamed_result(at(item, _CONTENT), call_id, new_id, occurrence))

    def renamed_tool(self, item: Any, names: Mapping[str, str]) -> Any:
        return _with_content(item, blocks.renamed_tool(at(item, _CONTENT), names))

    def with_sound_role(self, item: Any) -> Any | None:
        """The model makes calls, the user's side gives results; what has neither nor a known role goes."""
        facts = self.facts(item)
        role = _OTHER_ROLES.get(at(item, ("role",))) if isinstance(at(item, ("role",)), str) else None
        if facts.calls or facts.results:
            role = "assistant" if facts.calls else "user"
        return item if facts.role in _SPEAK else {**item, "role": role} if role else None


class _Judge:
    """Takes in the messages of one conversation; memory grows with calls and pictures only."""

    def __init__(self) -> None:
        self._found: list[Problem] = []
        self._pairing, self._thoughts, self._pictures = Pairing(), Thoughts(), Pictures()
        self._first = True

    def see(self, index: int, item: Any, facts: Facts, blobs: Iterator[Blob]) -> None:
        if facts.role not in _SPEAK:
            beyond = _PROMPT if facts.role == "system" else None
            detail = "the role is neither user nor assistant"
            self._found.append(Problem("bad_role", index, detail, beyond=beyond))
            return
        if self._first and facts.role == "assistant" and not facts.boundary:
            self._found.append(Problem("bad_order", index, "the conversation starts with the assistant"))
        self._first = False
        content = item.get("content")
        self._found.extend(text_problems(index, content, facts))
        if facts.boundary:
            for part in (self._pairing, self._thoughts, self._pictures):
                part.boundary()
        for blob in blobs:
            self._pictures.see(index, blob)
        if facts.role == "assistant":
            self._pairing.called(index, facts.calls, facts.message)
            self._pairing.strayed(index, facts.results)
            self._thoughts.said(index, content, facts.message)
        else:
            self._pairing.answered(index, facts.results)
            if not facts.results:
                self._thoughts.asked()

    def problems(self) -> list[Problem]:
        found = [*self._found, *paired(self._pairing), *self._thoughts.problems(), *self._pictures.problems()]
        return sorted(found, key=lambda problem: problem.item)


def _with_content(item: Any, content: Any) -> Any:
    return item if content is at(item, _CONTENT) else {**item, "content": content}
