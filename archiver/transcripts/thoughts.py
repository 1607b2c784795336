"""Reasoning that the Messages API refuses: broken or foreign seals, and changes in the last turn.

Whether reasoning "remained as it was" only the provider can judge. What can be seen: that it lost a field, or
in the last turn that it no longer stands at the beginning of its response. Then it goes, and with it all
reasoning of that response: the API takes responses without any.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from archiver.transcripts.blocks import CLIENT_CALL, REASONING
from archiver.transcripts.checks import is_empty_text
from archiver.transcripts.dialect import Problem

_SEALED: Final = {"thinking": "signature", "redacted_thinking": "data"}
_BASE64: Final = re.compile(r"(?:[A-Za-z0-9+/]{4})*+(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")
_FERNET: Final = "gAAAA"
"""How what OpenAI encrypts begins; routers put it where the signature belongs."""


class Thoughts:
    """Takes in the pieces of one conversation's responses; memory grows with those that are wrong only."""

    def __init__(self) -> None:
        self._found: list[Problem] = []
        self._turn: list[Problem] = []
        """What matters only in the last turn."""
        self._group: str | None = None
        self._started = False
        self._reasoned: list[int] = []
        self._wrong: tuple[str, str] | None = None
        """Code and detail of what is wrong with the response's reasoning, wherever it stands."""
        self._moved = False
        self._said = False
        """True once the response said something else than reasoning."""

    def said(self, item: int, content: Any, group: str | None) -> None:
        """A piece of a response; pieces of one response carry the same `group`, if they have one."""
        if self._started and (group is None or group != self._group):
            self._close()
        self._started, self._group = True, group
        kinds = content if isinstance(content, list) else ()
        for block in kinds:
            kind = block.get("type") if isinstance(block, dict) else None
            if isinstance(kind, str) and kind in REASONING:
                self._reason(item, block, kind)
            elif not is_empty_text(block):
                # A model may say nothing before it thinks, and a tool of the provider's may come before both.
                self._said = self._said or kind in ("text", CLIENT_CALL)

    def _reason(self, item: int, block: dict[str, Any], kind: str) -> None:
        self._moved = self._moved or (self._said and not self._reasoned)
        if item not in self._reasoned[-1:]:
            self._reasoned.append(item)
        self._wrong = self._wrong or _wrong(block, kind)

    def asked(self) -> None:
        """Somebody said something new, so another turn begins."""
        self._close()
        self._turn.clear()

    def boundary(self) -> None:
        """What was thought before this, the model sees no more."""
        self._found.clear()
        self._turn.clear()
        self._forget()

    def problems(self) -> Iterator[Problem]:
        """What has to go, once all was seen."""
        self._close()
        yield from self._found
        yield from self._turn

    def _close(self) -> None:
        if self._wrong is not None:
            code, detail = self._wrong
            self._found += [Problem(code, item, detail, loose=True) for item in self._reasoned]  # type: ignore[arg-type]  # a word of the list
        elif self._moved:
            detail = "the response does not begin with its reasoning, as the provider gave it"
            self._turn += [Problem("changed_reasoning", item, detail) for item in self._reasoned]
        self._forget()

    def _forget(self) -> None:
        self._started, self._group, self._wrong = False, None, None
        self._moved = self._said = False
        self._reasoned = []


def _wrong(block: dict[str, Any], kind: str) -> tuple[str, str] | None:
    """What anybody can see of a block of reasoning that its provider will not take back."""
    seal = block.get(_SEALED[kind])
    if not isinstance(seal, str) or not seal:
        return "broken_seal", "reasoning without its signature"
    if seal.startswith(_FERNET):
        return "foreign_reasoning", "reasoning that another provider sealed"
    if _BASE64.fullmatch(seal) is None or "REDACTED" in seal:
        return "broken_seal", "the signature of the reasoning is destroyed"
    if kind == "thinking" and not isinstance(block.get("thinking"), str):
        return "changed_reasoning", "reasoning has lost its text"
    return None
