"""A folder that is captured and written again is the same folder."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from archiver.model.workspace import TreeEntry, path_bytes
from archiver.workspace.tree import read_tree
from workspace.trees import kept, picture

ROOT = os.geteuid() == 0
BEGINNING, END = -(2**31) * 10**9, 2**33 * 10**9

plain = st.sampled_from([b"a", b"b", b"a-b", b"a.b", b"a0", b"A", b".git", b"node_modules"])
odd = st.binary(min_size=1, max_size=12) | st.text(min_size=1, max_size=6).map(
    lambda text: text.encode("utf-8", "surrogatepass")
)
names = (
    (plain | odd)
    .map(lambda name: name.replace(b"/", b"_").replace(b"\0", b"_"))
    .filter(lambda name: name not in (b".", b".."))
)
moments = st.integers(BEGINNING, END)
files = st.tuples(
    st.just("file"), st.binary(max_size=40), st.integers(0, 0o777) if ROOT else st.just(0o640), moments
)
targets = st.sampled_from([b".", b"..", b"../../..", b"/", b"a", b"nothing", b"a/b"]) | odd.filter(
    lambda target: b"\0" not in target
)
links = st.tuples(st.just("link"), targets, st.just(0), moments)
nodes = st.recursive(
    files | links,
    lambda inner: st.tuples(
        st.just("folder"),
        st.dictionaries(names, inner, max_size=4),
        st.integers(0, 0o777) if ROOT else st.just(0o700),
        moments,
    ),
    max_leaves=8,
)
trees = st.dictionaries(names, nodes, max_size=4)


def make(place: bytes, tree: dict[bytes, Any]) -> None:
    """Write a generated tree; what a mode or a time would disturb comes last."""
    for name, (kind, content, mode, moment) in tree.items():
        path = place + b"/" + name
        if kind == "link":
            os.symlink(content, path)
        elif kind == "folder":
            os.mkdir(path)
            make(path, content)
            os.chmod(path, mode)
        else:
            with open(path, "xb") as file:
                file.write(content)
            os.chmod(path, mode)
        os.utime(path, ns=(moment, moment), follow_symlinks=False)


def check_round_trip(tree: dict[bytes, Any]) -> None:
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        root = place / "root"
        root.mkdir()
        make(os.fsencode(root), tree)
        before = picture(os.fsencode(root))
        saved = kept(root, place / "objects", defaults=False)
        assert saved.capture.skipped == []
        paths = [path_bytes(path) for path in saved.paths]
        assert paths == sorted(before)
        (place / "lines").write_bytes(b"".join(entry.line() for entry in saved.entries))
        assert list(read_tree([place / "lines"], limit=1000, git=True)) == saved.entries
        saved.write(place / "again")
        assert picture(os.fsencode(place / "again")) == before
        assert picture(os.fsencode(root)) == before


@given(trees)
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
def test_a_tree_comes_back_as_it_was(tree: dict[bytes, Any]) -> None:
    check_round_trip(tree)


@pytest.mark.soak
@given(trees)
@settings(max_examples=3000, deadline=None, suppress_health_check=list(HealthCheck))
def test_thousands_of_trees_come_back_as_they_were(tree: dict[bytes, Any]) -> None:
    check_round_trip(tree)


def drawn(draw: Random, depth: int) -> dict[bytes, Any]:
    """A tree that is drawn without a search for smaller ones: a tenth of the time."""
    tree: dict[bytes, Any] = {}
    for _ in range(draw.randrange(1, 6)):
        name = draw.randbytes(draw.choice((1, 1, 2, 9))).replace(b"/", b"-").replace(b"\0", b"\n")
        kind = draw.choice(("file", "file", "link", "folder"))
        mode, moment = draw.randrange(0o1000), draw.randrange(BEGINNING, END)
        if name in (b".", b".."):
            continue
        if kind == "link":
            target = draw.choice((b"..", b"/", b"nothing", name, b"\xff\n", name + b"/../x"))
            tree[name] = (kind, target, 0, moment)
        elif kind == "file":
            tree[name] = (kind, draw.randbytes(draw.choice((0, 3, 5000))), mode if ROOT else 0o640, moment)
        else:
            tree[name] = (kind, drawn(draw, depth - 1) if depth else {}, mode if ROOT else 0o700, moment)
    return tree


def test_hundreds_of_trees_come_back_as_they_were() -> None:
    for seed in range(150):
        try:
            check_round_trip(drawn(Random(seed), depth=4))
        except AssertionError as error:
            error.add_note(f"the tree of seed {seed}")
            raise


def test_what_lies_in_a_folder_comes_where_its_path_belongs(tmp_path: Path) -> None:
    root = tmp_path / "root"
    for folder in ("a/x", "a/x.y"):
        (root / folder).mkdir(parents=True)
    for path in ("a-b", "a.c", "a0", "a/x/q", "a/x-1", "a/x.y/z"):
        (root / path).write_text(path)
    paths = kept(root, tmp_path / "objects").paths
    assert paths == sorted(paths)
    assert paths[:4] == ["a", "a-b", "a.c", "a/x"]


def test_hard_links_are_files(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "one").write_text("shared")
    os.link(root / "one", root / "two")
    saved = kept(root, tmp_path / "objects")
    assert [(entry.path, entry.type) for entry in saved.entries] == [("one", "file"), ("two", "file")]
    assert saved.entries[0].sha256 == saved.entries[1].sha256


def test_setuid_setgid_and_sticky_are_not_carried(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "program").write_text("")
    (root / "program").chmod(0o6755)
    (root / "shared").mkdir()
    (root / "shared").chmod(0o1777)
    saved = kept(root, tmp_path / "objects")
    assert [entry.mode for entry in saved.entries] == [0o755, 0o777]


def test_a_root_that_is_a_link_is_the_folder_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "file").write_text("content")
    (tmp_path / "root").symlink_to("real")
    assert kept(tmp_path / "root", tmp_path / "objects").paths == ["file"]


def test_entries_of_folders_and_links_need_no_reading(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "empty").mkdir(parents=True)
    (root / "to").symlink_to("empty")
    entries = kept(root, tmp_path / "objects").entries
    assert [TreeEntry.parse(entry.line()) for entry in entries] == entries
    assert entries[1].target == "empty"
