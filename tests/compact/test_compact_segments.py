"""Segments are cut at line ends, at the same places whatever the blocks were."""

from __future__ import annotations

import hashlib
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from archiver.compact.segments import SegmentWriter
from archiver.model import TranscriptPart
from archiver.scratch import Scratch

lines = st.lists(st.binary(max_size=40).map(lambda data: data.replace(b"\n", b"")), max_size=40)


@given(lines, lines, st.data())
def test_same_lines_same_segments(first: list[bytes], second: list[bytes], data: st.DataObject) -> None:
    found = []
    for _ in range(2):
        with Scratch() as scratch:
            writer = SegmentWriter("transcript", scratch, segment=64)
            parts = [
                writer.part(TranscriptPart(name="p"), _blocks(part, data), len(part))
                for part in (first, second)
            ]
            read = [list(part.items.lines()) for part in parts]
            assert read == [first, second]
            assert [path for part in parts for path in part.segments] == [m.path for m in writer.members]
            bodies = [Path(str(member.source)).read_bytes() for member in writer.members]
            for member, body in zip(writer.members, bodies, strict=True):
                assert (member.size, member.sha256) == (len(body), hashlib.sha256(body).hexdigest())
                assert body.endswith(b"\n")
                assert len(body) <= 64 or body.count(b"\n") == 1
            found.append((bodies, [m.path for m in writer.members]))
    assert found[0] == found[1]


def _blocks(held: list[bytes], data: st.DataObject) -> list[bytes]:
    blocks: list[bytes] = []
    start = 0
    while start < len(held):
        end = data.draw(st.integers(start + 1, len(held)))
        blocks.append(b"".join(line + b"\n" for line in held[start:end]))
        start = end
    return blocks


def test_a_segment_takes_as_many_lines_as_fit_and_a_long_line_stands_alone(tmp_path: Path) -> None:
    with Scratch(tmp_path) as scratch:
        writer = SegmentWriter("transcript", scratch, segment=10)
        writer.part(TranscriptPart(name="p"), [b"1234\n1234\n", b"12345678901234\n1\n2\n"], 5)
        bodies = [Path(str(member.source)).read_bytes() for member in writer.members]
        assert bodies == [b"1234\n1234\n", b"12345678901234\n", b"1\n2\n"]
        assert [member.path for member in writer.members] == [f"transcript/000{n}.jsonl" for n in (1, 2, 3)]


def test_raw_parts_are_cut_anywhere_and_have_their_own_suffix(tmp_path: Path) -> None:
    with Scratch(tmp_path) as scratch:
        writer = SegmentWriter("transcript", scratch, segment=8)
        part = writer.part(TranscriptPart(name="p", media="raw"), [b"no line", b" end at all"], None)
        bodies = [Path(str(member.source)).read_bytes() for member in writer.members]
        assert bodies == [b"no line ", b"end at a", b"ll"]
        assert part.segments == tuple(f"transcript/000{n}.bin" for n in (1, 2, 3))
        assert b"".join(part.items.blocks()) == b"no line end at all"
