"""Head and tail of text in files: nothing is torn, and nothing is kept that was not there."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archiver.compact.ends import ends, too_short, whole_lines
from archiver.compact.text import encode

PLACEHOLDER = "[REDACTED:github-token:0123456789ab]"
PIECES = st.sampled_from([PLACEHOLDER, "[", "é", "\U0001f600", "\ud83d", "word ", "a line\n", "[REDACTED:"])
TEXTS = (
    st.lists(st.one_of(st.text(max_size=9), PIECES), min_size=1)
    .map("".join)
    .filter(lambda text: "\0" not in text and text)
)


@settings(max_examples=100, deadline=None)
@given(TEXTS, st.integers(4, 90), st.lists(st.integers(0, 1200), max_size=4))
def test_ends_are_those_of_the_text_and_tear_nothing(text: str, keep: int, cuts: list[int]) -> None:
    text = text * (1200 // len(text) + 1)
    data = encode(text)
    assert not too_short(len(data), keep)
    places = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    sources = [data[start:end] for start, end in pairwise(places)]
    found = ends(sources, len(data), keep)
    assert found is not None
    first, last = found
    assert text.startswith(first)
    assert text.endswith(last)
    assert max(len(encode(first)), len(encode(last))) <= keep
    after, before = text[len(first) :], text[: len(text) - len(last)]
    assert not torn(first, after)
    assert not torn(before, last)
    assert len(encode(first)) > keep - len(PLACEHOLDER) - 4
    assert len(encode(last)) > keep - len(PLACEHOLDER) - 4


def torn(left: str, right: str) -> bool:
    """Whether a placeholder begins in the one and ends in the other."""
    edge = len(left)
    whole = left[-len(PLACEHOLDER) :] + right[: len(PLACEHOLDER)]
    edge = len(left[-len(PLACEHOLDER) :])
    start = whole.find(PLACEHOLDER)
    while start >= 0:
        if start < edge < start + len(PLACEHOLDER):
            return True
        start = whole.find(PLACEHOLDER, start + 1)
    return False


def test_it_reads_files_and_little_of_them(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with path.open("wb") as file:
        file.write(b"begin\n")
        file.truncate(1 << 30)  # a hole: reading it whole would take long, and it is no text
        file.seek(1 << 30)
        file.write(b"x" * 5000)
    size = path.stat().st_size
    assert ends((path,), size, 64) is None
    assert ends((b"a" * 3000, path.with_name("log")), 3000 + size, 100) == ("a" * 100, "x" * 100)


@pytest.mark.parametrize(
    "data", [b"\xff\xfe" * 3000, b"text\0" * 2000, b"\x80" * 5000, b"\x89PNG\r\n\x1a\n" * 900]
)
def test_what_is_no_text_has_no_ends(data: bytes) -> None:
    assert ends((data,), len(data), 100) is None


def test_what_is_hardly_more_is_left_alone() -> None:
    assert ends((b"a" * 700,), 700, 100) is None
    assert ends((b"a" * 713,), 713, 100) == ("a" * 100, "a" * 100)


def test_whole_lines() -> None:
    assert whole_lines("one\ntwo\nthr", "ree\nfour\nfive\n") == ("one\ntwo\n", "four\nfive\n")
    assert whole_lines("no end", "none either") == ("", "")
