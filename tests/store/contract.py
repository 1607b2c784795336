"""What every store must do: a class of tests that runs against any store its `store` fixture gives.

`fresh` gives as many empty stores as a property needs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from archiver.errors import (
    AlreadyExistsError,
    ArchiverError,
    InvalidNameError,
    LimitExceededError,
    ObjectNotFoundError,
)
from archiver.model import RetentionClass
from archiver.store import ObjectStore

NAME = "records/run/00000001.age"

NAMES = st.sampled_from(
    [
        "store.json",
        *(f"{top}/{run}/{leaf}" for top in ("a", "b") for run in ("r", "r.x", "r~2F") for leaf in "12"),
    ]
)
CLASSES = st.sampled_from(("live", "intermediate", "success", "failure", "hold", "record"))
STEPS = st.one_of(
    st.tuples(st.just("create"), NAMES, CLASSES, st.binary(max_size=20)),
    st.tuples(st.just("retag"), NAMES, CLASSES, st.none()),
    st.tuples(st.just("delete"), NAMES, st.none(), st.none()),
)


def calls(store: ObjectStore, name: str = NAME) -> list[Callable[[], object]]:
    """Everything that touches one object."""
    return [
        lambda: store.create(name, [b"x"], retention="live"),
        lambda: store.open(name),
        lambda: store.read(name, limit=9),
        lambda: store.head(name),
        lambda: store.retag(name, "live"),
        lambda: store.delete(name),
    ]


def check_dictionary(store: ObjectStore, steps: list[tuple[str, str, RetentionClass, bytes]]) -> None:
    """Carry the steps out on the (empty) store and on a dictionary, and compare the two after each."""
    model: dict[str, tuple[bytes, RetentionClass]] = {}
    for verb, name, word, data in steps:
        try:
            if verb == "create":
                store.create(name, [data], retention=word)
                assert name not in model
                model[name] = (data, word)
            elif verb == "retag":
                store.retag(name, word)
                model[name] = (model[name][0], word)
            else:
                store.delete(name)
                model.pop(name, None)
        except AlreadyExistsError:
            assert verb == "create"
            assert name in model
        except ObjectNotFoundError:
            assert verb == "retag"
            assert name not in model
        assert [info.name for info in store.list()] == sorted(model)
    assert {name: (store.read(name, limit=99), store.head(name).retention) for name in model} == model


def dictionary_test(examples: int) -> Callable[..., None]:
    """The test that a store behaves like a dictionary, with so many lists of steps."""

    @settings(
        max_examples=examples, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
    )
    @given(steps=st.lists(STEPS, max_size=12))
    def test(
        self: object,
        fresh: Callable[[], ObjectStore],
        steps: list[tuple[str, str, RetentionClass, bytes]],
    ) -> None:
        check_dictionary(fresh(), steps)

    return test


class InterruptedBodyError(Exception):
    """Raised by a body on purpose."""


class StoreContract:
    """Needs the fixtures `store` (an empty store) and `fresh` (a maker of such)."""

    def test_an_object_is_what_was_put(self, store: ObjectStore) -> None:
        before = datetime.now(UTC)
        info = store.create(NAME, [b"abc", b"", b"de"], retention="record")
        assert (info.name, info.size, info.retention) == (NAME, 5, "record")
        assert before - timedelta(seconds=5) <= info.modified <= datetime.now(UTC) + timedelta(seconds=5)
        found = store.head(NAME)
        assert abs(found.modified - info.modified) < timedelta(seconds=5)
        assert found == replace(info, modified=found.modified)
        assert store.read(NAME, limit=5) == b"abcde"
        with store.open(NAME) as file:
            assert (file.read(2), file.read(), file.read()) == (b"ab", b"cde", b"")

    def test_an_empty_object(self, store: ObjectStore) -> None:
        assert store.create("index/1-run-1", [], retention="record").size == 0
        assert store.read("index/1-run-1", limit=0) == b""

    def test_a_large_object_comes_back_whole(self, store: ObjectStore) -> None:
        block = bytes(range(256)) * 4096
        store.create(NAME, (block for _ in range(5)), retention="live")
        with store.open(NAME) as file:
            assert b"".join(iter(lambda: file.read(300_000), b"")) == block * 5

    @pytest.mark.parametrize(("offset", "rest"), [(0, b"abcde"), (3, b"de"), (5, b""), (99, b"")])
    def test_open_at_an_offset(self, store: ObjectStore, offset: int, rest: bytes) -> None:
        store.create(NAME, [b"abcde"], retention="live")
        with store.open(NAME, offset=offset) as file:
            assert file.read() == rest

    def test_a_taken_name_stays_as_it_is(self, store: ObjectStore) -> None:
        info = store.create(NAME, [b"first"], retention="hold")
        with pytest.raises(AlreadyExistsError, match=NAME):
            store.create(NAME, [b"second"], retention="live")
        assert store.read(NAME, limit=99) == b"first"
        assert (store.head(NAME).retention, store.head(NAME).etag) == ("hold", info.etag)

    def test_a_body_that_fails_leaves_nothing(self, store: ObjectStore) -> None:
        def body() -> Iterator[bytes]:
            yield b"x" * 100_000
            raise InterruptedBodyError

        with pytest.raises(InterruptedBodyError):
            store.create(NAME, body(), retention="live")
        assert list(store.list()) == []
        store.create(NAME, [b"again"], retention="live")

    def test_what_is_not_there(self, store: ObjectStore) -> None:
        store.create("records/other/00000001.age", [b""], retention="record")
        for call in (
            lambda: store.head(NAME),
            lambda: store.read(NAME, limit=1),
            lambda: store.open(NAME),
            lambda: store.retag(NAME, "hold"),
        ):
            with pytest.raises(ObjectNotFoundError, match=NAME):
                call()
        store.delete(NAME)
        assert [info.name for info in store.list()] == ["records/other/00000001.age"]

    def test_read_has_a_limit(self, store: ObjectStore) -> None:
        store.create(NAME, [b"abcde"], retention="record")
        with pytest.raises(LimitExceededError, match="4 bytes"):
            store.read(NAME, limit=4)

    def test_a_tag_can_change(self, store: ObjectStore) -> None:
        store.create(NAME, [b"x"], retention="live")
        for word in ("intermediate", "hold"):
            store.retag(NAME, word)
            assert store.head(NAME).retention == word
        assert store.read(NAME, limit=1) == b"x"

    def test_a_deleted_object_is_gone_and_its_name_free(self, store: ObjectStore) -> None:
        store.create(NAME, [b"x"], retention="hold")
        store.delete(NAME)
        assert list(store.list()) == []
        with pytest.raises(ObjectNotFoundError):
            store.head(NAME)
        assert store.create(NAME, [b"y"], retention="live").retention == "live"
        assert store.head(NAME).retention == "live"

    def test_list_is_in_the_order_of_names(self, store: ObjectStore) -> None:
        names = ["a/r/1", "a/r.x/1", "a/r-1", "a/r/2", "a/r~2F/1", "b/R/1", "b/r/1", "store.json", "a/r0/1"]
        for name in names:
            store.create(name, [name.encode()], retention="live")
        assert [info.name for info in store.list()] == sorted(names)
        assert [info.size for info in store.list()] == [len(name) for name in sorted(names)]
        for prefix in ("a/", "a/r", "a/r/", "a/r/1", "b/R", "s", "store.json", "c", "a/r/1/x"):
            expected = sorted(name for name in names if name.startswith(prefix))
            assert [info.name for info in store.list(prefix)] == expected

    @pytest.mark.parametrize(
        "name",
        [
            "",
            "/",
            "/etc/passwd",
            "..",
            "../x",
            "a/../b",
            "a/./b",
            "a//b",
            "a/",
            ".x",
            "a/.x",
            "a\0",
            "a\n",
            "a\\b",
        ],
    )
    def test_names_that_lead_elsewhere_are_refused(self, store: ObjectStore, name: str) -> None:
        for call in calls(store, name):
            with pytest.raises(InvalidNameError):
                call()
        assert list(store.list()) == []

    def test_a_prefix_that_leads_elsewhere_is_refused(self, store: ObjectStore) -> None:
        for prefix in ("/", "..", "../", "a/../", "a//", ".tmp/", "a/.", "\0"):
            with pytest.raises(InvalidNameError):
                list(store.list(prefix))

    def test_one_of_many_creators_wins(self, store: ObjectStore) -> None:
        words: tuple[RetentionClass, ...] = ("live", "success", "failure", "hold", "record", "intermediate")
        start = threading.Barrier(len(words))
        won: list[RetentionClass] = []
        other: list[BaseException] = []

        def creator(word: RetentionClass) -> None:
            start.wait()
            try:
                store.create(NAME, [word.encode()], retention=word)
                won.append(word)
            except ArchiverError as error:
                other.append(error)

        threads = [threading.Thread(target=creator, args=(word,)) for word in words]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(won) == 1
        assert [type(error) for error in other] == [AlreadyExistsError] * (len(words) - 1)
        assert (store.read(NAME, limit=99), store.head(NAME).retention) == (won[0].encode(), won[0])

    test_it_behaves_like_a_dictionary = dictionary_test(40)
