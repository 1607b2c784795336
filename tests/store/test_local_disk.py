"""The folder store on disks that are missing, full, read-only or failing."""

from __future__ import annotations

import errno
import fcntl
import os
import resource
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from archiver.errors import (
    AlreadyExistsError,
    StoreDeniedError,
    StoreError,
    StoreFullError,
    StoreUnreachableError,
)
from archiver.store import open_store
from archiver.store.local import LocalStore

from .contract import NAME, InterruptedBodyError, calls


def test_a_missing_store_says_what_to_do(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "gone")
    every: list[Callable[[], object]] = [*calls(store), lambda: list(store.list())]
    for call in every:
        with pytest.raises(StoreUnreachableError, match="gone does not exist") as caught:
            call()
        assert "archiver init" in (caught.value.remedy or "")
    assert not (tmp_path / "gone").exists()


def test_a_process_that_may_open_no_more_files_is_told_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = LocalStore(tmp_path)
    store.create(NAME, [b"x"], retention="record")

    def none_left(*_: object) -> int:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(os, "dup", none_left)
    every: list[Callable[[], object]] = [*calls(store), lambda: list(store.list())]
    for call in every:
        with pytest.raises(StoreUnreachableError, match="Too many open files"):
            call()


def test_a_file_is_not_a_store(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(StoreUnreachableError, match="is not a folder"):
            list(LocalStore(path).list())
    with pytest.raises(StoreError):
        open_store(tmp_path / "file" / "below", make=True)


def test_a_full_disk(small_disk: Path) -> None:
    store = LocalStore(small_disk)
    store.create(NAME, [b"x"], retention="live")
    with pytest.raises(StoreFullError, match=r"records/run/00000002\.age") as caught:
        store.create("records/run/00000002.age", [bytes(4096)] * 100, retention="live")
    assert caught.value.remedy
    assert [info.name for info in store.list()] == [NAME]
    assert list((small_disk / ".tmp").iterdir()) == []
    (small_disk / "filler").write_bytes(b"")
    with pytest.raises(OSError, match="No space"), (small_disk / "filler").open("wb", buffering=0) as filler:
        while True:
            filler.write(bytes(4096))
    store.delete(NAME)
    assert [info.name for info in store.list()] == ["filler"]


def test_a_file_size_limit_is_a_full_store(store: LocalStore) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, hard))
    try:
        with pytest.raises(StoreFullError):
            store.create(NAME, [bytes(4096)] * 100, retention="live")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert list(store.list()) == []


@pytest.fixture
def read_only(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "disk"
    place.mkdir()
    LocalStore(place).create(NAME, [b"x"], retention="live")
    if os.geteuid():
        for path in (place, *place.rglob("*")):
            path.chmod(0o500 if path.is_dir() else 0o400)
        yield place
        place.chmod(0o700)
        return
    for options in (["--bind", str(place), str(place)], ["-o", "remount,bind,ro", str(place)]):
        if subprocess.run(["mount", *options], capture_output=True).returncode:
            pytest.skip("root, and nothing can be mounted read-only here")
    yield place
    subprocess.run(["umount", place], check=True)


def test_a_store_that_may_not_be_written(read_only: Path) -> None:
    store = LocalStore(read_only)
    assert store.read(NAME, limit=1) == b"x"
    for call in (
        lambda: store.create("records/run/00000002.age", [b"x"], retention="live"),
        lambda: store.retag(NAME, "hold"),
        lambda: store.delete(NAME),
    ):
        with pytest.raises(StoreDeniedError) as caught:
            call()
        assert caught.value.remedy
    with pytest.raises(StoreDeniedError):
        open_store(read_only / "inner", make=True)
    assert (store.head(NAME).size, store.head(NAME).retention) == (1, "live")


def fail_with(code: int) -> Callable[..., Any]:
    def failing(*args: Any, **named: Any) -> Any:
        raise OSError(code, os.strerror(code))

    return failing


@pytest.mark.parametrize(
    ("word", "code", "error"),
    [
        ("link", 1, StoreDeniedError),
        ("link", 18, StoreDeniedError),
        ("link", 28, StoreFullError),
        ("write", 122, StoreFullError),
        ("fsync", 5, StoreUnreachableError),
        ("open", 24, StoreUnreachableError),
        ("open", 13, StoreDeniedError),
    ],
)
def test_what_the_system_says_has_a_meaning(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch, word: str, code: int, error: type[StoreError]
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(os, word, fail_with(code))
        with pytest.raises(error) as caught:
            store.create(NAME, [b"x"], retention="live")
    assert caught.value.remedy
    assert list(store.list()) == []


def test_without_locks_one_creator_still_wins(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fcntl, "flock", fail_with(37))

    def body() -> Iterator[bytes]:
        LocalStore(store_root).create(NAME, [b"inner"], retention="live")
        yield b"outer"

    store_root = Path(store.url.removeprefix("file://"))
    with pytest.raises(AlreadyExistsError):
        store.create(NAME, body(), retention="hold")
    assert (store.read(NAME, limit=9), store.head(NAME).retention) == (b"inner", "live")


def test_errors_while_reading_are_the_stores(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.create(NAME, [b"x"], retention="live")
    with store.open(NAME) as file:
        os.dup2(os.open("/", os.O_RDONLY | os.O_DIRECTORY), file.fileno())  # now reading gives EISDIR
        with pytest.raises(StoreError, match=NAME):
            file.read(1)


def test_nothing_stays_open(store: LocalStore, root: Path) -> None:
    def body() -> Iterator[bytes]:
        yield b""
        raise InterruptedBodyError

    handles = Path("/proc/self/fd")
    if not handles.exists():
        pytest.skip("needs /proc to count open files")
    before = len(list(handles.iterdir()))
    (root / "bad").mkdir()
    os.mkfifo(root / "bad/pipe")
    for call in (*calls(store), *calls(store), *calls(store, "bad/pipe"), *calls(store, "bad/pipe/x")):
        try:
            result = call()
            if hasattr(result, "close"):
                result.close()
        except (StoreError, AlreadyExistsError):
            pass
    with pytest.raises(InterruptedBodyError):
        store.create("records/run/00000009.age", body(), retention="live")
    with pytest.raises(StoreError):
        list(store.list())
    assert len(list(handles.iterdir())) == before
