"""Transcripts compared: one that goes on, one that parts, and what compaction does to neither."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from compact.sessions import DIALECTS, Turn, Use, redacted, write
from compact.sessions import checkpoint as saved
from hypothesis import given, settings
from hypothesis import strategies as st

from archiver.compact import CompactOptions, compact
from archiver.comparing import compare
from archiver.model import Checkpoint, Transcript
from archiver.model.difference import PartChange
from archiver.scratch import Scratch

from .sides import checkpoint, messages, part, raw, side


@pytest.fixture
def scratch() -> Iterator[Scratch]:
    with Scratch() as made:
        yield made


def compared(old: Transcript, new: Transcript) -> tuple[PartChange, ...]:
    return compare(side(checkpoint(transcript=old)), side(checkpoint(transcript=new), 2)).transcript


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": [{"type": "text", "text": text}]}


def test_one_that_goes_on() -> None:
    begin = [user("a"), assistant("b")]
    (change,) = compared(messages(*begin), messages(*begin, user("c"), assistant("d"), user("e")))
    assert (change.state, change.before, change.after, change.added) == ("continued", 2, 5, 3)
    assert change.by_role == {"assistant": 1, "user": 2}
    assert change.common == 2


def test_one_that_parts() -> None:
    old = messages(user("a"), assistant("b"), user("c"))
    (change,) = compared(old, messages(user("a"), assistant("other")))
    assert (change.state, change.common, change.added, change.by_role) == ("parted", 1, 1, {"assistant": 1})
    (cut,) = compared(old, messages(user("a")))
    assert (cut.state, cut.common, cut.added) == ("parted", 1, 0)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.sampled_from("abc"), max_size=12), st.lists(st.sampled_from("abc"), max_size=12))
def test_both_begin_with_as_many_as_they_do(one: list[str], other: list[str]) -> None:
    common = 0
    while common < min(len(one), len(other)) and one[common] == other[common]:
        common += 1
    found = compared(messages(*map(user, one)), messages(*map(user, other)))
    if one == other:
        assert found == ()
        return
    (change,) = found
    assert (change.common, change.added) == (common, len(other) - common)
    assert (change.state == "continued") == (other[: len(one)] == one)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_compaction_is_no_change(dialect: str, scratch: Scratch) -> None:
    turns = [
        Turn(ask=f"ask {n}", thinking=f"hm {n}", say=f"say {n}", uses=(Use("Bash", {"c": n}, "out\n" * 400),))
        for n in range(6)
    ]
    turns[3] = Turn(ask="ask 3", say="A pause, behind which a message begins in every format.")
    short, long = (
        compact(
            redacted(saved(dialect, write(some, dialect).lines)),
            None,
            CompactOptions(keep_turns=keep),
            scratch,
        ).checkpoint.value
        for some, keep in ((turns[:4], 20), (turns, 1))
    )
    (change,) = compare(side(short), side(long, 2)).transcript
    assert (change.state, change.common) == ("continued", change.before)
    assert change.added == change.after - change.before > 0
    assert set(change.by_role) <= {"user", "assistant", "tool"}


def test_what_stands_around_the_messages() -> None:
    old, new = (
        Transcript(
            dialect="anthropic-messages",
            parts=(part(user("a"), media="json", header={"system": text}, items_at=("messages",)),),
        )
        for text in ("old", "new")
    )
    (change,) = compared(old, new)
    assert (change.header, change.added, change.state) == (True, 0, "continued")
    assert compared(old, old) == ()


def test_files_by_name_and_the_main_one_whatever_it_is_called() -> None:
    old = Transcript(dialect="anthropic-messages", parts=(part(user("a"), name="old"), part(name="gone")))
    new = Transcript(
        dialect="anthropic-messages", parts=(part(user("a"), name="new"), part(user("b"), name="more"))
    )
    assert [(one.name, one.state, one.added) for one in compared(old, new)] == [
        ("gone", "gone", 0), ("more", "added", 1)
    ]  # fmt: skip


@settings(max_examples=50, deadline=None)
@given(st.binary(max_size=300), st.binary(max_size=300), st.integers(1, 97), st.integers(1, 97))
def test_bytes_of_an_unknown_format(one: bytes, more: bytes, size: int, other: int) -> None:
    found = compared(
        Transcript(parts=(raw(one, size=size),)), Transcript(parts=(raw(one + more, size=other),))
    )
    if not more:
        assert found == ()
        return
    (change,) = found
    assert (change.unit, change.state, change.common) == ("bytes", "continued", len(one))
    assert (change.before, change.after, change.added) == (len(one), len(one + more), len(more))


def test_bytes_that_part() -> None:
    one, other = b"x" * 200_000 + b"a" * 10, b"x" * 200_000 + b"b" * 30
    (change,) = compared(Transcript(parts=(raw(one),)), Transcript(parts=(raw(other, size=777),)))
    assert (change.state, change.common, change.added) == ("parted", 200_000, 30)


def test_lines_of_an_unknown_format() -> None:
    old, new = messages({"a": 1}, dialect="opaque"), messages({"a": 1}, {"a": 2}, dialect="opaque")
    (change,) = compared(old, new)
    assert (change.state, change.by_role) == ("continued", {"line": 1})


def test_another_dialect_is_told(scratch: Scratch) -> None:
    old: Checkpoint = checkpoint(transcript=messages(user("a")))
    found = compare(side(old), side(checkpoint(transcript=messages(user("a"), dialect="openai-chat")), 2))
    (change,) = found.fields
    assert (change.name, change.before, change.after) == (
        "transcript.dialect", "anthropic-messages", "openai-chat"
    )  # fmt: skip
