"""Points of death as words, and which ones are chosen."""

from __future__ import annotations

from collections import Counter

import pytest

from archiver.errors import UsageError
from archiver.testing.points import MUST, Choice, Point, read, written

COUNTS = {"act": 4, "effect": 12, "upload": 30, "fsync": 100, "file": 200, "write": 50}


def chosen(seed: int, rounds: int) -> list[tuple[Point, ...]]:
    choice, reached = Choice(seed, COUNTS, 2.0), []
    for _ in range(rounds):
        points = choice.next([point.kind for one in reached for point in one])
        reached.append(points)
    return reached


def test_points_are_read_as_they_are_written() -> None:
    for text in ("fsync:12", "act:1+upload:3", "time:0.1250+time:2.0000+file:7"):
        assert written(read(text)) == text
    assert read(" fsync:12 + act:3") == (Point("fsync", 12), Point("act", 3))
    assert read("time:1") == (Point("time", 1.0),)


@pytest.mark.parametrize(
    "text", ["", "fsync", "fsync:0", "fsync:1.5", "nothing:1", "act:-1", "act:1+", "act:1,act:2"]
)
def test_what_is_no_point_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="no point of death"):
        read(text)


def test_every_seed_begins_with_the_kinds_that_must_be() -> None:
    for seed in range(50):
        first = chosen(seed, 4)
        assert first[0][0].kind == MUST[0]
        assert {point.kind for points in first for point in points} >= set(MUST)


def test_a_kind_that_was_not_reached_is_tried_again() -> None:
    choice = Choice(1, COUNTS, 2.0)
    assert {choice.next(["upload", "fsync", "effect"])[0].kind for _ in range(20)} == {"act"}
    assert {choice.next(MUST)[0].kind for _ in range(20)} == {*COUNTS, "time"}


def test_the_same_seed_gives_the_same_points() -> None:
    assert chosen(7, 30) == chosen(7, 30)
    assert chosen(7, 30) != chosen(8, 30)


def test_numbers_are_those_of_events_that_there_are() -> None:
    points = [point for seed in range(40) for one in chosen(seed, 20) for point in one]
    for kind, most in COUNTS.items():
        numbers = {point.number for point in points if point.kind == kind}
        assert min(numbers) >= 1
        assert max(numbers) <= most
    assert {point.number for point in points if point.kind == "act"} == {1, 2, 3, 4}
    assert all(0 <= point.number <= 2.0 for point in points if point.kind == "time")


def test_some_rounds_die_again_but_not_for_ever() -> None:
    sizes = Counter(len(one) for seed in range(40) for one in chosen(seed, 20))
    assert sizes[1] > sizes[2] > 0
    assert max(sizes) == 4
    assert len(Choice(1, COUNTS, 1.0).next((), most=1)) == 1


def test_an_agent_without_events_dies_by_time() -> None:
    assert {point.kind for point in Choice(1, {}, 1.0).next(())} == {"time"}
