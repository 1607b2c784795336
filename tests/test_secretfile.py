"""Key files: new, private, durable; and refused where others can read them."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from archiver import secretfile
from archiver.errors import AlreadyExistsError, InputNotFoundError, InvalidKeyError, KeyUnavailableError


def test_a_key_file_is_private_whatever_the_umask(tmp_path: Path) -> None:
    path = tmp_path / "key"
    for mask in (0, 0o077, 0o777):
        before = os.umask(mask)
        try:
            secretfile.write_secret_file(path, "secret\n")
        finally:
            os.umask(before)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert secretfile.read_secret_file(path) == "secret\n"
        path.unlink()


@pytest.mark.parametrize("kind", ["file", "folder", "dangling link"])
def test_a_taken_name_is_left_alone(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "key"
    if kind == "file":
        path.write_text("old")
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(AlreadyExistsError, match="never overwritten"):
        secretfile.write_secret_file(path, "new")
    assert not (tmp_path / "elsewhere").exists()
    assert kind != "file" or path.read_text() == "old"


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputNotFoundError, match="cannot be written"):
        secretfile.write_secret_file(tmp_path / "none" / "key", "secret")


def test_a_failed_write_leaves_no_half_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(InputNotFoundError, match="No space left"):
        secretfile.write_secret_file(tmp_path / "key", "secret")
    assert list(tmp_path.iterdir()) == []


def test_file_and_folder_are_synced_before_it_returns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    real = os.fsync

    def note(handle: int) -> None:
        synced.append(str(Path(f"/proc/self/fd/{handle}").readlink()))
        real(handle)

    monkeypatch.setattr(os, "fsync", note)
    secretfile.write_secret_file(tmp_path / "key", "secret")
    assert [Path(place).parent for place in synced] == [tmp_path, tmp_path.parent]
    assert synced[1] == str(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["key"]


@pytest.mark.parametrize("links", [True, False])
def test_a_key_appears_whole_and_never_over_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool
) -> None:
    path = tmp_path / "key"
    seen: list[bool] = []
    real = os.fsync

    def look(handle: int) -> None:
        seen.append(path.exists())
        real(handle)

    def link(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "fsync", look)
    if not links:
        monkeypatch.setattr(os, "link", link)
    secretfile.write_secret_file(path, "secret")
    assert seen == [False, True]  # what is killed before the end leaves no key under the name
    assert path.read_text() == "secret"
    monkeypatch.setattr(os.path, "lexists", lambda _: False)  # somebody else was faster
    with pytest.raises(AlreadyExistsError):
        secretfile.write_secret_file(path, "other")
    assert path.read_text() == "secret"
    assert [found.name for found in tmp_path.iterdir()] == ["key"]


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o620, 0o602, 0o610])
def test_a_file_that_others_reach_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "a key"
    path.write_text("secret")
    path.chmod(mode)
    with pytest.raises(InvalidKeyError, match=f"mode {mode:04o}") as caught:
        secretfile.read_secret_file(path)
    assert f"chmod 600 '{path}'" in (caught.value.remedy or "")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes files of root's")
@pytest.mark.parametrize(("mode", "accepted"), [(0o440, True), (0o640, True), (0o444, False), (0o660, False)])
def test_a_mounted_secret_of_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int, accepted: bool
) -> None:
    path = tmp_path / "key"
    path.write_text("secret")
    path.chmod(mode)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    if accepted:
        assert secretfile.read_secret_file(path) == "secret"
    else:
        with pytest.raises(InvalidKeyError):
            secretfile.read_secret_file(path)


def test_a_pipe_can_be_read(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.write(writer, b"secret")
    os.close(writer)
    try:
        assert secretfile.read_secret_file(Path(f"/dev/fd/{reader}")) == "secret"
    finally:
        os.close(reader)


def test_what_is_no_key_file(tmp_path: Path) -> None:
    large, binary = tmp_path / "large", tmp_path / "binary"
    large.write_bytes(bytes(secretfile.MAX_SECRET_FILE + 1))
    binary.write_bytes(b"\xff\xfe")
    for path in (large, binary):
        path.chmod(0o600)
        with pytest.raises(InvalidKeyError, match="no key file"):
            secretfile.read_secret_file(path)
    for path in (tmp_path, tmp_path / "missing"):
        with pytest.raises(KeyUnavailableError, match="cannot be read"):
            secretfile.read_secret_file(path)
