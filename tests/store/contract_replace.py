"""What every store must do when an object gets other bytes, as re-keying asks for."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest

from archiver.errors import AlreadyExistsError, ArchiverError, InvalidNameError, ObjectNotFoundError
from archiver.store import ObjectStore

from .contract import NAME, InterruptedBodyError


class ReplaceContract:
    """Needs the fixture `store` (an empty store)."""

    def test_the_bytes_change_and_the_tag_stays(self, store: ObjectStore) -> None:
        store.create(NAME, [b"old"], retention="hold")
        store.retag(NAME, "success")
        was = store.head(NAME)
        info = store.replace(NAME, [b"ne", b"", b"wer"], was=was)
        assert (info.name, info.size, info.retention) == (NAME, 5, "success")
        found = store.head(NAME)
        assert (found.size, found.retention, found.etag) == (5, "success", info.etag)
        assert found.etag != was.etag
        assert store.read(NAME, limit=9) == b"newer"
        assert [each.size for each in store.list()] == [5]

    def test_its_own_old_bytes_can_be_the_body(self, store: ObjectStore) -> None:
        store.create(NAME, [b"header", b"payload"], retention="live")

        def body() -> Iterator[bytes]:
            yield b"new header"
            with store.open(NAME, offset=6) as file:
                yield file.read()

        store.replace(NAME, body(), was=store.head(NAME))
        assert store.read(NAME, limit=99) == b"new headerpayload"

    def test_another_state_is_not_replaced(self, store: ObjectStore) -> None:
        store.create(NAME, [b"one"], retention="live")
        first = store.head(NAME)
        second = store.replace(NAME, [b"two"], was=first)
        for was in (first, replace(second, etag=None)):
            with pytest.raises(AlreadyExistsError, match=f"{NAME} was changed by somebody else"):
                store.replace(NAME, [b"three"], was=was)
        assert store.read(NAME, limit=9) == b"two"
        store.retag(NAME, "hold")  # the tag is no part of its state
        assert store.replace(NAME, [b"three"], was=store.head(NAME)).retention == "hold"

    def test_a_change_while_the_body_is_made_is_refused(self, store: ObjectStore) -> None:
        store.create(NAME, [b"old"], retention="live")

        def body() -> Iterator[bytes]:
            yield b"mine"
            store.replace(NAME, [b"theirs"], was=store.head(NAME))

        with pytest.raises(AlreadyExistsError, match="was changed by somebody else"):
            store.replace(NAME, body(), was=store.head(NAME))
        assert store.read(NAME, limit=9) == b"theirs"

    def test_a_deletion_while_the_body_is_made_is_refused(self, store: ObjectStore) -> None:
        store.create(NAME, [b"old"], retention="live")

        def body() -> Iterator[bytes]:
            yield b"mine"
            store.delete(NAME)

        with pytest.raises(ObjectNotFoundError, match=NAME):
            store.replace(NAME, body(), was=store.head(NAME))
        assert list(store.list()) == []

    def test_what_is_not_there_is_not_replaced(self, store: ObjectStore) -> None:
        was = store.create(NAME, [b"x"], retention="live")
        store.delete(NAME)
        with pytest.raises(ObjectNotFoundError, match=NAME):
            store.replace(NAME, [b"y"], was=was)
        with pytest.raises(InvalidNameError):
            store.replace("../x", [b"y"], was=was)
        assert list(store.list()) == []

    def test_a_body_that_fails_replaces_nothing(self, store: ObjectStore) -> None:
        store.create(NAME, [b"old"], retention="live")
        was = store.head(NAME)

        def body() -> Iterator[bytes]:
            yield b"x" * 100_000
            raise InterruptedBodyError

        with pytest.raises(InterruptedBodyError):
            store.replace(NAME, body(), was=was)
        assert (store.head(NAME), store.read(NAME, limit=9)) == (was, b"old")

    def test_one_of_many_replacers_wins(self, store: ObjectStore) -> None:
        store.create(NAME, [b"old"], retention="live")
        was = store.head(NAME)
        start = threading.Barrier(6)
        won: list[bytes] = []
        lost: list[type[BaseException]] = []

        def replacer(word: bytes) -> None:
            start.wait()
            try:
                store.replace(NAME, [word], was=was)
                won.append(word)
            except ArchiverError as error:
                lost.append(type(error))

        threads = [threading.Thread(target=replacer, args=(b"%d" % number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(won) == 1
        assert lost == [AlreadyExistsError] * 5
        assert store.read(NAME, limit=9) == won[0]
