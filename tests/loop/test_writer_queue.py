"""Which snapshots wait, the pace of attempts, and an array in pieces."""

from __future__ import annotations

import time

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver.loop import pieces
from archiver.loop.writer_delivery import FIRST_PAUSE, LONGEST_PAUSE, Pace
from archiver.loop.writer_queue import Job, Queue
from loop.writing import snapshot


def job(note: str, *, plain: bool = False, size: int = 10) -> Job:
    return Job(snapshot(note, plain=plain, size=size))


def waiting(queue: Queue) -> list[str]:
    return [one.snapshot.ticket.because for one in queue.clear()]


def test_a_job_that_comes_back_waits_first_unless_it_is_plain_and_not_alone() -> None:
    queue = Queue(4)
    milestone, plain = job("mile"), job("plain", plain=True)
    queue.put(job("new"))
    assert queue.put_back(milestone)
    assert not queue.put_back(plain)
    assert waiting(queue) == ["mile", "new"]
    assert queue.put_back(plain)
    assert waiting(queue) == ["plain"]


def test_a_plain_one_goes_for_a_milestone_only_where_there_is_no_room() -> None:
    queue = Queue(2)
    plain = job("plain", plain=True)
    assert queue.put(plain) == []
    assert queue.put(job("first")) == []
    assert queue.put(job("second")) == [plain]
    assert queue.put(job("third")) is None
    assert queue.put(job("late", plain=True)) is None, "a plain one drives no milestone away"
    assert waiting(queue) == ["first", "second"]


def test_bytes_count_as_well() -> None:
    queue = Queue(9, most_bytes=100)
    assert queue.put(job("huge", size=500)) == []
    assert queue.put(job("small", size=1)) is None
    queue.take()
    assert queue.put(job("half", size=50)) == []
    assert queue.put(job("other half", size=50)) == []
    assert queue.put(job("more", size=1)) is None


def test_attempts_come_less_and_less_often() -> None:
    pace, pauses = Pace(), []
    for _ in range(12):
        pace.failed()
        pauses.append(pace.wait())
    assert 0 < pauses[0] <= FIRST_PAUSE
    assert all(pause <= LONGEST_PAUSE for pause in pauses)
    assert pauses[-1] > LONGEST_PAUSE / 2 - 1
    pace.now()
    assert pace.wait() == 0
    pace.failed()
    assert pace.next <= time.monotonic() + FIRST_PAUSE


texts = st.text() | st.sampled_from(['},{"', '","', "],[", 'x"},{"y', "\\", '\\"},{'])
values = st.recursive(
    texts | st.none() | st.integers(-9, 9) | st.booleans(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=12,
)


@given(st.lists(values, max_size=8), st.sampled_from([1, 5, 40, 1 << 17]))
def test_an_array_in_pieces_is_the_array(array: list[object], piece: int) -> None:
    data = orjson.dumps(array)
    assert elements(data, piece) == array
    done = 0
    for stop, found in pieces.pieces(data, piece=piece):
        done += len(found)
        rest = [value for _, more in pieces.pieces(data, stop + 1, piece) for value in more]
        assert rest == array[done:], "what comes behind a piece can be read alone"


def elements(data: bytes, piece: int = pieces.PIECE) -> list[object]:
    return [value for _, found in pieces.pieces(data, piece=piece) for value in found]


def test_pieces_are_small_where_elements_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """What no piece parses at once holds up nobody: the reason for all of it."""
    sizes: list[int] = []
    real = pieces.jsonio.loads
    monkeypatch.setattr(pieces.jsonio, "loads", lambda data: sizes.append(len(data)) or real(data))
    array = [{"role": "user", "content": [{"text": "x" * 500}, {"text": "},{" * 50}]} for _ in range(3000)]
    assert elements(orjson.dumps(array)) == array
    assert max(sizes) <= 4 * pieces.PIECE
    assert sum(sizes) < 4 * len(orjson.dumps(array))


def test_arrays_that_begin_alike_are_told_by_their_bytes() -> None:
    one, other = pieces.Array(b"[1,2,3]"), pieces.Array(b"[1,23]")
    assert one.begins_like(other, 4)
    assert not one.begins_like(other, 5), "the 2 goes on there"
    assert not one.begins_like(other, 8)
    assert [pairs for _, pairs in one.pieces(3)] == [[(b"2", 2), (b"3", 3)]]


@pytest.mark.parametrize("text", [b"", b"{}", b"[1,]", b'[{"a":1},{]', b'[1,2,"x]', b"[1] "])
def test_what_is_no_array_is_an_error(text: bytes) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        elements(text)
