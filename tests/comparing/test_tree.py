"""Files of two workspaces compared from their lists, whatever their names are."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from archiver import jsonio
from archiver.comparing import Side, compare, tree_in
from archiver.errors import ArchiveFormatError
from archiver.model.difference import MAX_PATHS, FileChanges
from archiver.model.git_document import GitDocument

from .sides import checkpoint, side

NAMES = st.one_of(
    st.sampled_from([b"a", b"d/b", b"\xff", b"new\nline", "é".encode(), b"a.txt", b"B"]),
    st.binary(min_size=1).filter(
        lambda name: not set(name) & set(b"\0/") and name not in (b".", b"..", b"d")
    ),
)
TREES = st.dictionaries(NAMES, st.integers(0, 2), max_size=8)


def entry(path: bytes, version: int = 0, **more: Any) -> dict[str, Any]:
    made = {"path": os.fsdecode(path), "type": "file", "mode": 0o644, "modified": 5, "size": 1}
    if more.get("type", "file") == "file":
        return {**made, "sha256": f"{version:064x}", **more}
    return {**{key: value for key, value in made.items() if key != "size"}, **more}


def bundle(folder: Path, *trees: list[dict[str, Any]], **document: Any) -> Path:
    """An unpacked bundle with these lists of files."""
    (folder / "workspace" / "tree").mkdir(parents=True)
    names = [f"workspace/tree/{number:04d}.jsonl" for number in range(1, len(trees) + 1)]
    for name, tree in zip(names, trees, strict=True):
        lines = sorted(tree, key=lambda one: os.fsencode(one["path"]))
        (folder / name).write_bytes(b"".join(jsonio.canonical(line) + b"\n" for line in lines))
    counted = {"entries": 0, "bytes": 0}
    made = {
        "format": 1,
        "kind": "folder",
        "root": "/srv/x",
        "trees": names,
        "git": None,
        **counted,
        **document,
    }
    if made["git"] is not None:
        made["git"] = GitDocument.model_validate(made["git"]).document()
    (folder / "workspace" / "workspace.json").write_bytes(jsonio.canonical(made))
    return folder


def of(folder: Path, seq: int = 1) -> Side:
    return side(checkpoint(), seq, tree_in(folder))


def changed(old: Path, new: Path) -> FileChanges | None:
    return compare(of(old), of(new, 2)).files


@settings(max_examples=50, deadline=None)
@given(TREES, TREES)
def test_paths_added_changed_and_gone(
    tmp_path_factory: pytest.TempPathFactory, old: dict[bytes, int], new: dict[bytes, int]
) -> None:
    folder = tmp_path_factory.mktemp("trees")
    first = bundle(folder / "old", [entry(path, version) for path, version in old.items()])
    # In two lists, of which the later wins: every other path stands in both.
    stale = [entry(path, 7) for number, path in enumerate(sorted(new)) if number % 2]
    second = bundle(folder / "new", stale, [entry(path, version) for path, version in new.items()])
    found = changed(first, second)
    if old == new:
        assert found is None
        return
    assert found is not None
    assert {os.fsencode(path) for path in found.paths_added} == new.keys() - old.keys()
    assert {os.fsencode(path) for path in found.paths_gone} == old.keys() - new.keys()
    assert {os.fsencode(path) for path in found.paths_changed} == {
        path for path in old.keys() & new.keys() if old[path] != new[path]
    }
    assert list(found.paths_added) == sorted(found.paths_added, key=os.fsencode)
    jsonio.dumps(found.document())


def test_a_time_alone_is_no_change_and_a_mode_is(tmp_path: Path) -> None:
    old = bundle(tmp_path / "1", [entry(b"a"), entry(b"link", type="link", target="x")])
    touched = bundle(tmp_path / "2", [entry(b"a", modified=9), entry(b"link", type="link", target="x")])
    assert changed(old, touched) is None
    other = bundle(tmp_path / "3", [entry(b"a", mode=0o755), entry(b"link", type="link", target="y")])
    found = changed(old, other)
    assert found is not None
    assert (found.changed, found.paths_changed) == (2, ("a", "link"))


def test_very_many_are_counted(tmp_path: Path) -> None:
    old = bundle(tmp_path / "1", [])
    found = changed(old, bundle(tmp_path / "2", [entry(b"%05d" % number) for number in range(MAX_PATHS + 5)]))
    assert found is not None
    assert (found.added, len(found.paths_added)) == (MAX_PATHS + 5, MAX_PATHS)


def test_what_the_workspace_says_of_itself(tmp_path: Path) -> None:
    git = {"base": "a" * 40, "branch": "main", "head": "a" * 40}
    old = bundle(tmp_path / "1", [], kind="git", git=git)
    found = changed(old, bundle(tmp_path / "2", [], kind="git", git={**git, "base": "b" * 40, "branch": "x"}))
    assert found is not None
    assert (found.base_before, found.base_after) == ("a" * 40, "b" * 40)
    assert [(one.name, one.before, one.after) for one in found.state] == [("git.branch", "main", "x")]


def test_where_only_one_carries_a_workspace_that_is_said(tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    none, some = of(tmp_path / "none"), of(bundle(tmp_path / "some", []), 2)
    assert compare(none, some).files_unknown == "the earlier checkpoint carries no workspace"
    assert compare(some, none).files_unknown == "the later checkpoint carries no workspace"
    assert compare(none, none).empty
    assert compare(some, some).empty


@pytest.mark.parametrize(
    "line",
    [
        b"{",
        b"[]",
        b"{}",
        b'{"path":5}',
        b'{"path":""}',
        b'{"path":"\\ud800"}',
        jsonio.canonical(entry(b"a")) + b"\n" + jsonio.canonical(entry(b"a")),
    ],
)
def test_a_list_that_is_none_is_a_named_error(tmp_path: Path, line: bytes) -> None:
    folder = bundle(tmp_path / "1", [])
    (folder / "workspace" / "tree" / "0001.jsonl").write_bytes(line + b"\n")
    with pytest.raises(ArchiveFormatError, match=r"no entry of a tree|out of order in 0001\.jsonl"):
        changed(bundle(tmp_path / "2", []), folder)


@pytest.mark.parametrize(
    "trees",
    [["../x"], ["workspace/tree/../../x"], ["workspace/tree/0002.jsonl"], [5], None, ["workspace/tree/"]],
)
def test_no_other_file_is_read_for_one(tmp_path: Path, trees: Any) -> None:
    (tmp_path / "x").write_bytes(b"")
    folder = bundle(tmp_path / "1", [], trees=trees)
    with pytest.raises(ArchiveFormatError, match=r"workspace\.json"):
        tree_in(folder)


def test_no_link_is_read_for_one(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"")
    folder = bundle(tmp_path / "1", [])
    (folder / "workspace" / "tree" / "0001.jsonl").unlink()
    (folder / "workspace" / "tree" / "0001.jsonl").symlink_to(tmp_path / "x")
    with pytest.raises(ArchiveFormatError, match="does not hold"):
        tree_in(folder)


@pytest.mark.parametrize("text", [b"[]", b"{", b"\xff"])
def test_a_document_that_is_none_is_a_named_error(tmp_path: Path, text: bytes) -> None:
    folder = bundle(tmp_path / "1", [])
    (folder / "workspace" / "workspace.json").write_bytes(text)
    with pytest.raises(ArchiveFormatError, match=r"workspace\.json"):
        tree_in(folder)
