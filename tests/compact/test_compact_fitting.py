"""Limits of outputs, bundles and runs: what gives way, in which order, and what is said of it."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archiver.compact import CompactOptions, Fitted, compact, fit
from archiver.compact.fitting import KEPT
from archiver.compact.notes import read_cut
from archiver.errors import LimitExceededError
from archiver.model import Checkpoint, Items, Member, Transcript, TranscriptPart
from archiver.model.limits import Limits
from archiver.scratch import Scratch
from archiver.transcripts import get_dialect
from compact.sessions import BLOCKS, DIALECTS, Turn, Use, checkpoint, items_of, picture, redacted, write

MIB = 1 << 20
NOTHING = Limits()


@pytest.fixture
def scratch() -> Iterator[Scratch]:
    with Scratch() as made:
        yield made


def log(size: int, word: str = "line") -> str:
    lines = "".join(f"{word} {number} of a log\n" for number in range(size // 16 + 1))
    return lines[:size]


def session(dialect: str, *uses: Use) -> Checkpoint:
    turns = [Turn(ask="go on", uses=(use,)) for use in uses]
    written = write([*turns, Turn(say="done")], dialect)
    return checkpoint(written.dialect, written.lines)


def fitted(
    value: Checkpoint,
    limits: Limits,
    scratch: Scratch,
    *,
    full: bool = False,
    others: int = 0,
    **options: Any,
) -> Fitted:
    compacted = compact(redacted(value), None, CompactOptions(**options), scratch)
    return fit(compacted, limits, scratch, others=lambda _: others, full=full)


def content(member: Member) -> bytes:
    data = member.source if isinstance(member.source, bytes) else member.source.read_bytes()
    assert (len(data), hashlib.sha256(data).hexdigest()) == (member.size, member.sha256)
    return data


def members(found: Fitted) -> dict[str, bytes]:
    held = found.compacted.members.value
    assert len({member.path for member in held}) == len(held)
    return {member.path: content(member) for member in held}


def artifacts(found: Fitted) -> dict[str, bytes]:
    return {path: data for path, data in members(found).items() if path.startswith("artifacts/")}


def holds_together(found: Fitted) -> None:
    """Whatever is cut: members are listed, what the list lacks is said, and items are where segments are."""
    value = found.compacted.checkpoint.value
    held = members(found)
    listed = {f"artifacts/{artifact.sha256}" for artifact in value.artifacts}
    cut = {one.member: one for one in found.cuts}
    assert set(artifacts(found)) <= listed
    assert listed - set(held) == {path for path in cut if path.startswith("artifacts/")}
    for one in found.cuts:
        assert one.kept == (len(held[one.kept_as]) if one.kept_as else 0)
        assert (one.policy == "reference") == (one.kept_as is None)
        assert one.kept < one.size
    for transcript in (value.transcript, value.full_transcript):
        for part in transcript.parts if transcript else ():
            assert b"".join(held[path] for path in part.segments) == b"".join(part.items.blocks())
            assert part.items.size == sum(len(held[path]) for path in part.segments)
            if not part.items.raw:
                assert part.items.count == len(list(part.items.lines()))


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("keep_turns", [1, 20])
def test_an_output_over_its_limit_keeps_head_and_tail(
    dialect: str, keep_turns: int, scratch: Scratch
) -> None:
    text = log(3 * MIB)
    found = fitted(
        session(dialect, Use("Bash", {"command": "make"}, text)),
        Limits(artifact=MIB),
        scratch,
        keep_turns=keep_turns,
    )
    holds_together(found)
    (cut,) = found.cuts
    digest = hashlib.sha256(text.encode()).hexdigest()
    assert (cut.member, cut.limit, cut.policy) == (f"artifacts/{digest}", "artifact", "head-and-tail")
    ((path, data),) = artifacts(found).items()
    assert (cut.size, cut.kept, cut.kept_as) == (len(text), len(data), path)
    kept = read_cut(data.decode())
    assert kept is not None
    assert (kept.head, kept.tail) == (text[:KEPT], text[-KEPT:])
    assert (kept.content.size, kept.content.sha256) == (len(text), digest)
    whole, part = found.compacted.checkpoint.value.artifacts
    assert (whole.sha256, whole.size, part.size) == (digest, len(text), len(data))
    assert part.summary == f"head and tail of {len(text)} bytes; sha256 {digest}"
    # The transcript still names the whole, and is as valid as it was.
    items = items_of(found.compacted.checkpoint.value)
    assert digest in str(items)
    assert not get_dialect(dialect).problems(iter(items))


@pytest.mark.parametrize("dialect", BLOCKS)
def test_a_picture_has_neither_head_nor_tail(dialect: str, scratch: Scratch) -> None:
    uses = [Use("Shot", {"n": number}, "seen", image=300_000) for number in range(5)]
    found = fitted(session(dialect, *uses), Limits(artifact=MIB // 8), scratch)
    holds_together(found)
    (cut,) = found.cuts
    assert (cut.limit, cut.policy, cut.kept) == ("artifact", "reference", 0)
    assert cut.size == len(base64.b64decode(picture(300_000)))
    assert not artifacts(found)
    assert cut.said.endswith(": not carried")


@pytest.mark.parametrize("policy", ["refuse", "reference"])
def test_other_policies_for_one_artifact(policy: Any, scratch: Scratch) -> None:
    value = session("anthropic-messages", Use("Bash", {"command": "make"}, log(3 * MIB)))
    limits = Limits(artifact=MIB, artifact_policy=policy)
    if policy == "refuse":
        with pytest.raises(LimitExceededError, match=r"artifacts/[0-9a-f]{64} has 3145728 bytes, the limit"):
            fitted(value, limits, scratch)
        return
    found = fitted(value, limits, scratch)
    holds_together(found)
    assert [(cut.limit, cut.policy) for cut in found.cuts] == [("artifact", "reference")]


def test_an_artifact_may_not_be_larger_than_a_member(scratch: Scratch) -> None:
    value = session("anthropic-messages", Use("Bash", {"command": "make"}, log(3 * MIB)))
    found = fitted(value, Limits(artifact=9 * MIB, member=MIB), scratch)
    assert [cut.limit for cut in found.cuts] == ["artifact"]


@pytest.mark.parametrize("text", ["x" * (200 << 10), log(200 << 10)])
def test_a_result_without_a_call_is_cut_wherever_it_stands(text: str, scratch: Scratch) -> None:
    lost = {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "toolu_lost", "content": text}],
    }
    written = write([Turn(ask="start", say="a")] + [Turn(ask="more", say="b")] * 3, "anthropic-messages")
    lines = [*written.lines[:2], *Items.of([lost]).lines(), *written.lines[2:]]
    for turns in (1, 20):
        made = compact(
            redacted(checkpoint("anthropic-messages", lines)), None, CompactOptions(keep_turns=turns), scratch
        )
        (artifact,) = made.checkpoint.value.artifacts
        assert artifact.size == len(text)
        assert artifact.summary.startswith("a result without a call: ok")
        again = compact(made.checkpoint, None, CompactOptions(keep_turns=turns), scratch)
        assert items_of(again.checkpoint.value) == items_of(made.checkpoint.value)


def many(count: int, size: int) -> Checkpoint:
    uses = [
        Use("Bash", {"command": f"c{number}"}, log(size + number * 1000, f"log{number}"))
        for number in range(count)
    ]
    return session("anthropic-messages", *uses)


def test_of_a_bundle_the_largest_artifacts_give_way_first(scratch: Scratch) -> None:
    found = fitted(many(4, 600_000), Limits(bundle=2 * MIB, member=MIB // 4), scratch, others=1000)
    assert found.cuts  # the limit of a member counts for artifacts: all were cut
    found = fitted(many(4, 600_000), Limits(bundle=1_600_000), scratch, others=1000)
    holds_together(found)
    assert [(cut.limit, cut.policy, cut.size) for cut in found.cuts] == [
        ("bundle", "head-and-tail", 603_000), ("bundle", "head-and-tail", 602_000)
    ]  # fmt: skip
    assert sum(map(len, members(found).values())) + 1000 <= 1_600_000


def test_and_to_reference_where_heads_and_tails_are_too_much(scratch: Scratch) -> None:
    limits = Limits(bundle=400_000)
    found = fitted(many(4, 600_000), limits, scratch)
    holds_together(found)
    assert {cut.limit for cut in found.cuts} == {"bundle"}
    assert len(found.cuts) == 4
    assert {cut.policy for cut in found.cuts} == {"head-and-tail", "reference"}
    assert sum(map(len, members(found).values())) <= 400_000
    only = fitted(many(4, 600_000), Limits(bundle=400_000, bundle_policy="reference"), scratch)
    holds_together(only)
    assert {cut.policy for cut in only.cuts} == {"reference"}
    none = fitted(many(4, 600_000), Limits(bundle=400_000, bundle_policy="refuse"), scratch)
    assert none.cuts == ()
    assert len(artifacts(none)) == 4


def test_of_too_many_members_the_smallest_go(scratch: Scratch) -> None:
    found = fitted(many(6, 100_000), Limits(members=9), scratch)
    holds_together(found)
    assert [cut.size for cut in found.cuts] == [100_000, 101_000]
    assert len(found.compacted.members.value) + 4 == 9


@pytest.mark.parametrize(
    ("policy", "kept"), [("reference", set()), ("head-and-tail", {"head-and-tail"}), ("refuse", None)]
)
def test_a_run_that_is_full_carries_less(policy: Any, kept: set[str] | None, scratch: Scratch) -> None:
    limits = Limits(run_policy=policy)
    assert fitted(many(2, 600_000), limits, scratch).cuts == ()
    found = fitted(many(2, 600_000), limits, scratch, full=True)
    holds_together(found)
    assert {cut.limit for cut in found.cuts} == (set() if kept is None else {"run"})
    if kept is not None:
        assert {cut.policy for cut in found.cuts if cut.kept_as} == kept
        assert len(artifacts(found)) == (2 if kept else 0)


def opaque(*parts: TranscriptPart, full: bool = False) -> Checkpoint:
    value = checkpoint("opaque", [])
    made = Transcript(dialect="opaque", parts=parts)
    return value.model_copy(update={"transcript": made, "full_transcript": made if full else None})


def chunks(text: bytes) -> Items:
    return Items.of_chunks(text[at : at + MIB] for at in range(0, len(text), MIB))


def test_a_log_of_unknown_format_keeps_head_and_tail(scratch: Scratch) -> None:
    text = log(6 * MIB).encode()
    raw = TranscriptPart(name="build.log", media="raw", items=chunks(text))
    small = TranscriptPart(name="note.txt", media="raw", items=chunks(b"kept\n"))
    found = fitted(opaque(raw, small), Limits(bundle=2 * MIB), scratch)
    holds_together(found)
    (cut,) = found.cuts
    assert (cut.member, cut.limit, cut.policy) == ("build.log", "bundle", "head-and-tail")
    data = members(found)["transcript/0001.bin"]
    assert members(found)[found.compacted.checkpoint.value.transcript.parts[1].segments[0]] == b"kept\n"
    lines = data.splitlines(keepends=True)
    (note,) = [line for line in lines if line.startswith(b"[archived file: ")]
    place = lines.index(note)
    first, last = b"".join(lines[:place]), b"".join(lines[place + 1 :])
    assert text.startswith(first)
    assert text.endswith(last)
    assert first.endswith(b"\n")
    assert text[-len(last) - 1 : -len(last)] == b"\n"
    left = len(text) - len(first) - len(last)
    assert note.decode() == f"[archived file: {len(text)} bytes; {left} bytes left out here]\n"


def test_lines_of_json_of_unknown_format_stay_lines_of_json(scratch: Scratch) -> None:
    items = Items.of({"n": number, "text": "x" * 200} for number in range(8_000))
    found = fitted(opaque(TranscriptPart(name="log.jsonl", items=items)), Limits(bundle=MIB), scratch)
    holds_together(found)
    (part,) = found.compacted.checkpoint.value.transcript.parts
    values = list(part.items.values())
    (note,) = [value for value in values if isinstance(value, str)]
    assert note.startswith("[archived file: ")
    numbers = [value["n"] for value in values if not isinstance(value, str)]
    half = values.index(note)
    assert numbers[:half] == list(range(half))
    assert numbers[half:] == list(range(8_000 - len(numbers[half:]), 8_000))


@pytest.mark.parametrize("policy", ["head-and-tail", "reference"])
def test_a_file_that_is_no_text_is_left_out(policy: Any, scratch: Scratch) -> None:
    raw = TranscriptPart(name="core", media="raw", items=chunks(b"\x7fELF\0" * 500_000))
    found = fitted(opaque(raw), Limits(bundle=MIB, bundle_policy=policy), scratch)
    holds_together(found)
    assert [(cut.member, cut.policy, cut.kept) for cut in found.cuts] == [("core", "reference", 0)]
    (part,) = found.compacted.checkpoint.value.transcript.parts
    assert (part.segments, list(part.items.blocks())) == ((), [])


def test_the_copy_of_the_whole_transcript_goes_before_a_file_is_cut(scratch: Scratch) -> None:
    text = log(3 * MIB).encode()
    raw = TranscriptPart(name="build.log", media="raw", items=chunks(text))
    found = fitted(opaque(raw, full=True), Limits(bundle=4 * MIB), scratch)
    holds_together(found)
    assert [(cut.member, cut.policy, cut.size) for cut in found.cuts] == [("full/", "reference", len(text))]
    assert found.compacted.checkpoint.value.full_transcript is None
    assert b"".join(members(found).values()) == text


def test_a_known_conversation_is_never_cut(scratch: Scratch) -> None:
    value = checkpoint("anthropic-messages", [*Items.of([{"role": "user", "content": "x" * MIB}]).lines()])
    found = fitted(value, Limits(bundle=MIB // 2), scratch)
    assert found.cuts == ()
    assert sum(map(len, members(found).values())) > MIB


def test_what_fits_is_the_very_same(scratch: Scratch) -> None:
    compacted = compact(redacted(many(2, 100_000)), None, CompactOptions(), scratch)

    def asked(_: Checkpoint) -> int:
        raise AssertionError("the state is not looked at where it cannot matter")

    assert fit(compacted, NOTHING, scratch, others=asked).compacted is compacted


@settings(max_examples=15, deadline=None)
@given(
    st.lists(st.integers(66_000, 400_000), min_size=1, max_size=5),
    st.integers(60_000, 900_000),
    st.integers(100_000, 1_500_000),
    st.sampled_from(["head-and-tail", "reference"]),
    st.booleans(),
)
def test_whatever_the_limits_what_is_carried_holds_together_and_fits(
    sizes: list[int], artifact: int, bundle: int, policy: Any, full: bool
) -> None:
    uses = [Use("Bash", {"command": f"c{n}"}, log(size, f"w{n}")) for n, size in enumerate(sizes)]
    value = session("anthropic-messages", *uses)
    limits = Limits(artifact=artifact, bundle=bundle, artifact_policy=policy, bundle_policy=policy)
    with Scratch() as scratch:
        found = fitted(value, limits, scratch, full=full)
        holds_together(found)
        assert all(len(data) <= artifact + 300 for data in artifacts(found).values())
        rest = sum(len(data) for path, data in members(found).items() if not path.startswith("artifacts/"))
        if rest + 200_000 < bundle:
            assert sum(map(len, members(found).values())) <= bundle
        assert not (full and artifacts(found))


def test_of_very_many_outputs_each_is_carried_or_told_of(scratch: Scratch) -> None:
    uses = [Use("Bash", {"command": f"c{n}"}, log(70_000, f"w{n}")) for n in range(40)]
    found = fitted(session("anthropic-messages", *uses), Limits(bundle=MIB), scratch)
    holds_together(found)
    assert len(found.cuts) + len(artifacts(found)) >= 40
    assert sum(map(len, members(found).values())) <= MIB
