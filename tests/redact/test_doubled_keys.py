"""A key given twice hides nothing: a decoder keeps the last value, redaction reads both."""

from __future__ import annotations

import json
import random
import string
from pathlib import Path

import pytest

from archiver.model import Transcript, TranscriptPart
from archiver.redact import ExactValue, Redactor, new_key
from archiver.scratch import Scratch
from archiver.transcripts.reader import read

LINES = [
    '{"type":"user","a":"SECRET","a":1}',
    '{"type":"user","a":"SECRET", "a" :1}',
    '{"type":"user","x":{"a":["SECRET"],"a":1}}',
    r'{"type":"user","a":"SECRET","a":1,"b":"\u0022:"}',
    r'{"type":"user","a\\":"SECRET","a\\":1,"b":"\"\u003a"}',
    r'{"type":"user","a":"SECRET","\u0061":1}',
    '{"type":"user","a":"SECRET","a":123456789012345678901234567890}',
    '{"type":"user","SECRET":1,"SECRET":2}',
]
START = {
    "type": "user",
    "uuid": "0",
    "parentUuid": None,
    "sessionId": "s",
    "message": {"role": "user", "content": "Look."},
}


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("known", [True, False], ids=["known", "by rule"])
def test_both_values_are_redacted(line: str, known: bool, tmp_path: Path) -> None:
    rng = random.Random(line)
    token = "".join(rng.choices(string.ascii_letters + string.digits, k=36))
    secret = token if known else f"ghp_{token}"
    path = tmp_path / "session.jsonl"
    path.write_text("\n".join([json.dumps(START), line.replace("SECRET", secret), json.dumps(START)]))
    exact = [ExactValue("TOKEN", secret)] if known else []
    with Scratch(tmp_path) as scratch:
        found = Redactor.load(new_key(), exact=exact).transcript(read([path]).transcript, scratch)
        text = b"".join(block for part in found.value.parts for block in part.items.blocks())
    assert secret.encode() not in text
    assert b"[REDACTED:" in text


def test_nothing_of_a_part_is_lost(tmp_path: Path) -> None:
    """The sample above is read as a session, so that it is the pass over lines that is tested."""
    path = tmp_path / "session.jsonl"
    path.write_text("\n".join([json.dumps(START), LINES[0]]))
    transcript: Transcript = read([path]).transcript
    part: TranscriptPart = transcript.parts[0]
    assert (transcript.dialect, part.media) == ("claude-code", "jsonl")
