"""What changed between two trees of a folder, whichever of them is asked for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archiver.model.workspace import TreeEntry, path_bytes
from archiver.workspace.versions import TreeVersions

Tree = dict[str, TreeEntry]


def file(path: str, content: int = 0) -> TreeEntry:
    return TreeEntry(path, "file", 0o644, 7, content, f"{content:064x}")


def tree(*entries: TreeEntry) -> Tree:
    return {entry.path: entry for entry in entries}


@pytest.mark.parametrize(
    "change",
    [
        {"mode": 0o600},
        {"modified": 8},
        {"size": 9},
        {"sha256": "1" * 64},
        {"redacted": True},
        {"type": "folder", "sha256": None, "size": 0},
        {"type": "link", "sha256": None, "size": 0, "target": "b"},
    ],
)
def test_whatever_is_another_in_a_line_is_a_change(change: dict[str, object]) -> None:
    versions, one = TreeVersions(), file("a")
    versions.take([one, file("b")])
    versions.name(("1",))
    versions.take([replace(one, **change), file("b")])  # type: ignore[arg-type]
    assert versions.since(("1",)) == ({"a"}, [])


def test_a_link_that_says_another_is_a_change() -> None:
    versions, link = TreeVersions(), TreeEntry("a", "link", 0o777, 7, target="b")
    versions.take([link])
    versions.name(("1",))
    versions.take([replace(link, target="c")])
    assert versions.since(("1",)) == ({"a"}, [])


def test_a_tree_that_was_never_named_is_not_known() -> None:
    versions = TreeVersions()
    versions.take([file("a")])
    assert versions.since(()) is None
    assert versions.since(("1",)) is None
    versions.name(("1",))
    versions.clear()
    assert versions.since(("1",)) is None
    assert "a" not in versions


def test_many_saves_are_forgotten_the_oldest_first() -> None:
    versions = TreeVersions()
    for number in range(100):
        versions.take([file("a", number)])
        versions.name((str(number),))
    assert versions.since(("0",)) is None
    assert versions.since(("98",)) == ({"a"}, [])
    assert versions.since(("99",)) == (set(), [])


def test_what_stood_in_lines_of_a_tree_is_known_as_long_as_its_members_are() -> None:
    """A tree of two members has the lines of the first, which the second overrules."""
    versions, link = TreeVersions(), TreeEntry("b", "link", 0o777, 7, target="c")
    versions.take([file("a"), link])
    versions.name(("1",))
    assert versions.past() == ()
    versions.take([replace(link, target="d")])
    versions.name(("1", "2"))
    versions.forget_before(("1", "2"))
    assert set(versions.past()) == {b"a\0", b"c"}
    versions.take([replace(link, target="d")])
    versions.name(("3",))
    versions.forget_before(("3",))
    assert versions.past() == ()
    assert versions.since(("1", "2")) is None
    versions.take([])
    versions.forget_saves()
    assert (versions.past(), versions.since(("3",))) == ((), None)


TREES = st.lists(
    st.dictionaries(st.sampled_from(["a", "a/b", "a-b", "c", "d"]), st.integers(0, 2), max_size=5),
    min_size=1,
    max_size=8,
)


@given(trees=TREES, unnamed=st.sets(st.integers(0, 7)), older=st.integers(0, 7))
def test_an_old_tree_and_its_changes_are_the_new_one(
    trees: list[dict[str, int]], unnamed: set[int], older: int
) -> None:
    """Also where trees between were of saves that came to nothing."""
    versions = TreeVersions()
    made = [tree(*(file(path, content) for path, content in one.items())) for one in trees]
    for number, one in enumerate(made):
        versions.take(in_order(one.values()))
        if number not in unnamed:
            versions.name((str(number),))
    found = versions.since((str(older),))
    if older >= len(made) or older in unnamed:
        assert found is None
        return
    assert found is not None
    new, gone = found
    again = {path: made[-1][path] if path in new else one for path, one in made[older].items()
             if path not in gone}  # fmt: skip
    assert again | {path: made[-1][path] for path in new} == made[-1]


def in_order(entries: Iterable[TreeEntry]) -> list[TreeEntry]:
    return sorted(entries, key=lambda entry: path_bytes(entry.path))
