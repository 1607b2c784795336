"""Decorators of stores: what each is for."""

from __future__ import annotations

import io
import itertools
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

import pytest

from archiver.errors import (
    AlreadyExistsError,
    LimitExceededError,
    StoreDeniedError,
    StoreMissingError,
    StoreUnreachableError,
    UnconfirmedError,
)
from archiver.model import RetentionClass
from archiver.store import ObjectInfo, ObjectStore, Remote, retrying, tries
from archiver.store.counted import counted
from archiver.store.decorated import Decorated, DecoratedRemote
from archiver.store.limited import limited
from archiver.store.local import LocalStore
from archiver.store.retrying import Retrying

from .contract import NAME

Wrap = Callable[[ObjectStore], ObjectStore]
WRAPS: dict[str, Wrap] = {
    "decorated": Decorated,
    "counted": counted,
    "limited": lambda store: limited(store, 1 << 30),
    "retrying": lambda store: retrying.retrying(store, attempts=3, patience=10),
    "all": lambda store: counted(retrying.retrying(limited(store, 1 << 30), attempts=3, patience=10)),
}


class Far(LocalStore):
    """A folder that claims to be far away, and cannot be reached at times."""

    parallel = 7

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.make()
        self.fails: list[str] = []
        """Verbs that fail, once each, before anything is done; with a `!`, after it was done."""

    def clock(self) -> datetime:
        self._now("clock")
        return datetime(2026, 1, 2, tzinfo=UTC)

    def download(self, name: str, into: Path, *, limit: int) -> ObjectInfo:
        self._now("download")
        into.write_bytes(self.read(name, limit=limit))
        return self.head(name)

    def create(self, name: str, body: Iterable[bytes], *, retention: RetentionClass) -> ObjectInfo:
        self._now("create")
        info = super().create(name, body, retention=retention)
        self._now("create!")
        return info

    def replace(self, name: str, body: Iterable[bytes], *, was: ObjectInfo) -> ObjectInfo:
        self._now("replace")
        info = super().replace(name, body, was=was)
        self._now("replace!")
        return info

    def open(self, name: str, *, offset: int = 0) -> BinaryIO:
        self._now("open")
        return io.BufferedReader(Breaking(super().open(name, offset=offset), self), 100)

    def head(self, name: str) -> ObjectInfo:
        self._now("head")
        return super().head(name)

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        self._now("list")
        for info in super().list(prefix):
            yield info
            self._now(f"list {info.name}")

    def _now(self, verb: str) -> None:
        if verb in self.fails:
            self.fails.remove(verb)
            raise StoreUnreachableError(f"{verb} failed")
        if f"denied {verb}" in self.fails:
            raise StoreDeniedError(f"{verb} is denied")


class Breaking(io.RawIOBase):
    def __init__(self, file: BinaryIO, store: Far) -> None:
        self._file = file
        self._now = store._now

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        self._now(f"at {self._file.tell() // 100}")
        data = self._file.read(min(len(buffer), 100))
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._file.close()
        super().close()


@pytest.fixture
def far(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Far:
    monkeypatch.setattr(tries, "_FIRST_PAUSE", 0.001)
    return Far(tmp_path / "far")


@pytest.fixture
def patient(far: Far) -> Retrying:
    return retrying.retrying(far, attempts=3, patience=10)


@pytest.mark.parametrize("wrap", [wrap for word, wrap in WRAPS.items() if word != "decorated"])
def test_what_a_store_over_a_network_can_do_besides_is_kept(wrap: Wrap, far: Far, tmp_path: Path) -> None:
    store = wrap(far)
    assert isinstance(store, Remote)
    assert not isinstance(wrap(LocalStore(tmp_path)), Remote)
    assert (store.parallel, store.url) == (7, far.url)
    assert store.clock() == datetime(2026, 1, 2, tzinfo=UTC)
    store.create(NAME, [b"abc"], retention="live")
    assert store.download(NAME, tmp_path / "file", limit=3).size == 3
    assert (tmp_path / "file").read_bytes() == b"abc"


def test_calls_are_made_again(far: Far, patient: Retrying, tmp_path: Path) -> None:
    assert isinstance(patient, Remote)
    far.fails = ["create", "create", "head", "replace", "open", "list", "download"]
    patient.create(NAME, [b"abc"], retention="live")
    was = patient.head(NAME)
    patient.replace(NAME, [b"defg"], was=was)
    with patient.open(NAME) as file:
        assert file.read() == b"defg"
    assert [info.name for info in patient.list()] == [NAME]
    patient.download(NAME, tmp_path / "file", limit=9)
    assert far.fails == []


def test_in_the_end_it_is_given_up(far: Far, patient: Retrying) -> None:
    far.fails = ["head"] * 4
    with pytest.raises(StoreUnreachableError, match="head failed"):
        patient.head(NAME)
    assert far.fails == ["head"]
    hasty = retrying.retrying(far, attempts=99, patience=0)
    with pytest.raises(StoreUnreachableError):
        hasty.head(NAME)
    assert far.fails == []


def test_a_store_that_is_not_there_is_asked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tries.time, "sleep", lambda _: pytest.fail("it waits"))
    with pytest.raises(StoreMissingError):
        retrying.retrying(LocalStore(tmp_path / "gone"), attempts=3, patience=10).head(NAME)


def test_a_body_that_is_used_up_is_not_sent_again(far: Far, patient: Retrying) -> None:
    far.fails = ["create"]
    with pytest.raises(StoreUnreachableError):
        patient.create(NAME, iter([b"abc"]), retention="live")
    assert list(far.list()) == []


def test_a_reader_goes_on_where_it_was(far: Far, patient: Retrying) -> None:
    data = bytes(range(250)) * 4
    patient.create(NAME, [data], retention="live")
    far.fails = ["at 0", "at 3", "at 3", "at 7", "open"]
    with patient.open(NAME, offset=50) as file:
        assert file.read() == data[50:]
    assert far.fails == []
    far.fails = ["at 2"] * 3
    with patient.open(NAME) as file, pytest.raises(StoreUnreachableError):
        file.read()


def test_a_list_goes_on_where_it_was(far: Far, patient: Retrying) -> None:
    names = [f"a/{number}" for number in range(5)]
    for name in names:
        patient.create(name, [b""], retention="live")
    far.fails = ["list a/1", "list a/1", "list a/4"]
    assert [info.name for info in patient.list()] == names
    assert far.fails == []


def test_an_own_object_whose_answer_was_lost_is_a_success(far: Far, patient: Retrying) -> None:
    far.fails = ["create!"]
    assert patient.create(NAME, [b"ab", b"c"], retention="hold").retention == "hold"
    far.fails = ["replace!"]
    assert patient.replace(NAME, [b"de", b"fg"], was=far.head(NAME)).size == 4
    assert far.read(NAME, limit=9) == b"defg"


@pytest.mark.parametrize("theirs", [b"", b"ab", b"abd", b"abcd"])
def test_anothers_object_after_a_lost_answer_is_anothers(far: Far, patient: Retrying, theirs: bytes) -> None:
    far.fails = ["create"]
    far_create = LocalStore(Path(far.url.removeprefix("file://"))).create

    class Body(list[bytes]):
        def __iter__(self) -> Iterator[bytes]:
            if not far.fails and not list(far.list()):
                far_create(NAME, [theirs], retention="hold")
            return super().__iter__()

    with pytest.raises(AlreadyExistsError):
        patient.create(NAME, Body([b"ab", b"c"]), retention="live")
    assert far.read(NAME, limit=9) == theirs


def test_an_object_that_cannot_be_read_after_a_lost_answer_is_unconfirmed(
    far: Far, patient: Retrying
) -> None:
    far.fails = ["create!", "denied open"]
    with pytest.raises(UnconfirmedError, match=NAME) as caught:
        patient.create(NAME, [b"abc"], retention="live")
    assert caught.value.remedy


def test_a_limit_on_the_way_in(far: Far) -> None:
    store = limited(far, 10)
    with pytest.raises(LimitExceededError, match=rf"{NAME} is larger than the 10 bytes"):
        store.create(NAME, itertools.repeat(b"abc"), retention="live")
    assert list(store.list()) == []
    store.create(NAME, [b"0123456789"], retention="live")
    with pytest.raises(LimitExceededError):
        store.replace(NAME, [b"0123456789", b"x"], was=store.head(NAME))
    assert store.read(NAME, limit=10) == b"0123456789"


def test_a_limit_on_the_way_out(far: Far, tmp_path: Path) -> None:
    far.create(NAME, [b"0123456789x"], retention="live")
    store = limited(far, 10)
    assert isinstance(store, Remote)
    for offset in (0, 5, 10):
        with store.open(NAME, offset=offset) as file, pytest.raises(LimitExceededError):
            file.read()
    with store.open(NAME, offset=11) as file:
        assert file.read() == b""
    with pytest.raises(LimitExceededError):
        store.read(NAME, limit=99)
    with pytest.raises(LimitExceededError):
        store.download(NAME, tmp_path / "file", limit=99)
    with limited(far, 11).open(NAME) as file:
        assert file.read() == b"0123456789x"


def test_what_is_asked_is_counted(far: Far, tmp_path: Path) -> None:
    store = counted(far)
    store.create(NAME, [b"abc"], retention="live")
    with pytest.raises(AlreadyExistsError):
        store.create(NAME, [b"abc"], retention="live")
    store.read(NAME, limit=9)
    with store.open(NAME, offset=1) as file:
        file.read()
    list(store.list())
    store.head(NAME)
    store.delete(NAME)
    found = {verb: (count.calls, count.failed, count.bytes) for verb, count in store.counts.items()}
    assert found == {
        "create": (2, 1, 3),
        "read": (1, 0, 3),
        "open": (1, 0, 2),
        "list": (1, 0, 0),
        "head": (1, 0, 0),
        "delete": (1, 0, 0),
    }
    assert store.calls == 7
    assert all(count.seconds > 0 for count in store.counts.values())


def test_the_way_of_a_call_is_the_same_for_all() -> None:
    """A verb that the protocol gets must be in the base, or a decorator would not have it."""
    verbs = {name for name in dir(ObjectStore) if not name.startswith("_")}
    assert verbs <= set(dir(Decorated))
    assert {name for name in dir(Remote) if not name.startswith("_")} <= set(dir(DecoratedRemote))
