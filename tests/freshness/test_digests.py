"""Digests that can be compared but not guessed from, and files that are read with care."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archiver.freshness import digests, files
from archiver.model import JsonValue


@settings(deadline=None, max_examples=30)
@given(st.binary(max_size=64), st.binary(max_size=64))
def test_only_the_same_content_matches(one: bytes, other: bytes) -> None:
    captured = digests.guarded(one)
    assert digests.matches(one, captured)
    assert digests.matches(other, captured) == (one == other)


def test_each_digest_has_a_salt_of_its_own() -> None:
    one, other = digests.guarded(b"PIN=1234"), digests.guarded(b"PIN=1234")
    assert one["salt"] != other["salt"]
    assert one["scrypt"] != other["scrypt"]
    salt = bytes.fromhex(str(one["salt"]))
    assert digests.guarded(b"PIN=1234", salt) == one


@pytest.mark.parametrize(
    "captured",
    [
        None,
        1,
        {},
        {"salt": "00" * 16},
        {"salt": "00" * 16, "scrypt": "zz" * 32},
        {"salt": "0", "scrypt": "00" * 32},
        {"salt": "00" * 16, "scrypt": "00" * 1_000_000},
        {"salt": "00" * 16, "scrypt": "[REDACTED:x:0]"},
    ],
)
def test_what_is_no_digest_is_refused(captured: JsonValue) -> None:
    with pytest.raises(ValueError, match="no digest"):
        digests.matches(b"x", captured)


def test_reading_is_bounded_and_never_waits(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * 100)
    assert files.read(path, 100) == b"x" * 100
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(path)
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for name, why in {
        "pipe": "it is no file",
        ".": "it is no file",
        "link": "it is a link",
        "loop": "it is a link",
        "gone": "it is not there",
        "x" * 300: "it cannot be read",
        "file": "it has more than",
    }.items():
        with pytest.raises(files.UnreadableError, match=why):
            files.read(tmp_path / name, 99)


def test_a_file_that_grows_while_it_is_read_is_bounded() -> None:
    with pytest.raises(files.UnreadableError):
        files.read(Path("/proc/self/maps"), 10)  # it has no size, but content


def test_folders_are_those_of_the_folder_itself(tmp_path: Path) -> None:
    for name in ("b", "a"):
        (tmp_path / name).mkdir()
    (tmp_path / "c").symlink_to(tmp_path / "a")
    (tmp_path / "d").write_text("")
    assert list(files.folders(tmp_path, 10)) == ["a", "b"]
    for folder, limit in ((tmp_path, 3), (tmp_path / "gone", 10), (tmp_path / "d", 10)):
        with pytest.raises(files.UnreadableError):
            list(files.folders(folder, limit))
