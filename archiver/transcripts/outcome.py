"""How a call ended, told by its text alone: for formats whose results have no flag for an error."""

from __future__ import annotations

import re
from typing import Final

from archiver.transcripts.dialect import SYNTHETIC

PREAMBLE: Final = r"(?:Chunk ID: \S{1,64}\n)?(?:Wall time: [0-9.]{1,20} seconds\n)?"
"""Pattern of what Codex may write ahead of the exit status of a command."""
_WORD = r'(?:[A-Za-z0-9_.:/-]+|"(?:[^"\\]|\\.)*")'
_FAILED = re.compile(
    rf"\s*(?:{re.escape(SYNTHETIC)}"
    r"|(?:fatal |internal )?error[ \t]*(?:[:(\[\n]|\Z)|[A-Za-z_.]{1,60}(?:Error|Exception):"
    r"|Traceback \(most recent call last\)|<returncode>-?[1-9]"
    rf"|{PREAMBLE}(?:Exit code:?|exit status:?|Process exited with code) -?[1-9]"
    rf'|\[archived result: {_WORD} "(?:[^"\\]|\\.)*"; (?:error|exit -?[1-9]))',
    re.IGNORECASE,
)
_SYNTHETIC = re.compile(rf"(?:Error: )?{re.escape(SYNTHETIC)}")
_ENDED = re.compile(r"\[The command completed with exit code -?[1-9]")
_END: Final = 1024
"""Characters at the end in which a harness that writes the exit status last, as OpenHands does, has it."""


def is_synthetic(text: str) -> bool:
    """True for a result that a repair made because none was recorded; the real one may come after it."""
    return _SYNTHETIC.match(text) is not None


def failed(text: str) -> bool:
    """True for a result that begins as errors do, or tells of a failed exit; the stub of one counts too."""
    return _FAILED.match(text) is not None or _ENDED.search(text, max(len(text) - _END, 0)) is not None
