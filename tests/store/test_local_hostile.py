"""The folder store in a folder that somebody else has prepared."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from archiver.errors import (
    InvalidNameError,
    ObjectNotFoundError,
    StoreError,
)
from archiver.store import folder, local
from archiver.store.local import LocalStore

from .conftest import files
from .contract import NAME, calls


def put_link(place: Path) -> None:
    outside = place.parents[2] / "outside"
    outside.write_text("secret")
    place.symlink_to(outside)


def put_socket(place: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        here = Path.cwd()
        os.chdir(place.parent)  # the address of a socket must be short
        try:
            made.bind(place.name)
        finally:
            os.chdir(here)


INTRUDERS: dict[str, Callable[[Path], object]] = {
    "link": put_link,
    "pipe": os.mkfifo,
    "folder": Path.mkdir,
    "socket": put_socket,
}


@pytest.mark.parametrize("kind", INTRUDERS)
@pytest.mark.usefixtures("alarm")
def test_what_is_no_file_in_an_objects_place(store: LocalStore, root: Path, kind: str) -> None:
    (root / "records").mkdir()
    (root / "records/run.age").parent.mkdir(exist_ok=True)
    INTRUDERS[kind](root / "records/object.age")
    before = files(root.parent)
    for call in calls(store, "records/object.age"):
        with pytest.raises(StoreError, match=r"records/object\.age is not the plain file"):
            call()
    if kind != "folder":
        with pytest.raises(StoreError, match=r"records/object\.age"):
            list(store.list())
    assert [name for name in files(root.parent) if "object.age.class" not in name] == before


@pytest.mark.usefixtures("alarm")
def test_a_pipe_that_takes_the_place_of_a_file_while_it_is_opened(
    store: LocalStore, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "records").mkdir()
    os.mkfifo(root / "records/object.age")
    monkeypatch.setattr(local, "status_of", lambda *place: None)  # it looked like a file a moment ago
    with pytest.raises(StoreError, match=r"records/object\.age is not the plain file"):
        store.open("records/object.age")


@pytest.mark.parametrize("kind", ["link", "pipe", "socket"])
@pytest.mark.usefixtures("alarm")
def test_what_is_no_folder_in_a_runs_place(store: LocalStore, root: Path, tmp_path: Path, kind: str) -> None:
    (root / "records").mkdir()
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "00000001.age").write_text("elsewhere")
    if kind == "link":
        (root / "records/run").symlink_to(outside)
    else:
        INTRUDERS[kind](root / "records/run")
    every: list[Callable[[], object]] = [
        *calls(store),
        lambda: list(store.list()),
        lambda: list(store.list("records/run/")),
    ]
    for call in every:
        with pytest.raises(StoreError, match="records/run is not the plain"):
            call()
    assert [path.name for path in outside.iterdir()] == ["00000001.age"]
    assert list(store.list("bundles/")) == []


@pytest.mark.parametrize("kind", INTRUDERS)
@pytest.mark.usefixtures("alarm")
def test_what_is_no_file_in_a_tags_place(store: LocalStore, root: Path, kind: str) -> None:
    (root / "records").mkdir()
    (root / "records/object.age").write_text("x")
    INTRUDERS[kind](root / "records/.object.age.class")
    for call in (
        lambda: store.head("records/object.age"),
        lambda: store.retag("records/object.age", "live"),
        lambda: store.delete("records/object.age"),
    ):
        with pytest.raises(StoreError):
            call()
    assert store.read("records/object.age", limit=1) == b"x"


@pytest.mark.usefixtures("alarm")
def test_a_link_in_the_place_of_unfinished_objects(store: LocalStore, root: Path, tmp_path: Path) -> None:
    (root / ".tmp").symlink_to(tmp_path)
    with pytest.raises(StoreError, match="unfinished objects"):
        store.create(NAME, [b"x"], retention="live")


def test_a_very_deep_folder_does_not_matter(store: LocalStore, root: Path) -> None:
    handle = os.open(root, os.O_RDONLY)
    for _ in range(700):
        os.mkdir("d", dir_fd=handle)
        inner = os.open("d", os.O_RDONLY, dir_fd=handle)
        os.close(handle)
        handle = inner
    os.close(handle)
    assert list(store.list()) == []


def test_an_impossible_time_is_a_typed_error(small_disk: Path) -> None:
    store = LocalStore(small_disk)
    store.create(NAME, [b"x"], retention="live")
    os.utime(small_disk / NAME, (2**40, 2**40))
    with pytest.raises(StoreError, match="impossible time"):
        store.head(NAME)


def listdir(folder_handle: int) -> list[str]:
    with os.scandir(folder_handle) as found:
        return [entry.name for entry in found]


class FoldingOs:
    """`os` on a file system that folds case: a name reaches the file that differs from it in case only."""

    def __getattr__(self, word: str) -> Any:
        return getattr(os, word)

    def _there(self, name: Any, dir_fd: int | None) -> Any:
        if dir_fd is None or not isinstance(name, str):
            return name
        return next((found for found in listdir(dir_fd) if found.lower() == name.lower()), name)

    def open(self, name: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        return os.open(self._there(name, dir_fd), flags, mode, dir_fd=dir_fd)

    def stat(self, name: Any, *, dir_fd: int | None = None, follow_symlinks: bool = True) -> os.stat_result:
        return os.stat(self._there(name, dir_fd), dir_fd=dir_fd, follow_symlinks=follow_symlinks)

    def mkdir(self, name: Any, mode: int = 0o777, *, dir_fd: int | None = None) -> None:
        os.mkdir(self._there(name, dir_fd), mode, dir_fd=dir_fd)


def test_runs_that_differ_in_case_never_mix_where_case_is_folded(
    store: LocalStore, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder, "os", FoldingOs())
    store.create("records/Run/00000001.age", [b"x"], retention="live")
    store.create("records/Run/00000002.age", [b"x"], retention="live")
    with pytest.raises(InvalidNameError, match="records/run differs only in case"):
        store.create("records/run/00000003.age", [b"y"], retention="live")
    for call in (store.head, store.open):
        with pytest.raises(ObjectNotFoundError):
            call("records/run/00000001.age")
    store.delete("records/run/00000001.age")
    assert list(store.list("records/run/")) == []
    assert [info.name[-5:] for info in store.list("records/Run/")] == ["1.age", "2.age"]
    assert [info.name[:11] for info in store.list()] == ["records/Run"] * 2
