"""Stubs and notes: one form for each meaning, and nothing else is taken for one."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver.compact import read_stub
from archiver.compact.notes import (
    Conclusion,
    Content,
    CutOutput,
    Stub,
    attachment,
    attachments,
    conclude,
    read_cut,
    without_attachments,
)

lines = st.text(st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp")), max_size=60)
digests = st.binary(max_size=4).map(lambda data: hashlib.sha256(data).hexdigest())
contents = st.builds(
    Content, st.integers(0, 10**12), digests, st.lists(digests, max_size=2, unique=True).map(tuple)
)
conclusions = st.builds(
    Conclusion,
    st.one_of(st.sampled_from(("ok", "error")), st.integers(-255, 255).map(lambda code: f"exit {code}")),
    lines,
)
stubs = st.one_of(
    st.builds(Stub, lines.filter(bool), lines, conclusions, contents, st.just("older"), st.integers(0, 1000)),
    st.builds(Stub, lines.filter(bool), lines, conclusions, contents, st.just("superseded")),
)


@given(stubs)
def test_a_stub_is_read_as_it_was_written(stub: Stub) -> None:
    assert read_stub(str(stub)) == stub


def test_a_stub_says_call_conclusion_size_and_digest() -> None:
    digest = hashlib.sha256(b"x").hexdigest()
    stub = Stub("Bash", "pytest -q", Conclusion("exit 1", "1 failed"), Content(1234, digest), "older", 20)
    assert str(stub) == (
        f'[archived result: Bash "pytest -q"; exit 1; last line "1 failed"; 1234 bytes; sha256 {digest}; '
        "older than the last 20 turns]"
    )


@given(stubs, st.data())
def test_a_changed_stub_is_another_one_or_none(stub: Stub, data: st.DataObject) -> None:
    text = str(stub)
    place = data.draw(st.integers(0, len(text) - 1))
    other = data.draw(st.characters(exclude_categories=("Cs",)).filter(lambda c: c != text[place]))
    changed = text[:place] + other + text[place + 1 :]
    found = read_stub(changed)
    assert found is None or (found != stub and str(found) == changed)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[archived result: Bash",
        '[archived result: Bash "ls"; ok; 007 bytes; sha256 ' + "0" * 64 + "; older than the last 1 turns]",
        '[archived result: Bash "\\u006cs"; ok; 7 bytes; sha256 '
        + "0" * 64
        + "; older than the last 1 turns]",
        '[archived result: "Bash" "ls"; ok; 7 bytes; sha256 ' + "0" * 64 + "; older than the last 1 turns]",
        '[archived result: Bash "ls"; ok; 7 bytes; sha256 ' + "0" * 64 + "; older than the last 1 turns]\n",
        '[archived result: Bash "ls"; exit 00; 7 bytes; sha256 '
        + "0" * 64
        + "; older than the last 1 turns]",
    ],
)
def test_what_is_not_canonical_is_no_stub(text: str) -> None:
    assert read_stub(text) is None


@given(st.text(max_size=40), st.text(max_size=40), st.text(min_size=1, max_size=40))
def test_a_cut_output_is_read_as_it_was_written(start: str, end: str, middle: str) -> None:
    whole = (start + middle + end).encode("utf-8")
    digest = hashlib.sha256(whole).hexdigest()
    cut = CutOutput(start, end, Content(len(whole), digest, (digest,)))
    assert f"{len(middle.encode())} bytes left out here" in str(cut)
    assert read_cut(str(cut)) == cut


def test_a_cut_whose_bytes_do_not_add_up_is_none() -> None:
    digest = "0" * 64
    text = str(CutOutput("head", "tail", Content(100, digest, (digest,))))
    assert read_cut(text) is not None
    assert read_cut(text + "!") is None
    assert read_cut("see:\n" + text) is None


def test_many_notes_that_are_none_cost_no_more_than_a_look_each() -> None:
    digest = "0" * 64
    note = f"\n[archived output: 5 bytes; sha256 {digest}; 1 bytes left out here]\n"
    assert read_cut(note * 100_000) is None
    written = str(CutOutput(note * 3 + "ü", note, Content(10_000, digest, (digest,))))
    assert str(read_cut(written)) == written


def test_attachment_notes_are_found_and_taken_out() -> None:
    digest = "a" * 64
    note = attachment("image/png", Content(99, digest, (digest,)))
    assert list(attachments(f"x\n{note}\n{note}")) == [digest]
    assert without_attachments(f"look at this\n{note}") == "look at this"


@pytest.mark.parametrize(
    ("text", "failed", "status"),
    [
        ("Exit code 2\nmake: *** [all] Error 2", True, "exit 2"),
        ("exit status: 0\nfine", False, "exit 0"),
        ("No such file", True, "error"),
        ("fine", False, "ok"),
        ("the word Exit code 2 inside", False, "ok"),
    ],
)
def test_a_conclusion_is_what_the_output_states(text: str, failed: bool, status: str) -> None:
    assert conclude(text, is_error=failed).status == status


def test_a_picture_says_nothing_of_how_a_call_ended() -> None:
    digest = "a" * 64
    note = attachment("image/png", Content(99, digest, (digest,)))
    assert conclude(f"2 passed\n{note}", is_error=False) == Conclusion("ok", "2 passed")


@given(stubs)
def test_the_conclusion_of_a_stub_is_what_it_says(stub: Stub) -> None:
    assert conclude(str(stub), is_error=False) == stub.conclusion
