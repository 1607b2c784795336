"""Cuts keep characters and placeholders whole; one line is one line."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from archiver.compact.text import encode, head, last_line, one_line, tail

PLACEHOLDER = "[REDACTED:github-token:0123456789ab]"
texts = st.lists(
    st.one_of(
        st.text(max_size=12),
        st.sampled_from([PLACEHOLDER, "[", "]", "[REDACTED:", "\ud83d", "é", "\U0001f600"]),
    )
).map("".join)


@given(texts, st.integers(0, 120))
def test_head_is_the_longest_start_that_cuts_nothing(text: str, limit: int) -> None:
    cut = head(text, limit)
    assert text.startswith(cut)
    assert len(encode(cut)) <= limit or cut == text
    if cut != text:
        assert cut.count(PLACEHOLDER) == text[: len(cut)].count(PLACEHOLDER)
        assert not _inside_placeholder(text, len(cut))
        after = head(text[len(cut) :], len(PLACEHOLDER) + 4)
        grown = cut + after[:1]
        assert len(encode(grown)) > limit or _inside_placeholder(text, len(grown))


@given(texts, st.integers(0, 120))
def test_tail_mirrors_head(text: str, limit: int) -> None:
    cut = tail(text, limit)
    assert text.endswith(cut)
    assert len(encode(cut)) <= limit or cut == text
    if cut != text:
        assert not _inside_placeholder(text, len(text) - len(cut))


def _inside_placeholder(text: str, place: int) -> bool:
    start = text.find(PLACEHOLDER)
    while start >= 0:
        if start < place < start + len(PLACEHOLDER):
            return True
        start = text.find(PLACEHOLDER, start + 1)
    return False


def test_a_cut_through_a_placeholder_leaves_it_out() -> None:
    text = "a" * 90 + PLACEHOLDER + "b" * 90
    assert head(text, 100) == "a" * 90
    assert head(text, 90 + len(PLACEHOLDER)) == "a" * 90 + PLACEHOLDER
    assert tail(text, 100) == "b" * 90
    assert tail(text, 90 + len(PLACEHOLDER)) == PLACEHOLDER + "b" * 90


@given(texts, st.integers(8, 80))
def test_one_line_is_bounded_and_printable(text: str, limit: int) -> None:
    line = one_line(text, limit)
    assert len(line.encode()) <= limit
    assert line == line.strip()
    assert all(character.isprintable() or character == " " for character in line if ord(character) < 0xA0)


def test_one_line_takes_colours_out_and_marks_what_it_left_out() -> None:
    assert one_line("\x1b[32mok\x1b[0m\r\n\t2 passed", 40) == "ok 2 passed"
    assert one_line("word " * 40, 23) == "word word word word…"


def test_the_last_line_is_the_last_that_says_something() -> None:
    output = (
        "collected 3 items\n\n3 passed in 0.1s\n}\n\n<system-reminder>be good\nand kind</system-reminder>\n"
    )
    assert last_line(output, 160) == "3 passed in 0.1s"
    assert last_line("\n}\n", 160) == ""
