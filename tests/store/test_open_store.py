"""Addresses of stores."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from archiver.errors import (
    ConfigError,
)
from archiver.store import open_store

from .contract import NAME


def test_addresses_of_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/someone")
    for address, url in {
        "some/folder": f"file://{tmp_path}/some/folder",
        "/a b": "file:///a%20b",
        "~/x": "file:///home/someone/x",
        "file:///a%20b": "file:///a%20b",
        "file://localhost/a": "file:///a",
        "FILE:///a": "file:///a",
        "file:///~/x": "file:///~/x",
        "a:b": f"file://{tmp_path}/a%3Ab",
    }.items():
        assert open_store(address).url == url
        assert open_store(open_store(address).url).url == url


@pytest.mark.parametrize(
    "address",
    ["", "s3://", "s3://bucket/../prefix", "https://x/y", "file://host/a", "file:///a?b", "file:///a#b",
     "a\0b", "file://", "C:/x", "~no-such-user-here/x"],
)  # fmt: skip
def test_other_addresses_are_refused(address: str) -> None:
    with pytest.raises(ConfigError) as caught:
        open_store(address)
    assert caught.value.remedy


def test_a_bucket_is_not_touched_before_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.socket.connect", lambda *_: pytest.fail("a connection"))
    assert open_store("S3://bucket/some/prefix/").url == "s3://bucket/some/prefix"


def test_make_makes_private_folders(tmp_path: Path) -> None:
    open_store(tmp_path / "a/b/c", make=True).create(NAME, [b"x"], retention="live")
    for path in ("a", "a/b", "a/b/c"):
        assert stat.S_IMODE((tmp_path / path).stat().st_mode) == 0o700
    store = open_store(tmp_path / "a/b/c", make=True)
    assert [info.name for info in store.list()] == [NAME]
