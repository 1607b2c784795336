"""What stores over a network must do besides: objects of several parts, and downloads in ranges."""

from __future__ import annotations

import random
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from archiver.errors import (
    AlreadyExistsError,
    InputNotFoundError,
    LimitExceededError,
    ObjectNotFoundError,
)
from archiver.store import ObjectStore, Remote

from .contract import NAME, InterruptedBodyError

PART = 5 << 20
BIG = random.Random(3).randbytes(2 * PART + 12_345)


def blocks(data: bytes = BIG, size: int = 700_001) -> Iterator[bytes]:
    return (data[start : start + size] for start in range(0, len(data), size))


class RemoteContract:
    """Needs the fixture `store`: an empty store whose parts have `PART` bytes."""

    @pytest.mark.parametrize("size", [PART - 1, PART, PART + 1, 2 * PART, len(BIG)])
    def test_objects_around_the_size_of_a_part(self, store: ObjectStore, tmp_path: Path, size: int) -> None:
        info = store.create(NAME, blocks(BIG[:size]), retention="success")
        found = store.head(NAME)
        assert (info.size, info.etag, info.retention) == (size, found.etag, "success")
        assert (found.size, found.retention) == (size, "success")
        with store.open(NAME) as file:
            assert file.read() == BIG[:size]
        with pytest.raises(AlreadyExistsError, match=NAME):
            store.create(NAME, blocks(), retention="live")
        assert isinstance(store, Remote)
        store.download(NAME, tmp_path / "file", limit=size)
        assert (tmp_path / "file").read_bytes() == BIG[:size]

    def test_a_chunk_larger_than_parts(self, store: ObjectStore) -> None:
        store.create(NAME, [b"", BIG, b"end"], retention="live")
        with store.open(NAME) as file:
            assert file.read() == BIG + b"end"

    @pytest.mark.parametrize("offset", [1, PART - 1, PART, len(BIG) - 1, len(BIG), len(BIG) + 1])
    def test_offsets_in_a_large_object(self, store: ObjectStore, offset: int) -> None:
        store.create(NAME, blocks(), retention="live")
        with store.open(NAME, offset=offset) as file:
            assert (file.read(3), file.read()) == (BIG[offset : offset + 3], BIG[offset + 3 :])

    def test_a_large_body_that_fails_leaves_nothing(self, store: ObjectStore) -> None:
        def body() -> Iterator[bytes]:
            yield BIG
            raise InterruptedBodyError

        with pytest.raises(InterruptedBodyError):
            store.create(NAME, body(), retention="live")
        assert list(store.list()) == []

    def test_a_large_object_is_replaced(self, store: ObjectStore) -> None:
        store.create(NAME, blocks(), retention="failure")
        was = store.head(NAME)
        info = store.replace(NAME, blocks(b"new" + BIG), was=was)
        assert (info.size, info.retention) == (len(BIG) + 3, "failure")
        with pytest.raises(AlreadyExistsError):
            store.replace(NAME, blocks(), was=was)
        with store.open(NAME) as file:
            assert file.read() == b"new" + BIG
        assert store.head(NAME).retention == "failure"

    @pytest.mark.parametrize("data", [b"", b"x", BIG])
    def test_a_download_is_a_private_file(self, store: ObjectStore, tmp_path: Path, data: bytes) -> None:
        assert isinstance(store, Remote)
        store.create(NAME, blocks(data), retention="live")
        info = store.download(NAME, tmp_path / "file", limit=len(data))
        found = store.head(NAME)
        assert (info.name, info.size, info.etag) == (NAME, len(data), found.etag)
        assert (tmp_path / "file").read_bytes() == data
        assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o600

    def test_a_download_that_cannot_be_leaves_no_file(self, store: ObjectStore, tmp_path: Path) -> None:
        assert isinstance(store, Remote)
        with pytest.raises(ObjectNotFoundError, match=NAME):
            store.download(NAME, tmp_path / "file", limit=9)
        store.create(NAME, [b"0123456789"], retention="live")
        with pytest.raises(LimitExceededError, match="9 bytes"):
            store.download(NAME, tmp_path / "file", limit=9)
        assert list(tmp_path.iterdir()) == []
        (tmp_path / "file").write_text("somebody's")
        with pytest.raises(InputNotFoundError, match="exists"):
            store.download(NAME, tmp_path / "file", limit=10)
        assert (tmp_path / "file").read_text() == "somebody's"

    def test_many_requests_are_welcome(self, store: ObjectStore) -> None:
        assert isinstance(store, Remote)
        assert store.parallel > 1
