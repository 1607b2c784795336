"""Where files are cut into blocks, and where they are not what their name says, nothing passes by."""

from __future__ import annotations

import gzip
import hashlib
import json
import random
from pathlib import Path

import pytest

from archiver.model import Member
from archiver.redact.file_forms import Held, Shape
from archiver.redact.files import FileRedactor
from archiver.redact.finder import Finder
from archiver.redact.members import MemberScan
from archiver.redact.raw import RawPass
from archiver.redact.scrub import Scrubber, never
from archiver.scratch import Scratch
from archiver.transcripts.source import CHUNK
from tests.redact.conftest import KEY
from tests.redact.support import expand


def delta(text: str) -> bytes:
    record = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}
    return json.dumps(record).encode() + b"\n"


@pytest.mark.parametrize("form", ["lines", "raw"])
def test_a_stream_that_a_block_cuts(finder: Finder, tmp_path: Path, form: str) -> None:
    secret = expand("ghp_{alnum:36}", 5)
    first, more = delta(secret[:20]), delta("word ")
    count, rest = divmod(CHUNK - len(first), len(more))
    data = more * (count - 1) + delta("word" + "x" * rest + " ") + first + delta(secret[20:]) + more * 9
    assert data[:CHUNK].endswith(first)
    with Scratch(tmp_path) as scratch:
        made = FileRedactor(finder, KEY, ()).copy(Held(data), Shape(form), "it", scratch)
        assert made.spooled is not None
        out = made.spooled.path.read_bytes()
    assert secret[:20].encode() not in out
    assert secret[20:].encode() not in out
    assert out.count(b"\n") == data.count(b"\n")


@pytest.mark.parametrize(
    "broken", [b'{"text": "\xff\xed"}', b"no JSON \x01", b'{"a": "\\q', b"", b"\xff\xfe{\0"]
)
def test_a_member_of_lines_that_are_no_json(scrubber: Scrubber, tmp_path: Path, broken: bytes) -> None:
    secret = expand("ghp_{alnum:36}", 6).encode()
    data = b'{"a": 1}\n' + broken + b" " + secret + b"\n" + b'{"b": "' + secret + b'"}\n'
    with Scratch(tmp_path) as scratch:
        member = Member("a.jsonl", data, len(data), hashlib.sha256(data).hexdigest(), 0o600)
        scan = MemberScan(scrubber, never, scratch, foreign=True)
        made = scan.scan(member)
        if made is None:
            assert scan.left_out
        else:
            out = made.source if isinstance(made.source, bytes) else made.source.read_bytes()
            assert secret not in out


def looked(scrubber: Scrubber, data: bytes) -> bool:
    work = RawPass(scrubber, None, "it", noting=True)
    work.feed(data)
    work.close()
    return work.found


def test_chance_in_bytes_that_are_no_text(scrubber: Scrubber) -> None:
    noise = random.Random(4)
    for _ in range(200):
        value = bytes(noise.randrange(128, 256) for _ in range(24))
        assert not looked(scrubber, b"\0\x93 pw=" + value + b"\0")
        assert not looked(scrubber, gzip.compress(b"x")[:10] + b"\x93 pw:" + value)


def test_chance_in_a_short_value(scrubber: Scrubber) -> None:
    assert not looked(scrubber, b"\0\x9dPW:6+o\xd9\x86S|\xb4")
    assert looked(scrubber, b"\0\x9dPW:6+o_xS|\xb4")


def test_a_credential_in_bytes_that_are_no_text(scrubber: Scrubber) -> None:
    for secret in ("ghp_{alnum:36}", "password={alnum:9}#{alnum:5}8x"):
        data = expand(secret, 8).encode()
        for behind in (b"\0", b"\x93\x20", b"\xff", b" \0"):
            assert looked(scrubber, b"\0\1\2 " + data + behind)
    assert looked(scrubber, gzip.compress(expand("ghp_{alnum:36}", 8).encode()))
