"""Events of Codex: what its screen showed, mostly a copy of what the response items beside them say.

An event is never judged or stubbed, and nothing that only it holds goes: of the output of a command it may
hold three copies, of which one stays, and pictures become artifacts as they do in the items.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from archiver.transcripts.dialect import Blob, Facts, Path, Usage
from archiver.transcripts.places import at, put
from archiver.transcripts.responses_edits import data_url

_TOTAL: Final = "total_token_usage"
_COPIES: Final = ("stdout", "formatted_output")
_RESULT: Path = ("result", "Ok", "content")
_ASKED: Final = (
    *("exec_approval_request", "apply_patch_approval_request", "request_permissions"),
    *("request_user_input", "elicitation_request"),
)


def usage_facts(event: Mapping[str, Any]) -> Facts | None:
    """The tokens that the run has used so far, under one name: a later statement replaces an earlier one."""
    total = at(event, ("info", _TOTAL))
    if event.get("type") != "token_count" or not isinstance(total, dict):
        return None
    cached = _count(total.get("cached_input_tokens"))
    into, out = _count(total.get("input_tokens")), _count(total.get("output_tokens"))
    return Facts("meta", message=_TOTAL, usage=Usage(max(into - cached, 0), out, cached))


def _count(value: Any) -> int:
    return value if type(value) is int and value > 0 else 0


def asked(event: Mapping[str, Any]) -> str | None:
    """The id of the call for which a person was asked."""
    call = event.get("call_id")
    return call if event.get("type") in _ASKED and isinstance(call, str) else None


def fold(event: dict[str, Any]) -> dict[str, Any]:
    """The end of a command with its output once, as later versions of Codex write it."""
    whole = event.get("aggregated_output")
    if event.get("type") != "exec_command_end" or not isinstance(whole, str) or not whole:
        return event
    copies = [key for key in _COPIES if event.get(key) == whole]
    return {**event, **dict.fromkeys(copies, "")} if copies else event


def blobs(event: Mapping[str, Any]) -> Iterator[Blob]:
    """Pictures that a person pasted, the model made or a tool gave; the last first, as each goes whole."""
    kind = event.get("type")
    if kind == "user_message" and isinstance(event.get("images"), list):
        for index in range(len(event["images"]) - 1, -1, -1):
            yield from data_url(event["images"][index], ("images", index))
    elif kind == "image_generation_end" and isinstance(event.get("result"), str) and event["result"]:
        yield Blob(("result",), "image/png", event["result"])
    elif kind == "mcp_tool_call_end":
        yield from _of_tool(at(event, _RESULT))


def _of_tool(content: Any) -> Iterator[Blob]:
    for index, block in enumerate(content if isinstance(content, list) else ()):
        if isinstance(block, dict) and isinstance(block.get("data"), str):
            media = block.get("mimeType")
            place = (*_RESULT, index, "data")
            yield Blob(place, media if isinstance(media, str) else "application/octet-stream", block["data"])


def without_blob(event: dict[str, Any], path: Path, text: str) -> dict[str, Any]:
    """The event without that picture, and with `text` where it shows one."""
    if path[0] == "images":
        kept = [image for index, image in enumerate(event["images"]) if index != path[1]]
        return {**event, "images": kept, "message": _joined(event.get("message"), text)}
    if path == ("result",):
        return {**event, "result": "", "revised_prompt": _joined(event.get("revised_prompt"), text)}
    block: dict[str, Any] = put(event, path[:-1], {"type": "text", "text": text})
    return block


def _joined(said: Any, text: str) -> str:
    return f"{said}\n{text}" if isinstance(said, str) and said else text
