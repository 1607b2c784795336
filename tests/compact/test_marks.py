"""A transcript that grows: what was a segment before stays one, byte for byte."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from spool.making import checkpoint

from archiver.compact import Compacted, CompactOptions, Marks, compact
from archiver.compact.segments import SegmentWriter
from archiver.model import Items, Member, Receipt, TranscriptPart
from archiver.redacted import vouch
from archiver.scratch import Scratch

TEXT = random.Random(5)
OPTIONS = CompactOptions(keep_turns=3)


def turn(number: int) -> list[dict[str, Any]]:
    """A call that reads a file, some of them again, and its result."""
    words = " ".join(str(TEXT.randrange(10**6)) for _ in range(200))
    call = {"type": "tool_use", "id": f"t{number}", "name": "Read", "input": {"file_path": f"f{number % 7}"}}
    result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": words}
    return [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]


def compacted(messages: list[dict[str, Any]], scratch: Scratch, marks: Marks | None = None) -> Compacted:
    part = TranscriptPart(name="messages.jsonl", items=Items.of(messages))
    made = checkpoint("r", "note")
    transcript = made.transcript.model_copy(update={"parts": (part,)})
    state = made.model_copy(update={"transcript": transcript})
    return compact(vouch(state, Receipt()), None, OPTIONS, scratch, marks=marks)


def paths(found: Compacted) -> dict[str, str]:
    return {member.path: member.sha256 for member in found.members.value}


@pytest.fixture
def messages() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [{"role": "user", "content": "go on"}]
    for number in range(12):
        found += turn(number)
    return found


def test_turns_that_come_leave_the_segments_before(messages: list[dict[str, Any]], tmp_path: Path) -> None:
    with Scratch(tmp_path) as scratch:
        first = compacted(messages, scratch)
        assert first.report.stubs, "something is old"
        before = paths(first)
        marks = first.marks
        for number in range(12, 30):
            messages += turn(number)
            found = compacted(messages, scratch, marks)
            after = paths(found)
            assert before.items() <= after.items()
            assert len(after) == len(before) + 1
            before, marks = after, found.marks
        full = compacted(messages, scratch)
        assert paths(full).keys() == {"transcript/0001.jsonl"}
        assert sum(member.size for member in full.members.value) < sum(
            member.size for member in found.members.value
        )


def test_many_turns_at_once_are_shortened_as_in_a_full_bundle(
    messages: list[dict[str, Any]], tmp_path: Path
) -> None:
    """And stay as they were then, while those that were recent stay whole."""
    with Scratch(tmp_path) as scratch:
        first = compacted(messages, scratch)
        for number in range(12, 30):
            messages += turn(number)
        second = compacted(messages, scratch, first.marks)
        assert paths(first).items() <= paths(second).items()
        shown = second.report.stubs.total() - first.report.stubs.total()
        assert shown == 18 - OPTIONS.keep_turns
        for number in range(30, 50):
            messages += turn(number)
        third = compacted(messages, scratch, second.marks)
        assert paths(second).items() <= paths(third).items()


def test_a_call_that_was_open_then_supersedes_nothing(messages: list[dict[str, Any]], tmp_path: Path) -> None:
    """Its answer came since: stubs that were there keep their reason."""
    messages += (last := turn(12))[:1]
    with Scratch(tmp_path) as scratch:
        first = compacted(messages, scratch)
        messages += last[1:]
        found = compacted(messages, scratch, first.marks)
        assert paths(first).items() <= paths(found).items()


def test_what_changed_in_the_middle_is_a_segment_of_its_own(tmp_path: Path) -> None:
    lines = [b'{"n":%d}\n' % number for number in range(9)]
    with Scratch(tmp_path) as scratch:
        one = written(lines[:3], scratch, ())
        two = written(lines[:6], scratch, one.segments)
        three = written(lines, scratch, two.segments)
        assert [member.path[-6:-4] for member in three.members]
        assert names(three) == ["0001", "0002", "0003"]
        lines[4] = b'{"n":"changed"}\n'
        four = written(lines, scratch, three.segments)
        assert names(four) == ["0001", "0004", "0003"]
        assert joined(four.members) == b"".join(lines)
        five = written(lines[:8], scratch, four.segments)
        assert names(five) == ["0001", "0004", "0005"], "what was cut off is no segment that was there"
        assert joined(five.members) == b"".join(lines[:8])


def test_segments_have_a_largest_size_all_the_same(tmp_path: Path) -> None:
    lines = [b"%08d\n" % number for number in range(10)]
    with Scratch(tmp_path) as scratch:
        one = written(lines, scratch, (), segment=45)
        assert [member.size for member in one.members] == [45, 45]
        longer = [line.rstrip() + b"." * 30 + b"\n" for line in lines]
        two = written(longer, scratch, one.segments, segment=45)
        assert max(member.size for member in two.members) <= 45
        assert joined(two.members) == b"".join(longer)


@pytest.mark.parametrize("seed", range(40))
def test_any_cut_and_any_change_gives_the_same_bytes(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    raw = seed % 4 == 0
    lines: list[bytes] = []
    before: Any = ()
    with Scratch(tmp_path) as scratch:
        for _ in range(6):
            if lines and chance.random() < 0.3:
                lines[chance.randrange(len(lines))] = b"changed %d\n" % chance.randrange(100)
            if lines and chance.random() < 0.2:
                del lines[chance.randrange(len(lines)) :]
            lines += [b"x" * chance.randrange(1, 9) + b"\n" for _ in range(chance.randrange(6))]
            made = written(lines, scratch, before, segment=40, raw=raw, block=chance.randrange(1, 4))
            assert joined(made.members) == b"".join(lines)
            assert len({member.path for member in made.members}) == len(made.members)
            before = made.segments


def written(
    lines: list[bytes],
    scratch: Scratch,
    before: Any,
    *,
    segment: int = 1 << 20,
    raw: bool = False,
    block: int = 2,
) -> SegmentWriter:
    writer = SegmentWriter("transcript", scratch, segment=segment, before=before)
    part = TranscriptPart(name="p", items=Items.of([]), media="raw" if raw else "jsonl")
    blocks = [b"".join(lines[at : at + block]) for at in range(0, len(lines), block)]
    writer.part(part, blocks, None)
    return writer


def names(writer: SegmentWriter) -> list[str]:
    return [member.path.partition("/")[2].partition(".")[0] for member in writer.members]


def joined(members: list[Member]) -> bytes:
    return b"".join(member.source.read_bytes() for member in members if isinstance(member.source, Path))
