"""Delivered entries that others are based on stay apart, for as long as they are needed and there is room."""

from __future__ import annotations

import json

from loop.growing import RUN, Growing

from archiver.setup import Setup
from archiver.spool import open_spool
from archiver.spool.entry import BUNDLE, meta_file
from archiver.spool.listing import listed


def kept(one: Growing) -> list[int]:
    return [entry.seq for entry in one.spool._folder.bases()]


def test_what_is_needed_stays_and_the_rest_goes(setup: Setup) -> None:
    one = Growing(setup)
    for _ in range(3):
        one.save()
    assert kept(one) == [1, 2]
    assert [entry.seq for entry in one.spool._folder.entries()] == [3]
    one.messages.clear()
    one.grow(900)
    one.save()
    assert kept(one) == [], "a full bundle needs nothing"


def test_what_waits_keeps_what_it_needs(setup: Setup) -> None:
    one = Growing(setup)
    one.save()
    one.save(deliver=False)
    one.save(deliver=False)
    one.spool.deliver(upto=2)
    assert kept(one) == [1]
    assert [(entry.seq, entry.delivered) for entry in one.spool._folder.entries()] == [(2, True), (3, False)]


def test_they_do_not_wait_and_are_listed_as_delivered(setup: Setup) -> None:
    one = Growing(setup)
    one.save()
    one.save()
    assert one.spool.entries() == ()
    spool = open_spool(setup)
    assert spool.depth().entries == 0
    found = [(row.seq, row.state) for row in listed(spool.folder.parent)]
    assert sorted(found) == [(1, "delivered"), (2, "delivered")]


def test_one_that_is_damaged_is_passed_over(setup: Setup) -> None:
    one = Growing(setup)
    for _ in range(3):
        one.save()
    first = one.spool._folder.bases()[0]
    (first.folder / meta_file("delivered")).write_bytes(b"{")
    assert kept(one) == [2]
    assert one.spool.proven() is None
    one.save()
    assert [entry.seq for entry in one.spool._folder.entries()] == [4]


def test_without_its_bundle_nothing_is_proven(setup: Setup) -> None:
    one = Growing(setup)
    one.save()
    one.save()
    assert one.spool.proven() is not None
    (one.spool._folder.bases()[0].folder / BUNDLE).write_bytes(b"something else")
    assert one.spool.proven() is None


def test_an_entry_that_is_based_on_nothing_says_nothing_of_it(setup: Setup) -> None:
    one = Growing(setup)
    one.save(deliver=False)
    (entry,) = one.spool.entries()
    assert "bases" not in json.loads((entry.folder / meta_file("waiting")).read_bytes())
    assert one.deliver()
    one.save(deliver=False)
    (entry,) = one.spool.entries()
    assert json.loads((entry.folder / meta_file("waiting")).read_bytes())["bases"] == [1]


def test_nothing_is_left_of_a_run_that_is_finished(setup: Setup) -> None:
    one = Growing(setup)
    one.save()
    one.save()
    one.save(deliver=False)
    one.spool.finish()
    assert kept(one) == [1], "what waits is based on it; 2 is the newest that is delivered"
    assert one.deliver()
    assert not one.spool._folder.exists
    assert RUN not in open_spool(setup).runs()
