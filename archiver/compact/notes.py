"""The texts that compaction leaves in place of what it took out: one fixed grammar, written and read here.

    stub       = "[archived result: " tool " " string "; " conclusion ["; last line " string] "; " size
                 "; " reason "]"
    cut        = "[archived output: " size "; " number " bytes left out here]"
    attachment = "[archived attachment: " media "; " size "]"
    size       = number " bytes; sha256 " hex ["; artifacts " hex *("," hex)]
    conclusion = "ok" / "error" / "exit " number
    reason     = "superseded by a later call on the same target" / "older than the last " number " turns"
    tool       = 1*("A"-"Z" / "a"-"z" / "0"-"9" / "_" / "-" / "." / ":" / "/") / string
    string     = a JSON string; number = decimal without leading zeros; hex = 64 lower-case hex digits

A text is read as a note only if writing what was read gives the same text again, so there is one form for
each meaning and compaction finds its own work. Size and SHA-256 are those of the redacted content in UTF-8.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from archiver import jsonio
from archiver.compact.text import LAST_WINDOW, byte_length, encode, last_line, tail
from archiver.transcripts.outcome import PREAMBLE

Reason = Literal["superseded", "older"]

LINE_LIMIT: Final = 160
"""Bytes of a target or last line inside a stub."""

_HEX = r"[0-9a-f]{64}"
_NUMBER = r"(?:0|[1-9][0-9]{0,17})"
_STRING = r'"(?:[^"\\]|\\.)*"'
_SIZE = (
    rf"(?P<size>{_NUMBER}) bytes; sha256 (?P<sha256>{_HEX})(?:; artifacts (?P<artifacts>{_HEX}(?:,{_HEX})*))?"
)
_STUB = re.compile(
    rf"\[archived result: (?P<tool>[A-Za-z0-9_.:/-]+|{_STRING}) (?P<target>{_STRING}); "
    rf"(?P<conclusion>ok|error|exit -?{_NUMBER})(?:; last line (?P<last>{_STRING}))?; {_SIZE}; "
    rf"(?:superseded by a later call on the same target|older than the last (?P<turns>{_NUMBER}) turns)\]"
)
_CUT = re.compile(rf"\[archived output: {_SIZE}; (?P<left>{_NUMBER}) bytes left out here\]")
_ATTACHMENT = re.compile(rf"\[archived attachment: (?P<media>[!-:<-~]{{1,100}}); {_SIZE}\]")
_BARE = re.compile(r"[A-Za-z0-9_.:/-]+")
_EXIT = re.compile(
    rf"\s*{PREAMBLE}(?:Exit code:?|exit status:?|Process exited with code) (-?(?:0|[1-9][0-9]{{0,8}}))\b"
)
_EXIT_WITHIN: Final = 192
"""Characters within which an exit status is looked for: no more than the head that a cut output keeps."""
_STUB_START: Final = "[archived result: "
_CUT_START: Final = "\n[archived output: "
MAX_STUB: Final = 1 << 14


@dataclass(frozen=True, slots=True)
class Conclusion:
    """How a call ended: `ok`, `error` or `exit N`, and the last line that says something."""

    status: str
    last: str = ""


@dataclass(frozen=True, slots=True)
class Content:
    """Size in bytes, SHA-256 and the artifacts that hold it or parts of it."""

    size: int
    sha256: str
    artifacts: tuple[str, ...] = ()

    @classmethod
    def of(cls, text: str, artifacts: tuple[str, ...] = ()) -> Content:
        data = encode(text)
        return cls(len(data), hashlib.sha256(data).hexdigest(), artifacts)

    def __str__(self) -> str:
        kept = f"; artifacts {','.join(self.artifacts)}" if self.artifacts else ""
        return f"{self.size} bytes; sha256 {self.sha256}{kept}"


@dataclass(frozen=True, slots=True)
class Stub:
    """What stands in place of a tool result."""

    tool: str
    target: str
    conclusion: Conclusion
    content: Content
    reason: Reason
    turns: int = 0

    def __str__(self) -> str:
        tool = self.tool if _BARE.fullmatch(self.tool) else _quoted(self.tool)
        last = f"; last line {_quoted(self.conclusion.last)}" if self.conclusion.last else ""
        return (
            f"{_STUB_START}{tool} {_quoted(self.target)}; {self.conclusion.status}{last}; "
            f"{self.content}; {_reason(self.reason, self.turns)}]"
        )


def read_stub(text: str) -> Stub | None:
    """The stub that `text` is, if it is one."""
    if not text.startswith(_STUB_START) or len(text) > MAX_STUB:
        return None
    found = _STUB.fullmatch(text)
    if not found:
        return None
    tool, turns = found["tool"], found["turns"]
    try:
        stub = Stub(
            tool=jsonio.loads(tool) if tool.startswith('"') else tool,
            target=jsonio.loads(found["target"]),
            conclusion=Conclusion(found["conclusion"], jsonio.loads(found["last"]) if found["last"] else ""),
            content=_content(found),
            reason="superseded" if turns is None else "older",
            turns=int(turns or 0),
        )
    except ValueError:
        return None
    return stub if str(stub) == text else None


@dataclass(frozen=True, slots=True)
class CutOutput:
    """A large output of which head and tail stand inline; the whole is an artifact."""

    head: str
    tail: str
    content: Content

    def __str__(self) -> str:
        left = self.content.size - len(encode(self.head)) - len(encode(self.tail))
        return f"{self.head}{_CUT_START}{self.content}; {left} bytes left out here]\n{self.tail}"


def read_cut(text: str) -> CutOutput | None:
    """The cut output that `text` is, if it is one: the bytes inline and left out add up to its size."""
    start = text.find(_CUT_START)
    whole = byte_length(text) if start >= 0 else 0
    while start >= 0:
        found = _CUT.match(text, start + 1)
        if found and text.startswith("\n", found.end()):
            # Head and tail are all but the note, which is ASCII: no text is built to try a note that is none.
            inline = whole - (found.end() + 1 - start)
            if int(found["size"]) - inline == int(found["left"]):
                return CutOutput(text[:start], text[found.end() + 1 :], _content(found))
        start = text.find(_CUT_START, start + 1)
    return None


def attachment(media: str, content: Content) -> str:
    """The text that stands in place of an image or another attachment."""
    return f"[archived attachment: {media}; {content}]"


def attachments(text: str) -> Iterator[str]:
    """Digests of the artifacts that attachment notes in `text` name, each once."""
    seen = dict.fromkeys(
        digest for found in _ATTACHMENT.finditer(text) for digest in _content(found).artifacts
    )
    yield from seen


def without_attachments(text: str) -> str:
    """`text` without its attachment notes."""
    return _ATTACHMENT.sub("", text).strip() if "[archived attachment: " in text else text


def conclude(text: str, *, is_error: bool) -> Conclusion:
    """How a call ended, read from its result; of a note, what was read before it became one."""
    stub = read_stub(text)
    if stub is not None:
        return stub.conclusion
    found = _EXIT.match(text[:_EXIT_WITHIN])
    failed = "error" if is_error else "ok"
    status = f"exit {int(found[1])}" if found else failed
    return Conclusion(status, last_line(without_attachments(tail(text, LAST_WINDOW)), LINE_LIMIT))


def _content(found: re.Match[str]) -> Content:
    kept = found["artifacts"]
    return Content(int(found["size"]), found["sha256"], tuple(kept.split(",")) if kept else ())


def _reason(reason: Reason, turns: int) -> str:
    if reason == "superseded":
        return "superseded by a later call on the same target"
    return f"older than the last {turns} turns"


def _quoted(text: str) -> str:
    return jsonio.dumps(text).decode("utf-8")
