"""What lies in the place of an entry may be swapped between a look at it and its reading."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from archiver.model.workspace import TreeEntry
from archiver.workspace.differing import Here, differs

DATA = b"content"


def _link(place: Path) -> None:
    other = place.with_name("other")
    other.write_bytes(DATA)
    place.symlink_to(other)


@pytest.mark.parametrize(
    ("swap", "kind"), [(_link, "unknown"), (os.mkfifo, "content"), (Path.mkdir, "unknown")]
)
def test_nothing_is_followed_or_waited_for(tmp_path: Path, swap: Callable[[Path], object], kind: str) -> None:
    place = tmp_path / "file"
    place.write_bytes(DATA)
    seen = place.lstat()
    entry = TreeEntry("file", "file", seen.st_mode & 0o777, 0, len(DATA), hashlib.sha256(DATA).hexdigest())
    assert list(differs(entry, Here(seen, place))) == []
    place.unlink()
    swap(place)
    assert [one.kind for one in differs(entry, Here(seen, place))] == [kind]
