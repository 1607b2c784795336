"""Edits of single items of the Responses API; each gives a new item, or the same where nothing changes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from archiver.transcripts.dialect import Blob, Call, Path
from archiver.transcripts.outcome import failed
from archiver.transcripts.places import at, put
from archiver.transcripts.responses_items import ANSWERS, RESULTS, TEXTUAL, call_id, kind_of, text_of

_DATA_URL: Final = re.compile(r"data:([A-Za-z0-9.+/-]{1,100})(?:;[A-Za-z0-9=._-]{1,100})*;base64,")
_PICTURES: Final = {
    ("input_image", "image_url"): None,
    ("input_file", "file_data"): None,
    ("image", "url"): None,
}
_HOLDERS: Final = RESULTS | {"message", "code_interpreter_call", "image_generation_call"}
_GENERATED: Path = ("result",)
_ALIKE: Final = frozenset({ANSWERS["function_call"], ANSWERS["custom_tool_call"]})
"""Results of which one becomes the other by its name alone."""


def with_output(item: Any, text: str) -> Any:
    """The result with `text` in place of what it holds; one that can hold no text stays as it is."""
    kind = kind_of(item)
    if kind not in RESULTS or kind in (ANSWERS["tool_search_call"], ANSWERS["computer_call"]):
        return item
    output = _shell_output(text, at(item, ("output", 0, "outcome"))) if _of_shell(kind) else text
    return item if item.get("output") == output else {**item, "output": output}


def _of_shell(kind: str) -> bool:
    return kind == ANSWERS["shell_call"]


def _shell_output(text: str, outcome: Any) -> list[dict[str, Any]]:
    ended = outcome if isinstance(outcome, dict) else {"type": "exit", "exit_code": 1}
    return [{"stdout": text, "stderr": "", "outcome": ended}]


def answer(
    call: Call, content: Any, *, is_error: bool, local_shell: str = ANSWERS["local_shell_call"]
) -> dict[str, Any]:
    """A result for `call`: a whole result item is taken over, anything else becomes the output of a new one.

    `local_shell` is the kind of item that answers a local shell. Nothing can answer a `computer_call`, whose
    result has to be a picture.
    """
    kind = local_shell if call.kind == "local_shell_call" else ANSWERS.get(call.kind, "function_call_output")
    held = kind_of(content)
    if held in RESULTS:
        if held in (kind, local_shell) or not {held, kind} <= TEXTUAL:
            return dict(content)
        if {held, kind} <= _ALIKE:
            return {**content, "type": kind}
        content = text_of(content.get("output"))
    own = "id" if kind == ANSWERS["local_shell_call"] else "call_id"
    made: dict[str, Any] = {"type": kind, own: call.id}
    if kind == ANSWERS["tool_search_call"]:
        return {**made, "execution": "client", "status": "incomplete", "tools": []}
    if kind == ANSWERS["apply_patch_call"]:
        made["status"] = "failed"
    text = f"Error: {content}" if is_error and not failed(str(content)) else content
    return {**made, "output": _shell_output(text, None) if _of_shell(kind) else text}


def is_call(item: Any, own: str) -> bool:
    """True for a call with that id, of a kind that waits for a result."""
    kind = kind_of(item)
    return kind in ANSWERS and call_id(item, kind) == own


def with_call_id(item: Mapping[str, Any], new: str) -> dict[str, Any]:
    """The call or result with another id by which the two know each other."""
    return {**item, ("call_id" if isinstance(item.get("call_id"), str) else "id"): new}


def without_id(item: Any) -> Any:
    """The item without an id of its own."""
    if not isinstance(item, dict) or "id" not in item:
        return item
    return {key: value for key, value in item.items() if key != "id"}


def renamed_tool(item: Any, names: Mapping[str, str]) -> Any:
    """The call, or the result, with another name of its tool."""
    kind = kind_of(item)
    name = item.get("name") if kind in ANSWERS or kind in RESULTS else None
    return {**item, "name": names[name]} if isinstance(name, str) and name in names else item


def blobs(item: Any) -> Iterator[Blob]:
    """Base64 payloads of messages, results, generated images and the code interpreter.

    A screenshot stays: its place takes no text.
    """
    kind = kind_of(item)
    if kind not in _HOLDERS:
        return
    for key in ("content", "output", "outputs"):
        parts = item.get(key)
        if isinstance(parts, list):
            for index, part in enumerate(parts):
                yield from _part(part, (key, index))
    result = item.get("result")
    if kind == "image_generation_call" and isinstance(result, str) and result:
        media = item.get("output_format")
        yield Blob(_GENERATED, f"image/{media if isinstance(media, str) else 'png'}", result)


def _part(part: Any, base: Path) -> Iterator[Blob]:
    kind = part.get("type") if isinstance(part, dict) else None
    for own, key in _PICTURES:
        if kind == own:
            yield from data_url(part.get(key), (*base, key))
    if kind == "input_audio":
        place: Path = ("input_audio", "data")
        data, form = at(part, place), at(part, ("input_audio", "format"))
        if isinstance(data, str):
            yield Blob((*base, *place), f"audio/{form}" if isinstance(form, str) else "audio/wav", data)


def data_url(value: Any, path: Path) -> Iterator[Blob]:
    """The payload of a data URL, if that is what `value` is."""
    found = _DATA_URL.match(value) if isinstance(value, str) else None
    if found:
        yield Blob(path, found[1], value[found.end() :])


def without_blob(item: Any, path: Path, text: str, *, empty: str | None) -> Any:
    """The item with the part that holds the payload replaced by text; `empty` stands for a generated image.

    An image that was generated has no part of its own: what is said of it joins its prompt.
    """
    if path == _GENERATED:
        prompt = item.get("revised_prompt")
        said = f"{prompt}\n{text}" if isinstance(prompt, str) and prompt else text
        return {**item, "result": empty, "revised_prompt": said}
    part = {"type": "logs", "logs": text} if path[0] == "outputs" else {"type": "input_text", "text": text}
    return put(item, path[:2], part)
