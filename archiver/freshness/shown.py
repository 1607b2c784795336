"""What a redacted transcript shows of system prompt and tool schemas, where its dialect keeps them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final

from archiver import jsonio
from archiver.freshness.probe import Current
from archiver.model import Transcript, TranscriptPart
from archiver.transcripts import get_dialect
from archiver.transcripts.dialect import Path
from archiver.transcripts.places import at

ITEMS_TO_LOOK_AT: Final = 64
_BODIES: Final[tuple[Path, ...]] = ((), ("request",), ("body",), ("payload",))
_PROMPTS: Final = ("system", "instructions", "base_instructions")
_TOOLS: Final = ("tools", "functions", "dynamic_tools")


def shown(transcript: Transcript) -> Current:
    """Prompt and tools as the first request of the main part states them; None for what it does not."""
    main = transcript.parts[0] if transcript.parts else None
    if main is None or main.media == "raw":
        return Current()
    items = [jsonio.loads(line) for line in islice(main.items.lines(), ITEMS_TO_LOOK_AT)]
    bodies = list(_bodies(main, items))
    prompt = next(filter(None, (_prompt(body.get(key)) for body in bodies for key in _PROMPTS)), None)
    tools = next((body[key] for body in bodies for key in _TOOLS if _is_list(body.get(key))), None)
    if prompt is None and transcript.dialect != "codex":  # there such messages are about single turns
        dialect = get_dialect(transcript.dialect)
        said = (dialect.facts(item) for item in items)
        prompt = next((facts.text for facts in said if facts.role == "system" and facts.text), None)
    return Current(prompt=prompt, tools=tools)


def _bodies(part: TranscriptPart, items: list[Any]) -> Iterator[Mapping[str, Any]]:
    """What may hold a request: what stands around the items, lines that hold one, the head of a session."""
    for value in (part.header, *items):
        whole = value[0] if isinstance(value, list) and len(value) == 1 else value
        if isinstance(whole, Mapping) and "role" not in whole:
            for path in _BODIES:
                body = at(whole, path)
                if isinstance(body, Mapping):
                    yield body


def _prompt(value: Any) -> str | None:
    """A prompt as text, of a text, of blocks of text, or of an object around one."""
    if isinstance(value, Mapping):
        value = value.get("text")
    if isinstance(value, list):
        texts = [
            block["text"] for block in value if isinstance(block, Mapping) and _is_text(block.get("text"))
        ]
        value = "\n".join(texts)
    return value if _is_text(value) and value.strip() else None


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_list(value: Any) -> bool:
    return isinstance(value, list) and bool(value)
