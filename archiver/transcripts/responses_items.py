"""Items of OpenAI's Responses API: what each kind says, and which kinds answer each other.

Shapes as in the API reference (platform.openai.com/docs/api-reference/responses). An *item* is an object with
a `type`; a message may come without one. Calls of tools that the caller runs wait for an item of their own
with the same `call_id`; tools that the provider runs hold their outcome. Nothing here changes an argument.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from archiver import jsonio
from archiver.transcripts.dialect import Call, Facts, Role, ToolResult
from archiver.transcripts.outcome import failed

ANSWERS: Final = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
    "tool_search_call": "tool_search_output",
    "computer_call": "computer_call_output",
    "local_shell_call": "local_shell_call_output",
    "shell_call": "shell_call_output",
    "apply_patch_call": "apply_patch_call_output",
}
"""Each call that waits for a result, and the kind of item that is one."""
RESULTS: Final = frozenset(ANSWERS.values())
TEXTUAL: Final = RESULTS - {ANSWERS["tool_search_call"], ANSWERS["computer_call"]}
"""Kinds of results that hold a text, so that one can be made of another."""
WAITING: Final = "mcp_approval_request"
HOSTED: Final = frozenset(
    {
        *("web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call"),
        *("mcp_call", WAITING),
    }
)
"""Calls that need no result of the caller: they hold their outcome, or wait for a person."""
CALLS: Final = ANSWERS.keys() | HOSTED
REASONING: Final = "reasoning"
SEALED: Final = frozenset({REASONING, "compaction", "compaction_summary", "context_compaction"})
"""Kinds that hold what only the provider can read, in `encrypted_content`."""
_SILENT: Final = frozenset({"mcp_list_tools", "mcp_approval_response", "item_reference"})
KINDS: Final = CALLS | RESULTS | SEALED | _SILENT | {"message"}

TEXT_PARTS: Final = ("input_text", "output_text", "text")
_ROLES: Final[dict[str, Role]] = {
    "user": "user",
    "assistant": "assistant",
    "system": "system",
    "developer": "system",
}
_GIVEN: Final = {
    "custom_tool_call": "input",
    "computer_call": "action",
    "local_shell_call": "action",
    "shell_call": "action",
    "apply_patch_call": "operation",
    "web_search_call": "action",
    "file_search_call": "queries",
    "code_interpreter_call": "code",
    "image_generation_call": "revised_prompt",
}
"""Where a call keeps what it was given, if not under `arguments`."""
_PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.{1,1000})$", re.MULTILINE)
_END: Final = 200
Typed = Callable[[Iterable[str]], str]
"""Makes what a person typed of the texts of a user message."""


def kind_of(item: Any) -> str:
    """The kind of an item; a message may leave it out."""
    if not isinstance(item, dict):
        return ""
    kind = item.get("type")
    if kind is None and "role" in item and "content" in item:
        return "message"
    return kind if isinstance(kind, str) else ""


def facts_of(item: Any, typed: Typed) -> Facts:
    """What one item says; unknown kinds and wrong shapes are `meta`."""
    kind = kind_of(item)
    if kind == "message":
        return _message(item, typed)
    if kind == REASONING:
        return Facts("assistant", has_reasoning=True, piece=True, bound=True)
    if kind in CALLS:
        call = call_of(item, kind)
        return Facts("assistant", (call,) if call.id else (), piece=True)
    if kind in RESULTS:
        result = _result(item, kind)
        return Facts("tool", results=() if result is None else (result,))
    return Facts("user") if kind == "mcp_approval_response" else Facts("meta")


def _message(item: Mapping[str, Any], typed: Typed) -> Facts:
    name = item.get("role")
    role = _ROLES.get(name, "meta") if isinstance(name, str) else "meta"
    if role == "user":
        return Facts("user", instruction=typed(texts_of(item.get("content"))))
    text = "\n".join(texts_of(item.get("content")))
    return Facts(role, text="" if role == "meta" else text, piece=role == "assistant")


def texts_of(content: Any) -> Iterator[str]:
    """The texts of a content: a text, or parts of which some are texts."""
    if isinstance(content, str):
        yield content
    for part in content if isinstance(content, list) else ():
        if isinstance(part, dict):
            text = part.get("text") if part.get("type") in TEXT_PARTS else part.get("refusal")
            if isinstance(text, str):
                yield text


def call_of(item: Mapping[str, Any], kind: str) -> Call:
    """The call that an item of this kind is; its id is empty where it has none."""
    name = item.get("name")
    elsewhere = kind in HOSTED or item.get("execution") == "server"
    return Call(
        call_id(item, kind),
        name if isinstance(name, str) else kind.removesuffix("_call"),
        _arguments(item, kind, name),
        elsewhere,
        kind,
    )


def call_id(item: Mapping[str, Any], kind: str) -> str:
    """The id by which a call and its result know each other."""
    keys = ("id",) if kind in HOSTED else ("call_id", "id")
    return next((value for key in keys if isinstance(value := item.get(key), str)), "")


def _arguments(item: Mapping[str, Any], kind: str, name: Any) -> Any:
    key = _GIVEN.get(kind, "arguments")
    given = item.get(key)
    if name == "apply_patch" and isinstance(given, str):
        return _patch(given)
    if kind == "custom_tool_call" or isinstance(given, dict):
        return given
    if key != "arguments":
        return {key.removesuffix("s"): given} if given else {}
    return _parsed(given)


def _parsed(given: Any) -> Any:
    """Arguments as the object they should be the text of, or as they stand."""
    if not isinstance(given, str) or not given.startswith("{"):
        return given
    try:
        return jsonio.loads(given)
    except ValueError:
        return given


def _patch(text: str) -> Any:
    """A patch by the first file that it changes."""
    found = _PATCHED.search(text)
    if found is None:
        parsed = _parsed(text)
        return _patch(parsed["input"]) if _holds_patch(parsed) else parsed
    return {"path": found[1].strip(), "patch": text}


def _holds_patch(parsed: Any) -> bool:
    given = parsed.get("input") if isinstance(parsed, dict) else None
    return isinstance(given, str) and _PATCHED.search(given) is not None


def result_id(item: Mapping[str, Any], kind: str) -> str:
    """The id of the call that a result answers; empty where it states none."""
    keys = ("call_id", "id") if kind == ANSWERS["local_shell_call"] else ("call_id",)
    return next((value for key in keys if isinstance(value := item.get(key), str)), "")


def _result(item: Mapping[str, Any], kind: str) -> ToolResult | None:
    answered = result_id(item, kind)
    if not answered and kind == ANSWERS["tool_search_call"]:
        return None  # the provider searched its own tools
    text = "" if kind == ANSWERS["tool_search_call"] else text_of(item.get("output"))
    return ToolResult(answered, text, _failed(item, text))


def text_of(output: Any) -> str:
    """The text of an output: a text, parts, outputs of a shell; anything else as JSON, but no pictures."""
    if isinstance(output, str):
        return output
    if isinstance(output, list):
        return "\n".join(text for part in output for text in _part_texts(part))
    if not isinstance(output, dict) or output.get("type") == "computer_screenshot":
        return ""
    return jsonio.again(output).decode("utf-8", "replace")


def _part_texts(part: Any) -> Iterator[str]:
    if not isinstance(part, dict):
        return
    for text in (part.get("text"), part.get("stdout"), part.get("stderr")):
        if isinstance(text, str) and text:
            yield text


def _failed(item: Mapping[str, Any], text: str) -> bool:
    """True for a result that states that the call failed, or that its outcome is unknown."""
    if failed(text) or item.get("status") in ("failed", "incomplete") or _exit_inside(text):
        return True
    output = item.get("output")
    return isinstance(output, list) and any(map(_ended_badly, output))


def _ended_badly(part: Any) -> bool:
    """True for the output of a shell that states another end than exit 0."""
    outcome = part.get("outcome") if isinstance(part, dict) else None
    return isinstance(outcome, dict) and outcome.get("exit_code") != 0


def _exit_inside(text: str) -> bool:
    """True for the JSON that early versions of Codex put around the output of a command that failed."""
    if not text.startswith("{") or '"exit_code"' not in text[-_END:]:
        return False
    parsed = _parsed(text)
    metadata = parsed.get("metadata") if isinstance(parsed, dict) else None
    return isinstance(metadata, dict) and metadata.get("exit_code") not in (0, None)
