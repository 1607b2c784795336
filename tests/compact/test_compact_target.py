"""What a call acts on decides what a later call supersedes."""

from __future__ import annotations

from typing import Any

import pytest

from archiver.compact.target import Kind, target_of
from archiver.transcripts.dialect import Call


def _target(name: str, arguments: Any) -> Any:
    return target_of(Call("c", name, arguments))


@pytest.mark.parametrize(
    ("name", "arguments", "kind", "label"),
    [
        ("Read", {"file_path": "/a"}, "read", "/a"),
        ("Read", {"file_path": "/a", "offset": 3}, "read", "/a"),
        ("Write", {"file_path": "/a", "content": ""}, "write", "/a"),
        ("Edit", {"file_path": "/a", "old_string": "x", "new_string": "y"}, "write", "/a"),
        ("NotebookEdit", {"notebook_path": "/n", "new_source": "1"}, "write", "/n"),
        ("str_replace_based_edit_tool", {"command": "view", "path": "/a"}, "read", "/a"),
        ("str_replace_based_edit_tool", {"command": "create", "path": "/a", "file_text": ""}, "write", "/a"),
        ("Bash", {"command": "make test", "timeout": 5}, "command", "make test"),
        ("shell", {"command": ["git", "status"]}, "command", "git status"),
        ("Grep", {"pattern": "x", "path": "/a"}, "other", "x"),
        ("WebFetch", {"url": "https://example.org", "prompt": "p"}, "other", "https://example.org"),
        ("odd", "free text", "other", "free text"),
        ("odd", None, "other", ""),
        ("odd", {"file_path": 7, "command": None}, "other", ""),
    ],
)
def test_kind_and_label(name: str, arguments: Any, kind: Kind, label: str) -> None:
    found = _target(name, arguments)
    assert (found.kind, found.label) == (kind, label)


def test_a_part_of_a_file_is_not_the_file() -> None:
    whole = _target("Read", {"file_path": "/a"})
    part = _target("Read", {"file_path": "/a", "offset": 10, "limit": 5})
    other = _target("Read", {"file_path": "/a", "offset": 20, "limit": 5})
    written = _target("Write", {"file_path": "/a", "content": "x"})
    assert part.key not in (whole.key, other.key)
    assert part.whole == whole.key == written.key
    assert part.is_part
    assert not whole.is_part


def test_other_tools_are_told_apart_by_name_and_arguments() -> None:
    assert _target("Grep", {"pattern": "x"}).key == _target("Grep", {"pattern": "x"}).key
    assert _target("Grep", {"pattern": "x"}).key != _target("Grep", {"pattern": "y"}).key
    assert _target("Grep", {"pattern": "x"}).key != _target("Glob", {"pattern": "x"}).key


def test_a_lone_surrogate_or_deep_nesting_does_no_harm() -> None:
    deep: Any = "x"
    for _ in range(2000):
        deep = [deep]
    assert _target("odd", {"query": "\ud83d"}).key
    assert _target("odd", {"value": deep}).key == b""
